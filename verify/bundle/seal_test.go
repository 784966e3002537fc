package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

var artifacts = []string{
	bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof, bundle.Identity, bundle.SignedPayload, bundle.Signature,
}

// goldenSealing is what testdata/golden was made of, by another program
// (Python, with hashlib, json and the Ed25519 of OpenSSL).
func goldenSealing(t testing.TB) *sealing {
	t.Helper()
	s := newSealing(t)
	s.Write("dist/app.bin", "hello\n")
	s.Write("dist/sub/\u00fc.txt", "")
	s.Write("notes.txt", "n")
	s.mkdir("dist/empty")
	s.opts.Outputs = []string{"notes.txt", "dist"}
	s.opts.Inputs = []string{"src/in"}
	return s
}

// TestSealGolden compares every artifact byte for byte.
func TestSealGolden(t *testing.T) {
	s := goldenSealing(t)
	sealed, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	want := bundle.Sealed{
		BundleRoot:  "85117508a196e621884a1364c2baa1dbaf611ce4a6a2f379e564542953b8b30c",
		ValidatorID: "21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9",
		Files:       3, Bytes: 7,
	}
	if sealed != want {
		t.Errorf("got %+v, want %+v", sealed, want)
	}
	for _, name := range artifacts {
		want, err := os.ReadFile(filepath.Join("testdata", "golden", name))
		must(t, err)
		got, err := os.ReadFile(filepath.Join(s.opts.RunDir, name))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s (%v):\ngot  %s\nwant %s", name, err, got, want)
		}
	}
	onlyTheBundle(t, s)
}

// onlyTheBundle requires that the runs directory has only the run, and no temporary files.
func onlyTheBundle(t *testing.T, s *sealing) {
	t.Helper()
	if got := namesIn(t, filepath.Dir(s.opts.RunDir)); !slices.Equal(got, []string{filepath.Base(s.opts.RunDir)}) {
		t.Errorf("beside the run: %q", got)
	}
	want := slices.Sorted(slices.Values(artifacts))
	if got := namesIn(t, s.opts.RunDir); !slices.Equal(got, want) {
		t.Errorf("in the run: %q", got)
	}
}

