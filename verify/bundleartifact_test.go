package verify_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// strictReread verifies as a view does.
func strictReread(t testing.TB, r *bundletest.Run) (b *verify.Bundle, err error) {
	t.Helper()
	run := openRuns(t, r)[0]
	err = inTime(t, func() (err error) {
		b, err = verify.Strict(t.Context(), run, verify.Watch{Reread: true})
		return err
	})
	return b, err
}

// rereadRun is a run that was verified as a view does, with an artifact of more
// than a block.
func rereadRun(t testing.TB) (*bundletest.Run, *verify.Bundle) {
	t.Helper()
	r := newRun(t)
	r.Edit(bundle.TaskSpec, func(f map[string]any) { f["constraints"] = map[string]any{"long": strings.Repeat("x", 3*block)} })
	r.Sign()
	b, err := strictReread(t, r)
	must(t, err)
	return r, b
}

func artifactsOf(b *verify.Bundle) []verify.Artifact { return slices.Collect(b.Artifacts()) }

// readArtifact reads all of an artifact, in pieces.
func readArtifact(t testing.TB, a verify.Artifact) (content []byte, err error) {
	t.Helper()
	err = inTime(t, func() error {
		source, err := a.Open()
		if err != nil {
			return err
		}
		defer source.Close()
		content, err = io.ReadAll(io.NewSectionReader(source, 0, 1<<40))
		return err
	})
	return content, err
}

func TestArtifactsReadBack(t *testing.T) {
	r, b := rereadRun(t)
	var names []string
	for _, a := range artifactsOf(b) {
		names = append(names, a.Name())
		info, err := os.Stat(r.Path(a.Name()))
		must(t, err)
		want := r.Read(a.Name())
		if a.Size() != int64(len(want)) || !a.ModTime().Equal(info.ModTime()) {
			t.Errorf("%s: %d bytes of %v", a.Name(), a.Size(), a.ModTime())
		}
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				if got, err := readArtifact(t, a); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: read %d bytes, %v", a.Name(), len(got), err)
				}
			})
		}
		readers.Wait()
	}
	if !slices.Equal(names, strictOrder) {
		t.Errorf("artifacts %q", names)
	}
	must(t, b.ArtifactsIntact())
}

// TestArtifactsAreWantedFirst: a bundle has artifacts only if they were requested.
func TestArtifactsAreWantedFirst(t *testing.T) {
	b, err := strict(t, newRun(t))
	must(t, err)
	if got := artifactsOf(b); len(got) > 0 {
		t.Errorf("%d artifacts", len(got))
	}
}

// TestArtifactsOfAClosedRun need neither the run's handle nor the old inodes.
func TestArtifactsOfAClosedRun(t *testing.T) {
	r := newRun(t)
	run := openRuns(t, r)[0]
	b, err := verify.Strict(t.Context(), run, verify.Watch{Reread: true})
	must(t, err)
	must(t, run.Close())
	for _, a := range artifactsOf(b) {
		if got, err := readArtifact(t, a); err != nil || !bytes.Equal(got, r.Read(a.Name())) {
			t.Errorf("%s: %d bytes, %v", a.Name(), len(got), err)
		}
	}
	must(t, b.ArtifactsIntact())
}

// tampering is something that happens to an artifact after it was verified.
type tampering struct {
	name string
	do   func(t testing.TB, path string)
	gone bool // it does not open any more; else what is read is right or an error
}

// keepTimes does something to a file and sets its times back.
func keepTimes(do func(t testing.TB, path string)) func(testing.TB, string) {
	return func(t testing.TB, path string) {
		info, err := os.Stat(path)
		must(t, err)
		do(t, path)
		must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

// become makes something else of an artifact.
func become(make func(path string) error) func(testing.TB, string) {
	return func(t testing.TB, path string) { replaceBy(t, path, make) }
}

// change rewrites an artifact in its place.
func change(edit func(raw []byte) []byte) func(testing.TB, string) {
	return func(t testing.TB, path string) {
		raw, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, edit(raw), 0o644))
	}
}

func flipAt(i int) func(raw []byte) []byte {
	return func(raw []byte) []byte {
		raw[(i+len(raw))%len(raw)] ^= 1
		return raw
	}
}

// aside keeps a copy of a file where the run does not look.
func aside(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	other := filepath.Join(t.TempDir(), "copy")
	must(t, os.WriteFile(other, raw, 0o644))
	return other
}

