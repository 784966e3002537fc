package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestSlowServer: a server that sends for ever, and slowly, does not hold a command. The bodies of whole
// objects, of parts, lists and errors are measured alike.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	bucket := farstore.NewBucket("runs")
	proxy := farstore.NewProxy(bucket)
	server := httptest.NewServer(proxy)
	defer server.Close()
	defer server.CloseClientConnections()
	s3 := quickWith(t, "s3://runs/team?endpoint="+server.URL, time.Minute)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 3000)}))
	mustPush(t, s3, b, state(t))
	for _, address := range []string{s3.Address(), server.URL + "/runs/team"} {
		s := quickWith(t, address, shortly)
		for _, code := range []int{http.StatusOK, http.StatusForbidden, http.StatusServiceUnavailable} {
			for _, part := range []string{"/team/runs/", "/packs/", ""} {
				if address != s3.Address() && part == "" {
					continue // no lists
				}
				proxy.Break(farstore.On(http.MethodGet, part, 0, farstore.Trickle(code)))
				began := time.Now()
				var err error
				if part == "" {
					_, err = s.Runs(t.Context())
				} else {
					_, err = pull(t, s, b.Root())
				}
				if took := time.Since(began); !isFault(err) || took > deadline {
					t.Errorf("%s, %d, %q: %v, %v", address, code, part, took, err)
				}
			}
		}
	}
}

// TestClaims: a small MAP that claims many bytes is rejected before a byte of a pack is requested, by the
// name of the MAP, and one in which a content is often there is not.
func TestClaims(t *testing.T) {
	s, proxy, bucket := far(t)
	run := bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 100)})
	b := verified(t, run)
	mustPush(t, s, b, state(t))
	for name, extents := range map[string][]extent{
		"the same pack again": slices.Repeat([]extent{{0, 0, maxPack}}, 1<<13),
		"bytes of one pack":   slices.Repeat([]extent{{0, 0, 1 << 20}, {0, 5, 1 << 20}}, 1<<18),
		"a byte of each pack": append(slices.Repeat([]extent{{0, 0, maxPack}}, 1<<13), extent{1, 0, 1}),
		"one byte each":       slices.Repeat([]extent{{0, 0, 1}}, 100),
	} {
		p := &plan{runID: "run-1", packs: []pack{{id{1}, maxPack}, {id{2}, maxPack}}}
		p.add(extents)
		bucket.Set("team/runs/"+b.Root(), withMap(t, run, p))
		proxy.Seen()
		if _, err := pull(t, s, b.Root()); !isWrong(err) || !strings.Contains(err.Error(), mapFile) {
			t.Errorf("%s: %v", name, err)
		}
		for _, request := range proxy.Seen() {
			if strings.Contains(request, "/packs/") {
				t.Errorf("%s: %s", name, request)
			}
		}
	}
}

// TestClaimsOfHonestRuns: what repeats in a run, or is sparse, is not a false claim.
func TestClaimsOfHonestRuns(t *testing.T) {
	p := &plan{packs: []pack{{id{1}, maxPack}, {id{1}, maxPack}, {id{2}, maxPack}}}
	var digests []id
	add := func(digest byte, extents ...extent) {
		p.add(extents)
		digests = append(digests, id{digest})
	}
	check := func() error {
		return p.checkClaims(func(yield func([32]byte) bool) {
			for _, digest := range digests {
				if !yield(digest) {
					return
				}
			}
		})
	}
	add(1, slices.Repeat([]extent{{0, 0, maxPack}}, 1<<12)...) // 256 GiB of zeros
	for range 1 << 13 {
		add(2, extent{2, 0, maxPack}) // one content
	}
	add(3)
	if err := check(); err != nil {
		t.Error(err)
	}
	add(4, slices.Repeat([]extent{{1, 0, maxPack}}, 17)...) // the second name of a pack has no more bytes
	if err := check(); err != nil {
		t.Error(err)
	}
	add(5, slices.Repeat([]extent{{1, 0, maxPack}}, 17)...)
	if err := check(); err == nil {
		t.Error("more is accepted")
	}
}

// endless is a MAP whose line never ends, and counts what is read of it.
type endless struct {
	begin string
	n     int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.begin)
	e.begin = e.begin[n:]
	for n < len(p) {
		n += copy(p[n:], "0:0:1 "[e.n%6:])
		e.n = n
	}
	return n, nil
}

