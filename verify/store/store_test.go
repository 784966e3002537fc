package store

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestRoundTrip pushes a run to each kind of store that can be written, and pulls it from each kind.
func TestRoundTrip(t *testing.T) {
	outputs := sampleOutputs()
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	dir := t.TempDir()
	web := httptest.NewServer(farstore.NewProxy(httpFiles(dir)))
	defer web.Close()
	bucket, _, kept := far(t)
	for _, at := range []struct{ to, from *Store }{
		{quick(t, "file://"+dir), quick(t, "file://"+dir)},
		{quick(t, "file://"+dir), quick(t, web.URL)},
		{bucket, bucket},
	} {
		done := mustPush(t, at.to, b, state(t))
		if done.Files != len(outputs) || done.Address != at.to.Address()+"@"+b.Root() {
			t.Errorf("%+v", done)
		}
		pulled, err := pull(t, at.from, b.Root())
		if err != nil {
			t.Fatalf("%s: %v", at.from.Address(), err)
		}
		same(t, run, pulled, outputs)
	}
	for _, key := range kept.Keys() {
		if !strings.HasPrefix(key, "team/packs/") && key != "team/runs/"+b.Root() {
			t.Errorf("object %s", key)
		}
		if name := filepath.Base(key); strings.Contains(key, "/packs/") && packOf(kept.Content(key)).id.String() != name {
			t.Errorf("%s is not the SHA-256 of its content", key)
		}
	}
	// No file of the directory is unfinished, and all objects are files.
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), ".") {
			t.Errorf("%s is left over", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPushAgain: what this user pushed is not uploaded again, and what another one pushed is looked at.
func TestPushAgain(t *testing.T) {
	s, proxy, bucket := far(t)
	outputs := sampleOutputs()
	project := bundletest.New(t)
	records := state(t)
	first := mustPush(t, s, verified(t, project.Run("run-1", outputs)), records)
	if first.Existed || first.Packs < 5 {
		t.Errorf("%+v", first)
	}
	again := mustPush(t, s, verified(t, project.Run("run-1", outputs)), records)
	if !again.Existed || again.Packs != 0 || again.Sent != 0 {
		t.Errorf("the same run again: %+v", again)
	}
	outputs["many/07"] = random(1000, 3000)
	changed := mustPush(t, s, verified(t, project.Run("run-2", outputs)), records)
	if changed.Packs != 1 || changed.Sent != 3000 {
		t.Errorf("one changed file: %+v", changed)
	}

	// Another user has no record: the packs are there, and are read before they are relied on.
	proxy.Seen()
	before := len(bucket.Keys())
	other := bundletest.New(t)
	delete(outputs, "many/07")
	b := verified(t, other.Run("run-3", outputs))
	mustPush(t, s, b, state(t))
	reads := 0
	for _, line := range proxy.Seen() {
		if strings.HasPrefix(line, "GET /runs/team/packs/") {
			reads++
		}
	}
	if reads == 0 || len(bucket.Keys()) == before {
		t.Errorf("%d reads, %d objects after %d", reads, len(bucket.Keys()), before)
	}
	if _, err := pull(t, s, b.Root()); err != nil {
		t.Error(err)
	}
}

// TestLyingStore: a store that claims to have packs that it lacks, or has other bytes in, makes no push
// lose a byte.
func TestLyingStore(t *testing.T) {
	s, _, bucket := far(t)
	outputs := sampleOutputs()
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	records := state(t)
	mustPush(t, s, b, records)
	for _, key := range bucket.Keys() {
		if content := bucket.Content(key); strings.Contains(key, "/packs/") {
			content[0] ^= 1
			bucket.Set(key, content)
		}
	}
	if _, err := pull(t, s, b.Root()); !isWrong(err) {
		t.Errorf("flipped bits: %v", err)
	}
	// A user without a record does not believe the names: the run gets packs of other names.
	mustPush(t, s, b, state(t))
	pulled, err := pull(t, s, b.Root())
	if err != nil {
		t.Fatal(err)
	}
	same(t, run, pulled, outputs)
	for _, key := range bucket.Keys() {
		if strings.Contains(key, "/packs/") {
			bucket.Set(key, nil)
		}
	}
	mustPush(t, s, b, records)
	if pulled, err = pull(t, s, b.Root()); err != nil {
		t.Fatal(err)
	}
	same(t, run, pulled, outputs)
}

func isWrong(err error) bool {
	_, is := errors.AsType[*WrongError](err)
	return is
}

func isFault(err error) bool {
	_, is := errors.AsType[*FaultError](err)
	return is
}

// TestChangedSource: a file that changes after it was verified is not pushed, and no run appears.
func TestChangedSource(t *testing.T) {
	s, _, bucket := far(t)
	run := bundletest.New(t).Run("run-1", sampleOutputs())
	b := verified(t, run)
	run.Write("many/11", random(99, 3000))
	if _, err := tryPush(t, s, b, state(t)); err == nil {
		t.Error("it was pushed")
	}
	for _, key := range bucket.Keys() {
		if strings.Contains(key, "/runs/") {
			t.Errorf("%s is there", key)
		}
	}
}

// TestAddresses: which texts name a store.
func TestAddresses(t *testing.T) {
	root := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"file:///srv/runs":                       "file:///srv/runs",
		"file:///srv//runs/../x/":                "file:///srv/x",
		"file:///srv/runs@" + root:               "file:///srv/runs@" + root,
		"https://example.org/a/b/":               "https://example.org/a/b",
		"http://127.0.0.1:8080/x":                "http://127.0.0.1:8080/x",
		"http://[::1]/x@" + root:                 "http://[::1]/x@" + root,
		"file:///x@" + root[1:]:                  "file:///x@" + root[1:],
		"s3://b/p?endpoint=https://h:1@0a1b":     "s3://b/p?endpoint=https%3A%2F%2Fh%3A1@0a1b",
		"https://h/x@latest":                     "https://h/x@latest",
		"s3://bucket":                            "s3://bucket/",
		"s3://bucket/a/b@" + root:                "s3://bucket/a/b@" + root,
		"s3://b/p?endpoint=https://h:1@" + root:  "s3://b/p?endpoint=https%3A%2F%2Fh%3A1@" + root,
		"s3://b/p?endpoint=http%3A%2F%2F[::1]:1": "s3://b/p?endpoint=http%3A%2F%2F%5B%3A%3A1%5D%3A1",
	} {
		a, err := Parse(text)
		if err != nil || a.String() != want {
			t.Errorf("%s: %q, %v", text, a.String(), err)
			continue
		}
		if again, err := Parse(a.String()); err != nil || again != a {
			t.Errorf("%s: %+v is not %+v: %v", text, again, a, err)
		}
	}
	for _, text := range []string{
		"", "file://host/dir", "file://", "ftp://h/x", "https:///x", "https://:443/x", "s3://b/p?endpoint=https://:443", "http://example.org/x", "https://user:secret@h/x", "s3:///x",
		"s3://b/p?endpoint=http://h", "s3://b/p?endpoint=h", "s3://b/p?other=1", "s3://b/p?endpoint=https://u:p@h", "file:///x@" + root + "0", "file:///x@0a1", "file:///x@lates", "file:///x@",
		"file:///x@" + strings.ToUpper(root), "file:///x?a", "https://h/x?a=1", "https://h/x#a", "https://h/%zz", "https://b\u00fccher.example/x",
	} {
		if a, err := Parse(text); err == nil {
			t.Errorf("%q is %q", text, a.String())
		}
	}
	for _, text := range []string{"dir", "./file:", "/file:///x", "C:\\x", ""} {
		if IsAddress(text) {
			t.Errorf("%q is an address", text)
		}
	}
}

// cancelling is a driver that ends a context at the first read of a pack, and counts these reads.
type cancelling struct {
	Driver
	cancel context.CancelFunc
	reads  int
}

func (c *cancelling) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	c.cancel()
	c.reads++
	return c.Driver.Get(context.WithoutCancel(ctx), key, off, n)
}