var tamperings = []tampering{
	{name: "first bit", do: change(flipAt(0))},
	{name: "last bit", do: change(flipAt(-1))},
	{name: "last bit, times restored", do: keepTimes(change(flipAt(-1)))},
	{name: "another file, times restored", do: keepTimes(func(t testing.TB, path string) {
		other := aside(t, path)
		change(flipAt(-1))(t, other)
		must(t, os.Rename(other, path))
	})},
	{name: "one byte less", do: change(func(raw []byte) []byte { return raw[:len(raw)-1] })},
	{name: "one byte less, times restored", do: keepTimes(change(func(raw []byte) []byte { return raw[:len(raw)-1] }))},
	{name: "one byte more", do: change(func(raw []byte) []byte { return append(raw, ' ') })},
	{name: "emptied", do: change(func([]byte) []byte { return nil })},
	{name: "removed", do: become(func(string) error { return nil }), gone: true},
	{name: "FIFO", do: become(harness.FIFO), gone: true},
	{name: "directory", do: become(harness.Directory), gone: true},
	{name: "socket", do: become(harness.Socket), gone: true},
	{name: "device", do: become(charDevice), gone: true},
	{name: "dangling link", do: become(harness.LinkTo("nowhere")), gone: true},
	{name: "link to itself", do: become(func(path string) error { return os.Symlink(filepath.Base(path), path) }), gone: true},
	{name: "link to the same content", do: func(t testing.TB, path string) {
		other := aside(t, path)
		replaceBy(t, path, harness.LinkTo(other))
	}, gone: true},
	{name: "run directory removed", do: func(t testing.TB, path string) { must(t, os.RemoveAll(filepath.Dir(path))) }, gone: true},
	{name: "run directory a file", do: func(t testing.TB, path string) {
		replaceBy(t, filepath.Dir(path), func(dir string) error { return writeFile(dir, "x") })
	}, gone: true},
	{name: "run directory a FIFO", do: func(t testing.TB, path string) { replaceBy(t, filepath.Dir(path), harness.FIFO) }, gone: true},
	{name: "run directory another, empty", do: func(t testing.TB, path string) {
		must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-old"))
		must(t, os.Mkdir(filepath.Dir(path), 0o755))
	}, gone: true},
	{name: "run directory of another run", do: func(t testing.TB, path string) {
		must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-old"))
		must(t, os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(path)+"-old")))
		change(flipAt(-1))(t, path)
	}, gone: true},
	{name: "run directory a copy of itself", do: func(t testing.TB, path string) {
		must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-old"))
		must(t, os.CopyFS(filepath.Dir(path), os.DirFS(filepath.Dir(path)+"-old")))
	}, gone: true},
}

// TestTamperedArtifacts changes each artifact in each way: reading returns the verified bytes or an
// error, does not block, and the artifact is not intact.
func TestTamperedArtifacts(t *testing.T) {
	tried := sample.Every(t, 6)
	for n, tamper := range tamperings {
		t.Run(tamper.name, func(t *testing.T) {
			for i, name := range strictOrder {
				if !tried.Has(n*len(strictOrder) + i + 1) {
					continue
				}
				r, b := rereadRun(t)
				want := r.Read(name)
				must(t, b.ArtifactsIntact())
				tamper.do(t, r.Path(name))
				checkTampered(t, artifactsOf(b)[i], tamper, want)
				err := inTime(t, b.ArtifactsIntact)
				if err == nil || !strings.Contains(err.Error(), name) && !strings.HasPrefix(tamper.name, "run directory") {
					t.Errorf("%s: intact: %v", name, err)
				}
			}
		})
	}
}

func checkTampered(t *testing.T, a verify.Artifact, tamper tampering, want []byte) {
	t.Helper()
	got, err := readArtifact(t, a)
	if !bytes.HasPrefix(want, got) || err == nil && !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v: not what was verified", a.Name(), len(got), err)
	}
	var mismatch *blockhash.MismatchError
	switch {
	case tamper.gone && (err == nil || errors.As(err, &mismatch)):
		t.Errorf("%s: %v", a.Name(), err)
	case !tamper.gone && tamper.name != "one byte more" && !errors.As(err, &mismatch):
		t.Errorf("%s: %v, want a mismatch", a.Name(), err)
	}
}

// TestOpenArtifactStaysChecked: a handle that was opened before returns no other bytes either.
func TestOpenArtifactStaysChecked(t *testing.T) {
	r, b := rereadRun(t)
	for _, a := range artifactsOf(b) {
		source, err := a.Open()
		must(t, err)
		defer source.Close()
		change(flipAt(-1))(t, r.Path(a.Name()))
		p := []byte{0xa5}
		var mismatch *blockhash.MismatchError
		if n, err := source.ReadAt(p, a.Size()-1); n != 0 || !errors.As(err, &mismatch) || p[0] != 0xa5 {
			t.Errorf("%s: %d bytes, %v", a.Name(), n, err)
		}
	}
}

