package store

import (
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestDrivers does every request on each kind of store.
func TestDrivers(t *testing.T) {
	bucket, _, _ := far(t)
	dir := t.TempDir()
	web := httptest.NewServer(httpFiles(dir))
	defer web.Close()
	for _, s := range []*Store{quick(t, "file://"+dir), bucket} {
		d := s.driver
		ctx := t.Context()
		if _, err := d.Stat(ctx, "runs/a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", s.Address(), err)
		}
		if _, err := d.Get(ctx, "runs/a", 0, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", s.Address(), err)
		}
		if err := d.Delete(ctx, "runs/a"); err != nil {
			t.Errorf("%s: %v", s.Address(), err)
		}
		for _, content := range []string{"first", "the second"} {
			if err := d.Put(ctx, "runs/a", []byte(content)); err != nil {
				t.Errorf("%s: %v", s.Address(), err)
			}
			if got, err := readAll(d, t, "runs/a", 0, -1); got != content {
				t.Errorf("%s: %q, %v", s.Address(), got, err)
			}
		}
		if err := d.PutIfAbsent(ctx, "runs/a", []byte("third")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", s.Address(), err)
		}
		if got, err := readAll(d, t, "runs/a", 4, 3); got != "sec" {
			t.Errorf("%s: %q, %v", s.Address(), got, err)
		}
		if o, err := d.Stat(ctx, "runs/a"); err != nil || o.Size != 10 || o.Key != "runs/a" || o.Time.IsZero() {
			t.Errorf("%s: %+v, %v", s.Address(), o, err)
		}
		for _, key := range []string{"runs/b", "runs/d/c", "runs/e", "runs/f", "other/g"} {
			if err := d.PutIfAbsent(ctx, key, []byte(key)); err != nil {
				t.Errorf("%s: %v", s.Address(), err)
			}
		}
		listed, err := s.list(ctx, "runs/")
		if err != nil || len(listed) != 5 || listed[2].Key != "runs/d/c" || listed[2].Size != 8 {
			t.Errorf("%s: %+v, %v", s.Address(), listed, err)
		}
		if err := d.Delete(ctx, "runs/b"); err != nil {
			t.Errorf("%s: %v", s.Address(), err)
		}
		if listed, err = s.list(ctx, "runs/"); err != nil || len(listed) != 4 {
			t.Errorf("%s: %+v, %v", s.Address(), listed, err)
		}
		if listed, err = s.list(ctx, "nothing/"); err != nil || len(listed) != 0 {
			t.Errorf("%s: %+v, %v", s.Address(), listed, err)
		}
	}
	site := quick(t, web.URL).driver
	if o, err := site.Stat(t.Context(), "runs/a"); err != nil || o.Size != 10 || o.Time.IsZero() {
		t.Errorf("%+v, %v", o, err)
	}
	if got, err := readAll(site, t, "runs/a", 4, 3); got != "sec" {
		t.Errorf("%q, %v", got, err)
	}
	for _, err := range []error{site.Put(t.Context(), "x", nil), site.PutIfAbsent(t.Context(), "x", nil), site.Delete(t.Context(), "runs/a")} {
		if !errors.Is(err, ErrReadOnly) {
			t.Error(err)
		}
	}
	if _, err := quick(t, web.URL).Runs(t.Context()); !errors.Is(err, ErrUnlisted) {
		t.Error(err)
	}
	left, err := os.ReadDir(dir + "/runs")
	if err != nil || len(left) != 4 {
		t.Errorf("%v, %v", left, err)
	}
}

