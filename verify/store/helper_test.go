package store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// quick is a store with small packs, which does not wait long before it tries again.
func quick(t *testing.T, address string) *Store {
	t.Helper()
	return quickWith(t, address, time.Minute)
}

func quickWith(t *testing.T, address string, patience time.Duration) *Store {
	t.Helper()
	a, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(a, patience)
	if err != nil {
		t.Fatal(err)
	}
	s.pause, s.target, s.piece = time.Millisecond, 64<<10, 48<<10
	return s
}

// far is a bucket behind a proxy with faults, and the store in it.
func far(t *testing.T) (*Store, *farstore.Proxy, *farstore.Bucket) {
	t.Helper()
	b := farstore.NewBucket("runs")
	proxy := farstore.NewProxy(b)
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return quick(t, "s3://runs/team?endpoint="+server.URL), proxy, b
}

// a project with some files: small and large ones, an empty one, two that are the same.
func sampleOutputs() map[string]string {
	files := map[string]string{"empty": "", "a/twin": "the same", "b/twin": "the same", "large": random(1, 300<<10), "odd \t ü": "x"}
	for i := range 40 {
		files[fmt.Sprintf("many/%02d", i)] = random(uint64(i)+2, 3000)
	}
	return files
}

// random is a text that no pack has twice.
func random(seed uint64, n int) string {
	var b strings.Builder
	for b.Len() < n {
		seed = seed*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", seed)
	}
	return b.String()[:n]
}

func verified(t *testing.T, run *bundletest.Run) *verify.Bundle {
	t.Helper()
	project, err := pathsafe.OpenRoot(run.Root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { project.Close() })
	opened, err := verify.OpenRun(project, run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	b, err := verify.Strict(t.Context(), opened, verify.Watch{Reread: true})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// state is a directory for records.
func state(t *testing.T) *pathsafe.Dir { return openDir(t, t.TempDir()) }

func openDir(t *testing.T, path string) *pathsafe.Dir {
	t.Helper()
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir
}

// tryPush pushes with a record that is opened as a process of its own would.
func tryPush(t *testing.T, s *Store, b *verify.Bundle, records *pathsafe.Dir) (Pushed, error) {
	t.Helper()
	record, err := OpenRecord(records, s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	return s.Push(t.Context(), b, record, Watch{})
}

func mustPush(t *testing.T, s *Store, b *verify.Bundle, records *pathsafe.Dir) Pushed {
	t.Helper()
	done, err := tryPush(t, s, b, records)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// pull fetches a run into a new project and returns its root; the error is the first one.
func pull(t *testing.T, s *Store, root string) (string, error) {
	t.Helper()
	path := t.TempDir()
	dir := openDir(t, path)
	run, err := s.Open(t.Context(), root, dir)
	if err != nil {
		return path, err
	}
	if err := run.Pull(t.Context(), dir, Watch{}); err != nil {
		return path, err
	}
	opened, err := verify.OpenRun(dir, filepath.Join(path, run.RunDir()))
	if err != nil {
		return path, err
	}
	defer opened.Close()
	_, err = verify.Strict(t.Context(), opened, verify.Watch{})
	return path, err
}

// same requires that a pulled project has what was pushed.
func same(t *testing.T, run *bundletest.Run, pulled string, outputs map[string]string) {
	t.Helper()
	for path, content := range outputs {
		raw, err := os.ReadFile(filepath.Join(pulled, path))
		if err != nil || string(raw) != content {
			t.Errorf("%s: %d bytes, want %d: %v", path, len(raw), len(content), err)
		}
	}
	names, err := os.ReadDir(run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		rel := filepath.Join("CONTRACTS/_runs", filepath.Base(run.Dir), name.Name())
		raw, err := os.ReadFile(filepath.Join(pulled, rel))
		if err != nil || string(raw) != string(run.Read(name.Name())) {
			t.Errorf("%s is not what was pushed: %v", rel, err)
		}
	}
}

// httpFiles serves a directory as a static web server does.
func httpFiles(dir string) http.Handler { return http.FileServer(http.Dir(dir)) }

// firstDigest is the SHA-256 of the first output that is not empty.
func firstDigest(b *verify.Bundle) id {
	for o := range b.Outputs() {
		if o.Size() > 0 {
			return o.Digest()
		}
	}
	return id{}
}