// TestIntactAll: whatever leaves the bytes as they were.
func TestIntactAll(t *testing.T) {
	for name, do := range map[string]func(t testing.TB, path string){
		"touched":        func(t testing.TB, path string) { must(t, os.Chtimes(path, time.Time{}, time.Unix(1e9, 5))) },
		"mode":           func(t testing.TB, path string) { must(t, os.Chmod(path, 0o600)) },
		"hard link":      func(t testing.TB, path string) { must(t, os.Link(path, filepath.Join(t.TempDir(), "link"))) },
		"rewritten":      change(func(raw []byte) []byte { return raw }),
		"copied":         func(t testing.TB, path string) { must(t, os.Rename(aside(t, path), path)) },
		"there and back": func(t testing.TB, path string) { change(flipAt(7))(t, path); change(flipAt(7))(t, path) },
		"directory behind a link": func(t testing.TB, path string) {
			must(t, os.Rename(filepath.Dir(path), filepath.Dir(path)+"-old"))
			must(t, os.Symlink(filepath.Base(filepath.Dir(path))+"-old", filepath.Dir(path)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, b := rereadRun(t)
			for _, name := range strictOrder {
				do(t, r.Path(name))
				must(t, inTime(t, b.ArtifactsIntact))
				must(t, b.ArtifactsIntact())
				if strings.Contains(t.Name(), "directory") {
					break // that is all of them at once
				}
			}
			change(flipAt(-1))(t, r.Path(bundle.Proof))
			if b.ArtifactsIntact() == nil {
				t.Error("and a changed byte after it is not seen")
			}
		})
	}
}

// TestIntactAgain: a run that was made good again is intact again; nothing of
// the bad file is remembered as good.
func TestIntactAgain(t *testing.T) {
	r, b := rereadRun(t)
	for _, name := range strictOrder {
		for range 3 {
			change(flipAt(3))(t, r.Path(name))
			for range 2 {
				if b.ArtifactsIntact() == nil {
					t.Fatalf("%s: intact", name)
				}
			}
			change(flipAt(3))(t, r.Path(name))
			must(t, b.ArtifactsIntact())
		}
	}
}

// TestUntouchedIsNotRead: a file that looks as it did is not read, one that was
// touched is read once.
func TestUntouchedIsNotRead(t *testing.T) {
	r, b := rereadRun(t)
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, r.Path(bundle.TaskSpec), unix.IN_ACCESS)
	must(t, err)
	read := func() bool {
		must(t, b.ArtifactsIntact())
		n, err := unix.Read(fd, make([]byte, 4096))
		return err == nil && n > 0
	}
	if read() {
		t.Error("it was read although it was not requested")
	}
	must(t, os.Chtimes(r.Path(bundle.TaskSpec), time.Time{}, time.Unix(1e9, 0)))
	if !read() {
		t.Error("it was touched and not read")
	}
	if read() {
		t.Error("it was read again")
	}
}

// TestIntactInParallel is for the race detector.
func TestIntactInParallel(t *testing.T) {
	r, b := rereadRun(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if err := b.ArtifactsIntact(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 50 {
		must(t, os.Chtimes(r.Path(bundle.Status), time.Time{}, time.Unix(int64(1e9+i), 0)))
	}
	group.Wait()
}

// TestNoDescriptorOfArtifacts: neither looking nor reading leaves one open.
func TestNoDescriptorOfArtifacts(t *testing.T) {
	r, b := rereadRun(t)
	before := len(harness.OpenFiles(t, os.Getpid()))
	for _, tamper := range []func(testing.TB, string){func(testing.TB, string) {}, change(flipAt(0)), become(harness.FIFO), become(harness.Directory)} {
		tamper(t, r.Path(bundle.Identity))
		for range 10 {
			_ = b.ArtifactsIntact()
			for _, a := range artifactsOf(b) {
				_, _ = readArtifact(t, a)
			}
		}
	}
	if after := len(harness.OpenFiles(t, os.Getpid())); after != before {
		t.Errorf("%d descriptors, before %d", after, before)
	}
}

// TestSwappedDirectory: a directory that takes the run's place, with a file of
// an artifact's size, mode and times in it.
func TestSwappedDirectory(t *testing.T) {
	r := newRun(t)
	twin := r.Dir + "-twin"
	must(t, os.CopyFS(twin, os.DirFS(r.Dir)))
	raw := r.Read(bundle.Proof)
	for i, dir := range []string{r.Dir, twin} {
		path := filepath.Join(dir, bundle.Proof)
		must(t, os.WriteFile(path, append(raw, " \n"[i]), 0o644))
		must(t, os.Chtimes(path, time.Unix(1, 2), time.Unix(3, 4)))
	}
	b, err := strictReread(t, r)
	must(t, err)
	must(t, unix.Renameat2(unix.AT_FDCWD, r.Dir, unix.AT_FDCWD, twin, unix.RENAME_EXCHANGE))
	if b.ArtifactsIntact() == nil {
		t.Error("it is taken for the artifact")
	}
	must(t, unix.Renameat2(unix.AT_FDCWD, r.Dir, unix.AT_FDCWD, twin, unix.RENAME_EXCHANGE))
	must(t, b.ArtifactsIntact())
}