// TestFetchEndsWithItsContext: a map can name any number of extents of a pack, so a fetch looks at its
// context before each, even where the driver does not.
func TestFetchEndsWithItsContext(t *testing.T) {
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"large": random(1, 1<<20)}))
	s := quick(t, "file://"+t.TempDir())
	mustPush(t, s, b, state(t))
	run, err := s.Open(t.Context(), b.Root(), state(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	counted := &cancelling{Driver: s.driver, cancel: cancel}
	s.driver = counted
	if err := run.Check(ctx, Watch{}, nil); !errors.Is(err, context.Canceled) || counted.reads != 1 {
		t.Errorf("%d reads, %v", counted.reads, err)
	}
}

// TestFind: a run is found by as many digits as name one only, or as the one that was stored last.
func TestFind(t *testing.T) {
	s, _, bucket := far(t)
	other := strings.Repeat("0", 63)
	for _, root := range []string{"0123" + other[4:] + "1", "0123" + other[4:] + "2", "0124" + other[4:] + "3"} {
		bucket.Set("team/runs/"+root, []byte("x"))
		bucket.Pass(time.Minute)
	}
	bucket.Set("team/runs/0125", []byte("no run"))
	find := func(short string) string {
		root, err := s.Find(t.Context(), short)
		if err != nil && !errors.Is(err, ErrAmbiguous) {
			if _, is := errors.AsType[*NoRunError](err); !is {
				t.Error(err)
			}
			return "none"
		}
		return root
	}
	for short, want := range map[string]string{"0124": "0124" + other[4:] + "3", "0123": "", "0123" + other[4:]: "", "0125": "none", latest: "0124" + other[4:] + "3"} {
		if got := find(short); got != want {
			t.Errorf("%s: %q, want %q", short, got, want)
		}
	}
	bucket.Set("team/runs/0123"+other[4:]+"1", []byte("again"))
	if got := find(latest); got != "0123"+other[4:]+"1" {
		t.Errorf("%q", got)
	}
}