func readAll(d Driver, t *testing.T, key string, off, n int64) (string, error) {
	body, err := d.Get(t.Context(), key, off, n)
	if err != nil {
		return "", err
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	return string(content), err
}

// TestNamedFiles publishes as on a file system that has no unnamed files.
func TestNamedFiles(t *testing.T) {
	path := t.TempDir()
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	var f files
	if err := f.publishNamed(dir, "a", []byte("first")); err != nil {
		t.Error(err)
	}
	if err := f.publishNamed(dir, "a", []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if names, err := dir.Names(); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
	if raw, err := os.ReadFile(path + "/a"); string(raw) != "first" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestUnfinishedFiles: a collection removes the unfinished files of killed processes, and none of a living
// one or of another kind.
func TestUnfinishedFiles(t *testing.T) {
	path := t.TempDir()
	s := quick(t, "file://"+path)
	b := verified(t, bundletest.New(t).Run("run-1", sampleOutputs()))
	mustPush(t, s, b, state(t))
	dir := openDir(t, path+"/runs")
	var f files
	living, release, ended := make(chan string), make(chan bool), make(chan error)
	go func() {
		ended <- f.replace(dir, []byte("content"), func(temporary string) error {
			living <- temporary
			<-release
			return dir.RenameNoReplace(temporary, dir, "living")
		})
	}()
	alive := "runs/" + <-living
	dead := []string{"runs/" + unfinished + uuid.NewString(), "packs/ab/" + unfinished + uuid.NewString(), "gc/marks/" + unfinished + uuid.NewString()}
	others := []string{"runs/" + unfinished + "x", "packs/ab/x", unfinished + uuid.NewString()}
	young := "runs/" + unfinished + uuid.NewString()
	for _, name := range slices.Concat(dead, others, []string{young}) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path+"/"+name), 0o755), os.WriteFile(path+"/"+name, []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, name := range slices.Concat(dead, others, []string{alive}) {
		if err := os.Chtimes(path+"/"+name, old, old); err != nil {
			t.Fatal(err)
		}
	}
	// A minute passes for the young one only where the machine sleeps: its time is far ahead.
	if err := os.Chtimes(path+"/"+young, old, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	collect(t, s)
	for _, name := range dead {
		if _, err := os.Lstat(path + "/" + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for _, name := range slices.Concat(others, []string{young, alive}) {
		if _, err := os.Lstat(path + "/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	release <- true
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if raw, err := os.ReadFile(path + "/runs/living"); string(raw) != "content" {
		t.Errorf("%q, %v", raw, err)
	}
	if _, err := pull(t, s, b.Root()); err != nil {
		t.Error(err)
	}
}

// TestCheck: a check finds what a pull finds, and does not fetch twice what was right.
func TestCheck(t *testing.T) {
	s, proxy, bucket := far(t)
	b := verified(t, bundletest.New(t).Run("run-1", sampleOutputs()))
	mustPush(t, s, b, state(t))
	run, err := s.Open(t.Context(), b.Root(), openDir(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if run.Len() != b.Len() || run.ValidatorID() != b.ValidatorID() || run.RunID() != "run-1" || !run.Completed().Equal(b.Completed()) || run.Claimed() < 300<<10 {
		t.Errorf("%d outputs, %s, %s, %v, %d bytes", run.Len(), run.ValidatorID(), run.RunID(), run.Completed(), run.Claimed())
	}
	var right Right
	proxy.Seen()
	for n, want := range []bool{true, false} {
		if err := run.Check(t.Context(), Watch{}, &right); err != nil {
			t.Error(err)
		}
		if fetched := len(proxy.Seen()) > 0; fetched != want {
			t.Errorf("check %d: fetched is %v", n, fetched)
		}
	}
	for _, p := range run.plan.packs {
		content := bucket.Content("team/" + p.id.key())
		content[len(content)-1] ^= 1
		bucket.Set("team/"+p.id.key(), content)
		if err := run.Check(t.Context(), Watch{}, &Right{}); !isWrong(err) {
			t.Errorf("a flipped bit in %s: %v", p.id, err)
		}
		content[len(content)-1] ^= 1
		bucket.Set("team/"+p.id.key(), content)
	}
}

// TestDirectoryInPlace: where a directory has the name of an object, nothing is written, and nothing is
// left; the error names it.
func TestDirectoryInPlace(t *testing.T) {
	path := t.TempDir()
	s := quick(t, "file://"+path)
	b := verified(t, bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"}))
	at := filepath.Join(path, "runs", b.Root())
	if err := os.MkdirAll(filepath.Join(at, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := tryPush(t, s, b, state(t)); !isFault(err) || !strings.Contains(err.Error(), at+": is a directory") {
		t.Errorf("%v", err)
	}
	names, err := os.ReadDir(filepath.Join(path, "runs"))
	if err != nil || len(names) != 1 || !names[0].IsDir() {
		t.Errorf("%v, %v", names, err)
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	mustPush(t, s, b, state(t))
}

// TestDirectoryPutInPlace: the same for a directory that is put there at the last moment.
func TestDirectoryPutInPlace(t *testing.T) {
	path := t.TempDir()
	dir := openDir(t, path)
	if err := os.MkdirAll(filepath.Join(path, "o", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&files{path: path}).exchange(dir, "o", []byte("content")); !errors.Is(err, unix.EISDIR) {
		t.Errorf("%v", err)
	}
	if names, err := os.ReadDir(path); err != nil || len(names) != 1 || !names[0].IsDir() {
		t.Errorf("%v, %v", names, err)
	}
}
