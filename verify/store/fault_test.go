package store

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// A server that does not answer is given up after a short time where that is for ever; where it answers
// the next time, after a time in which it surely can.
const (
	shortly = 100 * time.Millisecond
	surely  = time.Second
	// deadline is more than a pull or a push may take with either.
	deadline = 30 * time.Second
)

// isSilent reports whether a fault is that of a server that does not answer.
func isSilent(name string) bool { return name == "dead" || name == "stalled" }

// patienceWith is how long a server with a fault is waited for.
func patienceWith(name string, times int) time.Duration {
	switch {
	case !isSilent(name):
		return time.Minute
	case times == 0:
		return shortly
	}
	return surely
}

// TestFaultsOfReading has a server with each fault, once and for ever, on runs and on packs. A pull gets
// the right bytes, or the kind of error that fits, before the deadline.
func TestFaultsOfReading(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{"a": random(1, 3000), "b/c": random(2, 200<<10), "d": random(3, 10)}
	project := bundletest.New(t)
	run, other := project.Run("run-1", outputs), project.Run("run-2", map[string]string{"e": random(4, 205<<10)})
	bucket := farstore.NewBucket("runs")
	writer := httptest.NewServer(bucket)
	defer writer.Close()
	records := state(t)
	b, of := verified(t, run), verified(t, other)
	s3 := quick(t, "s3://runs/team?endpoint="+writer.URL)
	mustPush(t, s3, b, records)
	mustPush(t, s3, of, records)
	shortRange := func(h http.Header, content []byte) []byte {
		h.Set("Content-Range", strings.Replace(h.Get("Content-Range"), "bytes ", "bytes 1", 1))
		return content
	}
	otherRun := bucket.Content("team/runs/" + of.Root())
	faults := []struct {
		name  string
		fault farstore.Fault
		ever  func(error) bool // what a fault that stays is, on a pack; nil for no error
	}{
		{"busy", farstore.Status(http.StatusServiceUnavailable), isFault},
		{"too many", farstore.Status(http.StatusTooManyRequests), isFault},
		{"forbidden", farstore.Status(http.StatusForbidden), isFault},
		{"missing", farstore.Status(http.StatusNotFound), isFault},
		{"not modified", farstore.Status(http.StatusNotModified), isFault},
		{"whole object", farstore.WholeObject, isFault},
		{"another part", farstore.Changed(shortRange), isFault},
		{"cut", farstore.Cut, isFault},
		{"stalled", farstore.Stalled, isFault},
		{"dead", farstore.Silence, isFault},
		{"broken", farstore.Broken, isFault},
		{"flipped", farstore.Changed(func(_ http.Header, c []byte) []byte { c[len(c)/2] ^= 4; return c }), isWrong},
		{"shorter", farstore.Changed(func(_ http.Header, c []byte) []byte { return c[:len(c)-1] }), isFault},
		{"longer", farstore.Changed(func(_ http.Header, c []byte) []byte { return append(c, 'x') }), isFault},
		{"another run", farstore.Changed(func(_ http.Header, c []byte) []byte { return bytes.Repeat(otherRun, 1+len(c)/len(otherRun))[:len(c)] }), isWrong},
		{"redirect to the network", farstore.Redirect("http://192.0.2.1/x"), isFault},
		{"redirect to nothing", farstore.Redirect("http://127.0.0.1:1/x"), isFault},
	}
	for _, scheme := range []string{"s3", "http"} {
		for _, f := range sample.Pick(t, 3, faults) {
			t.Run(scheme+" "+f.name, func(t *testing.T) {
				t.Parallel()
				proxy := farstore.NewProxy(bucket)
				server := httptest.NewServer(proxy)
				defer server.Close()
				for _, part := range []string{"/packs/", "/runs/team/runs/"} {
					for _, times := range []int{1, 0} {
						address := "s3://runs/team?endpoint=" + server.URL
						if scheme == "http" {
							address = server.URL + "/runs/team"
						}
						s := quickWith(t, address, patienceWith(f.name, times))
						proxy.Break(farstore.On(http.MethodGet, part, times, f.fault))
						began := time.Now()
						pulled, err := pull(t, s, b.Root())
						if took := time.Since(began); took > deadline {
							t.Errorf("%s, %d times: %v", part, times, took)
						}
						switch {
						case err == nil:
							same(t, run, pulled, outputs)
							if times == 0 && part == "/packs/" {
								t.Errorf("%s: the fault stays, and there is no error", part)
							}
						case times == 0 && part == "/packs/" && !f.ever(err):
							t.Errorf("%s: %v", part, err)
						case times == 1 && part == "/packs/" && !slices.Contains([]string{"forbidden", "missing", "not modified"}, f.name) && !strings.HasPrefix(f.name, "redirect"):
							t.Errorf("%s once: %v", part, err)
						case !isFault(err) && !isWrong(err) && !isMissing(err):
							t.Errorf("%s: %T %v", part, err, err)
						}
					}
				}
				proxy.Break(nil)
				server.CloseClientConnections()
			})
		}
	}
}

func isMissing(err error) bool {
	_, is := err.(*NoRunError)
	return is
}