// TestLongLine: a MAP is rejected where it goes wrong, before all of it is in memory.
func TestLongLine(t *testing.T) {
	for _, begin := range []string{"x", mapHead + "run ", mapHead + "run a\npacks 1\n" + (id{}).String() + " 1\nfiles 1\n", mapHead + "run a\npacks 1\n" + (id{}).String() + " 1\nfiles 1\n123456"} {
		source := io.LimitReader(&endless{begin: begin}, 1<<20)
		if _, err := parseMap(source); err == nil || source.(*io.LimitedReader).N < 1<<20-2*longestLine {
			t.Errorf("%q: %d bytes are left, %v", begin, source.(*io.LimitedReader).N, err)
		}
	}
}

// header is a header of an archive with a name, a type and a size.
func header(name string, kind byte, size int64) []byte {
	var out bytes.Buffer
	_ = tar.NewWriter(&out).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Format: tar.FormatUSTAR})
	raw := out.Bytes()[:tarBlock]
	raw[156] = kind
	copy(raw[148:156], "        ")
	sum := 0
	for _, b := range raw {
		sum += int(b)
	}
	for i := range 6 {
		raw[153-i] = byte('0' + sum>>(3*i)&7)
	}
	raw[154], raw[155] = 0, ' '
	return raw
}

// TestExtendedHeaders: extended headers of each kind are rejected without unpacking them, wherever they
// are, also a few bytes that unpack to very many.
func TestExtendedHeaders(t *testing.T) {
	const each, many = 1 << 20, 4
	for _, kind := range []byte{tar.TypeXHeader, tar.TypeXGlobalHeader, tar.TypeGNULongName, tar.TypeGNULongLink} {
		for _, after := range []int{0, 1, required - 1} {
			var out bytes.Buffer
			z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
			for _, name := range members[:after] {
				_, _ = z.Write(header(name, tar.TypeReg, 2))
				_, _ = z.Write(append([]byte("{}"), make([]byte, paddingOf(2))...))
			}
			_ = z.Flush()
			plain := out.Len()
			zeros := make([]byte, each)
			for range many {
				_, _ = z.Write(header("x", kind, each))
				_, _ = z.Write(zeros)
			}
			_ = z.Close()
			// What is cut off is not missed.
			if err := discard(out.Bytes()[:plain+(out.Len()-plain)/2]); err == nil || !strings.Contains(err.Error(), "extended headers") {
				t.Errorf("%q after %d members: %v", kind, after, err)
			}
		}
	}
}

// TestUnpackingEnds: a context that is done ends the unpacking of a run, at any place.
func TestUnpackingEnds(t *testing.T) {
	raw := packed(t, first(plainMembers(members[:required]...)), second(plainMembers(members[:required]...)))
	for n := range required {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		err := readRun(ctx, raw, func(_ string, content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			if seen++; seen == n+1 {
				cancel()
			}
			return err
		})
		if !errors.Is(err, context.Canceled) || seen != n+1 {
			t.Errorf("after %d members: %d, %v", n, seen, err)
		}
	}
}

// TestAnswersWithoutEnd: of an answer without end that is not what was requested almost nothing is read:
// a whole object in place of a part, more than a part, and errors.
func TestAnswersWithoutEnd(t *testing.T) {
	t.Parallel()
	bucket := farstore.NewBucket("runs")
	proxy := farstore.NewProxy(bucket)
	server := httptest.NewServer(proxy)
	defer server.Close()
	defer server.CloseClientConnections()
	s3 := quick(t, "s3://runs/team?endpoint="+server.URL)
	mustPush(t, s3, verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": random(1, 3000)})), state(t))
	packs, err := s3.list(t.Context(), packsPrefix)
	if err != nil || len(packs) != 1 {
		t.Fatalf("%v, %v", packs, err)
	}
	var sent atomic.Int64
	withoutEnd := func(code int) farstore.Fault {
		return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if code == http.StatusPartialContent {
				answer := httptest.NewRecorder()
				server.ServeHTTP(answer, r)
				w.Header().Set("Content-Range", answer.Header().Get("Content-Range"))
			}
			w.WriteHeader(code)
			block := bytes.Repeat([]byte("x"), 32<<10)
			for r.Context().Err() == nil {
				n, err := w.Write(block)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		}
	}
	for _, address := range []string{s3.Address(), server.URL + "/runs/team"} {
		for _, code := range []int{http.StatusOK, http.StatusPartialContent, http.StatusForbidden, http.StatusServiceUnavailable, http.StatusNotFound} {
			proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, withoutEnd(code)))
			sent.Store(0)
			if err := quick(t, address).read(t.Context(), packs[0].Key, 5, make([]byte, 10)); !isFault(err) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, %d: %v", address, code, err)
			}
			const most = 256 << 20 // with what the kernel keeps of the connections
			if n := sent.Load(); n > most {
				t.Errorf("%s, %d: %d bytes were sent", address, code, n)
			}
		}
	}
}
