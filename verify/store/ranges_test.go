package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

const testBlock = blocktable.MinBlock

// withBlocks is a run with a block table.
func withBlocks(t *testing.T, outputs map[string]string) *bundletest.Run {
	t.Helper()
	project := bundletest.New(t)
	run := project.Run("run-1", outputs)
	run.SetBlocks(project.Blocks(testBlock, outputs, nil), testBlock)
	return run
}

// farView reads a run in a store by ranges.
type farView struct {
	*Ranges
	table   *blocktable.Table
	digests []id
	names   []string
}

func view(t *testing.T, s *Store, root string) *farView {
	t.Helper()
	path := t.TempDir()
	run, err := s.Open(t.Context(), root, openDir(t, path))
	if err != nil {
		t.Fatal(err)
	}
	v := &farView{}
	for e := range run.listing.Entries() {
		v.names, v.digests = append(v.names, e.Path.String()), append(v.digests, e.Digest)
	}
	raw, err := os.ReadFile(filepath.Join(path, run.RunDir(), blocksFile))
	if err != nil {
		t.Fatal(err)
	}
	if v.table, err = blocktable.Parse(raw, slices.Values(v.names)); err != nil {
		t.Fatal(err)
	}
	if v.Ranges, err = run.Ranges(v.sizes()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func (v *farView) sizes() func(yield func(int64) bool) {
	return func(yield func(int64) bool) {
		for i := range v.table.Len() {
			if !yield(v.table.Attributes(i).Size) {
				return
			}
		}
	}
}

// read reads a part of an output, checked.
func (v *farView) read(ctx context.Context, name string, off int64, n int) (string, error) {
	i := slices.Index(v.names, name)
	p := make([]byte, n)
	n, err := v.table.NewReader(i, v.digests[i], v.Open(i)).ReadContext(ctx, p, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return string(p[:n]), err
}

func isMismatch(err error) bool {
	_, is := errors.AsType[*blockhash.MismatchError](err)
	return is
}

// packsSeen counts the requests for packs since the last call.
func packsSeen(proxy *farstore.Proxy) (n int) {
	for _, request := range proxy.Seen() {
		if strings.Contains(request, "/packs/") {
			n++
		}
	}
	return n
}

// TestRanges: any part of any output is right, from each kind of store, also of those that are in several
// packs, with many readers at once.
func TestRanges(t *testing.T) {
	outputs := sampleOutputs()
	run := withBlocks(t, outputs)
	b := verified(t, run)
	dir := t.TempDir()
	web := httptest.NewServer(httpFiles(dir))
	defer web.Close()
	bucket, _, _ := far(t)
	mustPush(t, quick(t, "file://"+dir), b, state(t))
	mustPush(t, bucket, b, state(t))
	names := slices.Sorted(maps.Keys(outputs))
	for _, s := range []*Store{quick(t, "file://"+dir), quick(t, web.URL), bucket} {
		v := view(t, s, b.Root())
		var readers sync.WaitGroup
		for range 8 {
			readers.Go(func() {
				for range 100 {
					name := names[rand.IntN(len(names))]
					content := outputs[name]
					off := rand.IntN(len(content) + 2)
					n := rand.IntN(200 << 10)
					got, err := v.read(t.Context(), name, int64(off), n)
					if want := content[min(off, len(content)):min(off+n, len(content))]; got != want || err != nil {
						t.Errorf("%s: %s, %d bytes at %d: %d bytes, %v", s.Address(), name, n, off, len(got), err)
					}
				}
			})
		}
		readers.Wait()
		if _, err := v.Open(0).ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("a negative offset is read")
		}
	}
}

// TestRangesTakeFewRequests: how many requests it takes to look at a run.
func TestRangesTakeFewRequests(t *testing.T) {
	s, proxy, _ := far(t)
	s.target = packTarget
	outputs := map[string]string{"z/large": random(1, 20<<20)}
	for i := range 1000 {
		outputs[fmt.Sprintf("many/%04d", i)] = random(uint64(i)+2, 8<<10)
	}
	b := verified(t, withBlocks(t, outputs))
	mustPush(t, s, b, state(t))
	names := slices.Sorted(maps.Keys(outputs))

	proxy.Seen()
	v := view(t, s, b.Root())
	if seen := proxy.Seen(); len(seen) != 1 {
		t.Errorf("to open it: %q", seen)
	}
	for n, off := range []int64{19 << 20, 5<<20 + 77, 12 << 20} {
		if _, err := v.read(t.Context(), "z/large", off, 4<<10); err != nil {
			t.Error(err)
		}
		if seen := packsSeen(proxy); seen != 1 {
			t.Errorf("read %d at random: %d requests", n, seen)
		}
	}
	if _, err := v.read(t.Context(), "z/large", 5<<20+77, 4<<10); err != nil || packsSeen(proxy) != 0 {
		t.Errorf("the same once more: %v", err)
	}

	v = view(t, s, b.Root())
	proxy.Seen()
	for _, name := range names[:1000] {
		if got, err := v.read(t.Context(), name, 0, 8<<10); got != outputs[name] || err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if seen := packsSeen(proxy); seen > 16 {
		t.Errorf("8 MiB in 1,000 files: %d requests", seen)
	}

	v = view(t, s, b.Root())
	proxy.Seen()
	for off := int64(0); off < 20<<20; off += 128 << 10 {
		if got, err := v.read(t.Context(), "z/large", off, 128<<10); got != outputs["z/large"][off:off+128<<10] || err != nil {
			t.Fatalf("at %d: %v", off, err)
		}
	}
	if seen := packsSeen(proxy); seen > 16 {
		t.Errorf("20 MiB in one file: %d requests", seen)
	}
	if v.cells.kept > keptBytes {
		t.Errorf("%d bytes are kept", v.cells.kept)
	}
}

// TestOneFlight: readers of the same bytes share one request.
func TestOneFlight(t *testing.T) {
	s, proxy, _ := far(t)
	content := random(1, 40<<10)
	b := verified(t, withBlocks(t, map[string]string{"a": content}))
	mustPush(t, s, b, state(t))
	v := view(t, s, b.Root())
	proxy.Seen()
	began, release := make(chan struct{}, 100), make(chan struct{})
	proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		began <- struct{}{}
		<-release
		server.ServeHTTP(w, r)
	}))
	var readers sync.WaitGroup
	for range 10 {
		readers.Go(func() {
			if got, err := v.read(t.Context(), "a", 0, 40<<10); got != content || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	<-began
	close(release)
	readers.Wait()
	if seen := packsSeen(proxy); seen != 1 {
		t.Errorf("%d requests", seen)
	}
}

// TestFaultsOfRanges has a server with each fault, once and for ever: a read gets the right bytes, or the
// kind of error that fits, before the deadline, and what others read stays right.
func TestFaultsOfRanges(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{"a": random(1, 3000), "b/c": random(2, 200<<10), "d": random(3, 10)}
	run := withBlocks(t, outputs)
	b := verified(t, run)
	bucket := farstore.NewBucket("runs")
	writer := httptest.NewServer(bucket)
	defer writer.Close()
	mustPush(t, quick(t, "s3://runs/team?endpoint="+writer.URL), b, state(t))
	final := map[string]bool{"forbidden": true, "missing": true, "out of range": true}
	partly := map[string]bool{"cut": true, "stalled": true, "flipped": true, "shorter": true}
	faults := []struct {
		name  string
		fault farstore.Fault
		ever  func(error) bool
	}{
		{"busy", farstore.Status(http.StatusServiceUnavailable), isFault},
		{"too many", farstore.Status(http.StatusTooManyRequests), isFault},
		{"forbidden", farstore.Status(http.StatusForbidden), isFault},
		{"missing", farstore.Status(http.StatusNotFound), isFault},
		{"out of range", farstore.Status(http.StatusRequestedRangeNotSatisfiable), isFault},
		{"whole object", farstore.WholeObject, isFault},
		{"another part", farstore.Changed(func(h http.Header, c []byte) []byte {
			h.Set("Content-Range", strings.Replace(h.Get("Content-Range"), "bytes ", "bytes 1", 1))
			return c
		}), isFault},
		{"cut", farstore.Cut, isFault},         // a part of the answer can be enough
		{"stalled", farstore.Stalled, isFault}, // likewise
		{"dead", farstore.Silence, isFault},
		{"slow", farstore.Trickle(http.StatusPartialContent), isFault},
		{"broken", farstore.Broken, isFault},
		{"flipped", farstore.Changed(func(_ http.Header, c []byte) []byte { c[len(c)/2] ^= 4; return c }), isMismatch},
		{"zeros", farstore.Changed(func(_ http.Header, c []byte) []byte { return make([]byte, len(c)) }), isMismatch},
		{"shorter", farstore.Changed(func(_ http.Header, c []byte) []byte { return c[:len(c)-1] }), isFault},
	}
	for _, scheme := range []string{"s3", "http"} {
		for _, f := range faults {
			t.Run(scheme+" "+f.name, func(t *testing.T) {
				t.Parallel()
				proxy := farstore.NewProxy(bucket)
				server := httptest.NewServer(proxy)
				defer server.Close()
				defer server.CloseClientConnections()
				for _, times := range []int{1, 0} {
					address := "s3://runs/team?endpoint=" + server.URL
					if scheme == "http" {
						address = server.URL + "/runs/team"
					}
					proxy.Break(nil)
					patience := tries * surely
					if times == 0 && (isSilent(f.name) || f.name == "slow") {
						patience = tries * shortly
					}
					v := view(t, quickWith(t, address, patience), b.Root())
					proxy.Break(farstore.On(http.MethodGet, "/packs/", times, f.fault))
					for name, content := range outputs {
						began := time.Now()
						got, err := v.read(t.Context(), name, 0, len(content))
						if took := time.Since(began); took > deadline {
							t.Errorf("%s, %d times: %v", name, times, took)
						}
						switch {
						case err == nil && got != content:
							t.Errorf("%s, %d times: wrong bytes", name, times)
						case err == nil && times == 0 && !partly[f.name]:
							t.Errorf("%s: the fault stays, and there is no error", name)
						case err != nil && times == 1 && !final[f.name]:
							t.Errorf("%s once: %v", name, err)
						case err != nil && !f.ever(err):
							t.Errorf("%s, %d times: %T %v", name, times, err, err)
						}
					}
					proxy.Break(nil)
					for name, content := range outputs { // when it is over
						if got, err := v.read(t.Context(), name, 0, len(content)); got != content || err != nil {
							t.Errorf("%s afterwards: %v", name, err)
						}
					}
				}
			})
		}
	}
}

// TestReaderOfRangesLeaves: with a dead server a reader that gives up returns at once, and so do all when
// the Ranges is closed.
func TestReaderOfRangesLeaves(t *testing.T) {
	s, proxy, _ := far(t)
	b := verified(t, withBlocks(t, map[string]string{"a": random(1, 3000), "b": random(2, 300<<10)}))
	mustPush(t, s, b, state(t))
	v := view(t, s, b.Root())
	began := make(chan struct{}, 100)
	proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		began <- struct{}{}
		farstore.Silence(w, r, server)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	for _, reader := range []context.Context{ctx, t.Context()} {
		go func() {
			_, err := v.read(reader, "a", 0, 10)
			ended <- err
		}()
	}
	<-began
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || isFault(err) {
		t.Errorf("%v", err)
	}
	v.Close()
	if err := <-ended; !isFault(err) {
		t.Errorf("%v", err)
	}
	if _, err := v.read(t.Context(), "b", 0, 10); !isFault(err) {
		t.Errorf("%v", err)
	}
}

// TestRangesTrustNoMap: a MAP with other sizes than those that were signed is rejected, and one with the
// places of other bytes leads to no wrong byte.
func TestRangesTrustNoMap(t *testing.T) {
	s, _, bucket := far(t)
	outputs := map[string]string{"a": random(1, 3000), "b": random(2, 3000), "c": ""}
	run := withBlocks(t, outputs)
	b := verified(t, run)
	mustPush(t, s, b, state(t))
	good := view(t, s, b.Root())
	plan := *good.plan
	for name, extents := range map[string][3][]extent{
		"longer":  {plan.of(0), append(slices.Clone(plan.of(1)), extent{0, 0, 1}), nil},
		"shorter": {plan.of(0), nil, nil},
		"shifted": {plan.of(1), plan.of(0), nil},
	} {
		other := plan
		other.ends, other.extents = nil, nil
		for _, e := range extents {
			other.add(e)
		}
		bucket.Set("team/runs/"+b.Root(), withMap(t, run, &other))
		opened, err := s.Open(t.Context(), b.Root(), openDir(t, t.TempDir()))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ranges, err := opened.Ranges(good.sizes())
		if name != "shifted" {
			if !isWrong(err) || !strings.Contains(err.Error(), mapFile) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		v := &farView{ranges, good.table, good.digests, good.names}
		if got, err := v.read(t.Context(), "a", 0, 10); !isMismatch(err) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := v.Wrong(0, "a", io.EOF); !isWrong(err) || !strings.Contains(err.Error(), packsPrefix) {
			t.Errorf("%v", err)
		}
		if err := v.Wrong(2, "c", io.EOF); !isWrong(err) || !strings.Contains(err.Error(), runsPrefix) {
			t.Errorf("%v", err)
		}
		v.Close()
	}
}

// TestStreams: how far is requested ahead.
func TestStreams(t *testing.T) {
	var ss streams
	at := int64(100 << 20)
	total := int64(0)
	for range 200 {
		s, from, to := ss.next(at, 128<<10)
		if to > from {
			total += to - from
			s.ahead = to
		}
		at += 128 << 10
		if to-at > largestRange || to < from {
			t.Errorf("at %d: from %d to %d", at, from, to)
		}
	}
	if read := at - 100<<20; total < read || total > read+largestRange {
		t.Errorf("%d bytes of %d were requested ahead", total, read)
	}
	if _, from, to := ss.next(1, smallestRange); from != to {
		t.Errorf("at random, a whole range: from %d to %d", from, to)
	}
	for i := range int64(100) { // others at random push no reader out that goes on
		ss.next(i<<30, 10)
		if _, from, to := ss.next(at, 0); from != to && to-from < largestRange/2 {
			t.Errorf("it is forgotten: from %d to %d", from, to)
		}
	}
}

// TestOwnRequest: a reader that waits for the request of another one asks for itself when that fails.
func TestOwnRequest(t *testing.T) {
	s, proxy, _ := far(t)
	content := random(1, 3000)
	b := verified(t, withBlocks(t, map[string]string{"a": content}))
	mustPush(t, s, b, state(t))
	v := view(t, s, b.Root())
	began, release := make(chan struct{}, 100), make(chan struct{})
	proxy.Break(farstore.On(http.MethodGet, "/packs/", 1, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		began <- struct{}{}
		<-release
		farstore.Status(http.StatusForbidden)(w, r, server)
	}))
	first, second := make(chan error), make(chan error)
	read := func(ended chan error) {
		got, err := v.read(t.Context(), "a", 0, 10)
		if err == nil && got != content[:10] {
			err = errors.New("wrong bytes")
		}
		ended <- err
	}
	go read(first)
	<-began
	go read(second)
	for joined := false; !joined; { // the flight has two readers, or the second one comes after it
		v.cells.mu.Lock()
		joined = v.cells.streams.used >= 2
		v.cells.mu.Unlock()
	}
	close(release)
	if err := <-first; !isFault(err) {
		t.Errorf("%v", err)
	}
	if err := <-second; err != nil {
		t.Errorf("%v", err)
	}
}