// TestFaultsOfWriting has faults on the requests of a push. It succeeds, or ends before the deadline
// and is complete when it is repeated. Nothing is visible of one that failed.
func TestFaultsOfWriting(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{"a": random(1, 3000), "b/c": random(2, 100<<10), "d": random(3, 10)}
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	for name, fault := range map[string]farstore.Fault{
		"busy": farstore.Status(http.StatusServiceUnavailable), "conflict": farstore.Status(http.StatusConflict), "lost answer": farstore.LostAnswer,
		"forbidden": farstore.Status(http.StatusForbidden), "dead": farstore.Silence, "broken": farstore.Broken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := farstore.NewBucket("runs")
			proxy := farstore.NewProxy(bucket)
			server := httptest.NewServer(proxy)
			defer server.Close()
			defer server.CloseClientConnections()
			s := quickWith(t, "s3://runs/team?endpoint="+server.URL, patienceWith(name, 0))
			records := state(t)
			for _, part := range []string{"/packs/", "/runs/team/runs/"} {
				proxy.Break(farstore.On(http.MethodPut, part, 0, fault))
				began := time.Now()
				_, err := tryPush(t, s, b, records)
				if took := time.Since(began); took > deadline {
					t.Errorf("%s: %v", part, took)
				}
				if name == "lost answer" {
					_, err = pull(t, s, b.Root()) // it is visible, and complete
					if err != nil && part != "/packs/" {
						t.Errorf("%s: %v", part, err)
					}
					continue
				}
				if !isFault(err) || bucket.Content("team/runs/"+b.Root()) != nil {
					t.Errorf("%s: %v; objects %q", part, err, bucket.Keys())
				}
			}
			s = quickWith(t, s.Address(), patienceWith(name, 1))
			proxy.Break(farstore.On(http.MethodPut, "", 1, fault))
			if _, err := tryPush(t, s, b, records); err != nil && name != "forbidden" {
				t.Errorf("once: %v", err)
			}
			proxy.Break(nil)
			mustPush(t, s, b, records)
			pulled, err := pull(t, s, b.Root())
			if err != nil {
				t.Fatal(err)
			}
			same(t, run, pulled, outputs)
		})
	}
}

// TestKilledPush ends a push at each of its requests, before and after the server has done it. A run is
// visible only when everything is there, and the push is completed by the next one, which sends nothing
// twice that was recorded.
func TestKilledPush(t *testing.T) {
	t.Parallel()
	outputs := map[string]string{"a": random(1, 3000), "b/c": random(2, 150<<10), "d": random(3, 10)}
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			bucket := farstore.NewBucket("runs")
			ctx, kill := context.WithCancel(t.Context())
			seen := 0
			proxy := farstore.NewProxy(bucket)
			proxy.Break(func(*http.Request) farstore.Fault {
				if seen++; seen < n {
					return nil
				}
				return func(w http.ResponseWriter, r *http.Request, server http.Handler) {
					if after {
						server.ServeHTTP(httptest.NewRecorder(), r)
					}
					kill()
					farstore.Broken(w, r, server)
				}
			})
			server := httptest.NewServer(proxy)
			s := quick(t, "s3://runs/team?endpoint="+server.URL)
			records := state(t)
			record, err := OpenRecord(records, s.Address())
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Push(ctx, b, record, Watch{})
			if record.file != nil {
				_ = record.file.Close() // as the kernel does: nothing is flushed
			}
			kill()
			proxy.Break(nil)
			if err == nil && seen < n {
				server.Close()
				if n < 8 {
					t.Fatalf("a push has %d requests", seen)
				}
				return
			}
			if bucket.Content("team/runs/"+b.Root()) != nil {
				if _, err := pull(t, s, b.Root()); err != nil {
					t.Errorf("request %d: the run is visible, and not complete: %v", n, err)
				}
			}
			mustPush(t, s, b, records)
			pulled, err := pull(t, s, b.Root())
			if err != nil {
				t.Fatalf("request %d: %v", n, err)
			}
			same(t, run, pulled, outputs)
			server.Close()
		}
	}
}

// TestMissingPack names the pack.
func TestMissingPack(t *testing.T) {
	s, _, bucket := far(t)
	b := verified(t, bundletest.New(t).Run("run-1", sampleOutputs()))
	mustPush(t, s, b, state(t))
	var gone string
	for _, key := range bucket.Keys() {
		if strings.Contains(key, "/packs/") {
			gone = key
		}
	}
	bucket.Set(gone, nil)
	if _, err := pull(t, s, b.Root()); !isFault(err) || !strings.Contains(err.Error(), strings.TrimPrefix(gone, "team/")) {
		t.Errorf("%v", err)
	}
	dir := openDir(t, t.TempDir())
	run, err := s.Open(t.Context(), b.Root(), dir)
	if err != nil {
		t.Fatal(err)
	}
	packs, err := s.Packs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lacks := run.Lacks(packs); len(lacks) != 1 || "team/"+lacks[0] != gone {
		t.Errorf("%q is missing, and found are %q", gone, lacks)
	}
}

// TestDirectoryStore: links in a directory are not followed, and what cannot be written is an error.
func TestDirectoryStore(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	s := quick(t, "file://"+dir)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": "b"}))
	if err := os.Symlink(outside, dir+"/packs"); err != nil {
		t.Fatal(err)
	}
	if _, err := tryPush(t, s, b, state(t)); !isFault(err) {
		t.Errorf("through a link: %v", err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("%v, %v is outside", err, names)
	}
	if err := os.Remove(dir + "/packs"); err != nil {
		t.Fatal(err)
	}
	mustPush(t, s, b, state(t))
	run := dir + "/runs/" + b.Root()
	if err := os.Rename(run, outside+"/run"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside+"/run", run); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t, s, b.Root()); !isFault(err) {
		t.Errorf("a run that is a link: %v", err)
	}
	gone := quick(t, "file://"+dir+"/gone")
	if _, err := pull(t, gone, b.Root()); !isFault(err) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := tryPush(t, gone, b, state(t)); !isFault(err) {
		t.Errorf("no directory: %v", err)
	}
}