func namesIn(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// strict verifies what was sealed.
func strict(t testing.TB, s *sealing) *verify.Bundle {
	t.Helper()
	run, err := verify.OpenRun(s.opts.Project, s.opts.RunDir)
	must(t, err)
	defer run.Close()
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	must(t, verify.Resume(t.Context(), run, s.opts.BuildID, verify.Watch{}))
	return b
}

func pathsOf(b *verify.Bundle) []string {
	var paths []string
	for o := range b.Outputs() {
		paths = append(paths, o.Path().String())
	}
	return paths
}

func TestSealedBundleVerifies(t *testing.T) {
	for name, c := range map[string]struct {
		args, want []string
	}{
		"a file":               {[]string{"dist/app.bin"}, []string{"dist/app.bin"}},
		"a directory":          {[]string{"dist"}, []string{"dist/app.bin", "dist/sub/\u00fc.txt"}},
		"both, overlapping":    {[]string{"dist", "dist/sub", "dist/app.bin", "dist"}, []string{"dist/app.bin", "dist/sub/\u00fc.txt"}},
		"in the other order":   {[]string{"notes.txt", "dist/app.bin"}, []string{"dist/app.bin", "notes.txt"}},
		"an empty file":        {[]string{"dist/sub/\u00fc.txt"}, []string{"dist/sub/\u00fc.txt"}},
		"names in byte order":  {[]string{"order"}, []string{"order/a", "order/a b", "order/a.b/x", "order/a/b", "order/~"}},
		"names that are legal": {[]string{"odd"}, []string{"odd/\x01\n\x7f\"", "odd/...", "odd/..a", "odd/--json", "odd/RESTORE_REPORT.json", "odd/\u202e"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := goldenSealing(t)
			for _, path := range c.want {
				if strings.HasPrefix(path, "odd/") || strings.HasPrefix(path, "order/") && path != "order/a" {
					s.Write(path, path)
				}
			}
			want := slices.DeleteFunc(slices.Clone(c.want), func(p string) bool { return p == "order/a" })
			slices.Sort(want)
			s.opts.Outputs = c.args
			sealed, err := bundle.Seal(t.Context(), s.opts)
			must(t, err)
			b := strict(t, s)
			if got := pathsOf(b); !slices.Equal(got, want) || sealed.Files != len(want) {
				t.Errorf("got %q (%d), want %q", got, sealed.Files, want)
			}
			if b.Root() != sealed.BundleRoot || b.ValidatorID() != sealed.ValidatorID || b.RunID() != "run-1" {
				t.Errorf("sealed %+v, verified %s", sealed, b.Root())
			}
		})
	}
}

// TestSealIntoEmptyDirectory: one that is there and empty is taken.
func TestSealIntoEmptyDirectory(t *testing.T) {
	s := goldenSealing(t)
	s.mkdir("CONTRACTS/_runs/run-1")
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	strict(t, s)
	onlyTheBundle(t, s)
}

// TestSealRelativeRunDir: a relative path is one below the working directory.
func TestSealRelativeRunDir(t *testing.T) {
	s := goldenSealing(t)
	t.Chdir(s.Root)
	s.opts.RunDir = "runs/./x/../run-1/"
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	s.opts.RunDir = s.path("runs/run-1")
	strict(t, s)
	onlyTheBundle(t, s)
}

// TestSealTime: the zero time is now.
func TestSealTime(t *testing.T) {
	s := goldenSealing(t)
	s.opts.Now = time.Time{}
	before := time.Now()
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	raw, err := os.ReadFile(filepath.Join(s.opts.RunDir, bundle.Status))
	must(t, err)
	value, _ := mustObject(t, string(raw)).Get("completed_at")
	text, _ := value.Text()
	completed, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || completed.Before(before.Add(-time.Second)) || completed.After(time.Now().Add(time.Second)) {
		t.Errorf("completed at %q", text)
	}
}

// TestSealProgress: what is to be hashed is said once, before it, and every byte
// counts once.
func TestSealProgress(t *testing.T) {
	s := goldenSealing(t)
	var listed, hashed atomic.Int64
	s.opts.Listed = func(files int, bytes int64) {
		if files != 3 || bytes != 7 || hashed.Load() != 0 || listed.Add(1) != 1 {
			t.Errorf("%d files, %d bytes, when %d were hashed", files, bytes, hashed.Load())
		}
	}
	s.opts.Hashed = func(bytes int64) { hashed.Add(bytes) }
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	if listed.Load() != 1 || hashed.Load() != 7 {
		t.Errorf("listed %d times, %d bytes hashed", listed.Load(), hashed.Load())
	}
}

// TestSealTwice: the second finds the first.
func TestSealTwice(t *testing.T) {
	s := goldenSealing(t)
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	failsUnchanged(t, s, fs.ErrExist)
}

// TestSealAlongside: two runs into one runs directory that is not there yet.
func TestSealAlongside(t *testing.T) {
	s := goldenSealing(t)
	errs := make(chan error)
	for _, id := range []string{"a", "b", "c", "d"} {
		opts := s.opts
		opts.RunDir = s.path("CONTRACTS/_runs/" + id)
		go func() {
			_, err := bundle.Seal(t.Context(), opts)
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := namesIn(t, s.path("CONTRACTS/_runs")); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("runs: %q", got)
	}
}

// TestSealRace: of several into one place exactly one gets it.
func TestSealRace(t *testing.T) {
	for range 10 {
		s := goldenSealing(t)
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := bundle.Seal(t.Context(), s.opts)
				errs <- err
			}()
		}
		won := 0
		for range 4 {
			if err := <-errs; err == nil {
				won++
			}
		}
		if won != 1 {
			t.Errorf("%d of 4 say they sealed it", won)
		}
		strict(t, s)
		onlyTheBundle(t, s)
	}
}

// failsUnchanged seals, which must fail and leave the project as it was.
func failsUnchanged(t *testing.T, s *sealing, want error) {
	t.Helper()
	before := bundletest.Snapshot(t, s.Root)
	sealed, err := bundle.Seal(t.Context(), s.opts)
	if err == nil || want != nil && !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	if sealed != (bundle.Sealed{}) {
		t.Errorf("with the error came %+v", sealed)
	}
	if after := bundletest.Snapshot(t, s.Root); after != before {
		t.Errorf("changed:\n%s", bundletest.Changes(before, after))
	}
}

// oneProcessor makes parallel work come in order.
func oneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// TestSealAnother: a name that another process creates while files are hashed is left alone, and
// another name is requested.
func TestSealAnother(t *testing.T) {
	s := goldenSealing(t)
	taken := s.opts.RunDir
	var first sync.Once
	s.opts.Hashed = func(int64) { first.Do(func() { s.Write("CONTRACTS/_runs/run-1/theirs", "x") }) }
	asked := 0
	s.opts.Another = func() string {
		asked++
		if asked == 1 {
			return taken
		}
		s.opts.RunDir = s.path("CONTRACTS/_runs/run-2")
		return s.opts.RunDir
	}
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	strict(t, s)
	if got := namesIn(t, taken); !slices.Equal(got, []string{"theirs"}) || asked != 2 {
		t.Errorf("asked %d times, and there is %q", asked, got)
	}
	s.opts.Another = func() string { return taken }
	s.opts.RunDir = s.path("CONTRACTS/_runs/run-3")
	s.opts.Hashed = func(int64) { s.Write("CONTRACTS/_runs/run-3/theirs", "x") }
	if sealed, err := bundle.Seal(t.Context(), s.opts); !errors.Is(err, fs.ErrExist) || sealed != (bundle.Sealed{}) {
		t.Errorf("sealed %+v, %v", sealed, err)
	}
}
