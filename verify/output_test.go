package verify_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

const block = blockhash.BlockSize

// bigRun is a run with an output of three blocks and a half.
func bigRun(t testing.TB) (*bundletest.Run, *verify.Bundle, string) {
	t.Helper()
	content := strings.Repeat("0123456789abcdef", 7*block/32)
	r := bundletest.New(t).Run("run-1", map[string]string{"dist/big": content, "dist/empty": ""})
	b, err := strict(t, r)
	must(t, err)
	return r, b, content
}

// TestOutput: the properties of an output are those of the file.
func TestOutput(t *testing.T) {
	r := newRun(t)
	when := time.Date(2031, 2, 3, 4, 5, 6, 789, time.UTC)
	must(t, os.Chtimes(at(r, "dist/a"), when, when))
	must(t, os.Chmod(at(r, "dist/a"), 0o751|os.ModeSetuid|os.ModeSetgid|os.ModeSticky))
	b, err := strict(t, r)
	must(t, err)
	o := outputAt(t, b, "dist/a")
	if o.Size() != 3 || o.Hash() != bundletest.Hash("aaa") || !o.ModTime().Equal(when) || o.Perm() != 0o751 {
		t.Errorf("%d bytes, %s, %v, %v", o.Size(), o.Hash(), o.ModTime(), o.Perm())
	}
	st, err := o.Lstat()
	if err != nil || st.Size != 3 {
		t.Errorf("Lstat: %+v, %v", st, err)
	}
}

// TestModTimes: a file may be of any year that its file system can hold.
func TestModTimes(t *testing.T) {
	for _, year := range []int{1902, 1969, 1970, 2038, 2261, 2263, 2400} {
		r := newRun(t)
		when := time.Date(year, 7, 1, 0, 0, 0, 5, time.UTC)
		stamp := unix.Timespec{Sec: when.Unix(), Nsec: 5} // os.Chtimes ends in 2262
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, at(r, "dist/a"), []unix.Timespec{stamp, stamp}, 0))
		info, err := os.Stat(at(r, "dist/a"))
		must(t, err)
		b, err := strict(t, r)
		must(t, err)
		if got := outputAt(t, b, "dist/a").ModTime(); !got.Equal(info.ModTime()) {
			t.Errorf("year %d: got %v, the file says %v", year, got.UTC(), info.ModTime().UTC())
		}
	}
}

// TestOutputIsAsVerified: attributes do not follow the source.
func TestOutputIsAsVerified(t *testing.T) {
	r, b, content := bigRun(t)
	o := outputAt(t, b, "dist/big")
	before := []any{o.Size(), o.Hash(), o.Perm(), o.ModTime()}
	r.Write("dist/big", "other")
	must(t, os.Chmod(at(r, "dist/big"), 0o600))
	for i, now := range []any{o.Size(), o.Hash(), o.Perm(), o.ModTime()} {
		if now != before[i] {
			t.Errorf("%v became %v", before[i], now)
		}
	}
	if o.Size() != int64(len(content)) {
		t.Errorf("size %d", o.Size())
	}
}

// TestReadAfterClose: outputs can be read when the run is closed.
func TestReadAfterClose(t *testing.T) {
	r := newRun(t)
	project, err := pathsafe.OpenRoot(r.Root)
	must(t, err)
	defer project.Close()
	run, err := verify.OpenRun(project, r.Dir)
	must(t, err)
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	must(t, run.Close())
	must(t, os.RemoveAll(r.Dir))
	if got := readAll(t, outputAt(t, b, "dist/a")); got != "aaa" {
		t.Errorf("read %q", got)
	}
}

// TestFlippedByte: only the block with the changed byte cannot be read.
func TestFlippedByte(t *testing.T) {
	r, b, content := bigRun(t)
	source, err := outputAt(t, b, "dist/big").Open(nil)
	must(t, err)
	defer source.Close()
	for i := range 4 {
		at := min(i*block+block/2, len(content)-1)
		flip(t, r, at)
		for j := range 4 {
			p := make([]byte, min(block, len(content)-j*block))
			n, err := source.ReadAt(p, int64(j*block))
			var mismatch *blockhash.MismatchError
			switch {
			case j != i && (err != nil || string(p) != content[j*block:][:n]):
				t.Errorf("block %d bad: block %d gives %v", i, j, err)
			case j == i && (!errors.As(err, &mismatch) || mismatch.Block != int64(i) || n != 0):
				t.Errorf("block %d bad: it gives %d bytes and %v", i, n, err)
			}
		}
		n, err := io.NewSectionReader(source, 0, int64(len(content))).ReadAt(make([]byte, len(content)), 0)
		if n != i*block || err == nil {
			t.Errorf("block %d bad: all at once gives %d bytes and %v", i, n, err)
		}
		flip(t, r, at) // and good again
	}
	if got := readAll(t, outputAt(t, b, "dist/big")); got != content {
		t.Error("in the end it does not read")
	}
}

// flip changes one byte of dist/big in place.
func flip(t *testing.T, r *bundletest.Run, off int) {
	t.Helper()
	f, err := os.OpenFile(at(r, "dist/big"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	var p [1]byte
	_, err = f.ReadAt(p[:], int64(off))
	must(t, err)
	p[0] ^= 0x40
	_, err = f.WriteAt(p[:], int64(off))
	must(t, err)
}

// TestTruncatedAndGrown sources.
func TestTruncatedAndGrown(t *testing.T) {
	r, b, content := bigRun(t)
	o := outputAt(t, b, "dist/big")
	must(t, os.Truncate(at(r, "dist/big"), block+5))
	source, err := o.Open(nil)
	must(t, err)
	defer source.Close()
	var mismatch *blockhash.MismatchError
	if n, err := source.ReadAt(make([]byte, 3*block), 0); n != block || !errors.As(err, &mismatch) || mismatch.Got != 5 {
		t.Errorf("cut: %d bytes, %v", n, err)
	}
	r.Write("dist/big", content+"more")
	if got := readAll(t, o); got != content {
		t.Errorf("grown: %d bytes", len(got))
	}
	if err := o.Check(source).Check(context.Background()); err != nil {
		t.Errorf("the handle is held, and the content is right again: %v", err)
	}
}

// TestReplacedSource: nothing but a regular file is opened, and nothing hangs.
func TestReplacedSource(t *testing.T) {
	kinds := special()
	kinds["link to the same content"] = harness.LinkTo("copy")
	kinds["link to itself"] = harness.LinkTo("big")
	kinds["nothing"] = func(string) error { return nil }
	for _, kind := range sortedKeys(kinds) {
		r, b, content := bigRun(t)
		r.Write("dist/copy", content)
		o := outputAt(t, b, "dist/big")
		replaceBy(t, at(r, "dist/big"), kinds[kind])
		want := pathsafe.ErrNotRegular
		switch {
		case strings.HasPrefix(kind, "link"):
			want = pathsafe.ErrSymlink
		case kind == "nothing":
			want = fs.ErrNotExist
		}
		must(t, inTime(t, func() error {
			if source, err := o.Open(nil); !errors.Is(err, want) || source != nil {
				t.Errorf("%s: Open gives %v", kind, err)
			}
			if f, err := o.OpenSource(); !errors.Is(err, want) || f != nil {
				t.Errorf("%s: OpenSource gives %v", kind, err)
			}
			return nil
		}))
	}
}

// TestReplacedParent by a link that leads to the same files.
func TestReplacedParent(t *testing.T) {
	r, b, _ := bigRun(t)
	must(t, os.Rename(at(r, "dist"), at(r, "real")))
	must(t, os.Symlink("real", at(r, "dist")))
	o := outputAt(t, b, "dist/big")
	if _, err := o.Open(nil); !errors.Is(err, pathsafe.ErrSymlink) {
		t.Errorf("Open gives %v", err)
	}
	if _, err := o.Lstat(); !errors.Is(err, pathsafe.ErrSymlink) {
		t.Errorf("Lstat gives %v", err)
	}
}

// TestSourceThatIsALink: verified, and never read.
func TestSourceThatIsALink(t *testing.T) {
	r := newRun(t)
	r.Write("dist/real", "aaa")
	replaceBy(t, at(r, "dist/a"), harness.LinkTo("real"))
	b, err := strict(t, r)
	must(t, err)
	o := outputAt(t, b, "dist/a")
	if _, err := o.Open(nil); !errors.Is(err, pathsafe.ErrSymlink) {
		t.Errorf("Open gives %v", err)
	}
	if _, err := o.Lstat(); !errors.Is(err, pathsafe.ErrSymlink) {
		t.Errorf("Lstat gives %v", err)
	}
}

// TestCheckOfACopy: a copy is compared with the signed hash.
func TestCheckOfACopy(t *testing.T) {
	_, b, content := bigRun(t)
	o := outputAt(t, b, "dist/big")
	path := filepath.Join(t.TempDir(), "copy")
	for copied, ok := range map[string]bool{content: true, content[:len(content)-1]: false, "": false, "x" + content[1:]: false, content[:len(content)-1] + "x": false} {
		must(t, writeFile(path, copied))
		f, err := os.Open(path)
		must(t, err)
		if err := o.Check(f).Check(t.Context()); (err == nil) != ok {
			t.Errorf("a copy of %d bytes: %v", len(copied), err)
		}
		f.Close()
	}
	if err := outputAt(t, b, "dist/empty").Check(strings.NewReader("")).Check(t.Context()); err != nil {
		t.Errorf("the empty one: %v", err)
	}
}

// TestWatch: every byte that is read is reported, once.
func TestWatch(t *testing.T) {
	r, _, content := bigRun(t)
	var total int64
	watch := verify.Watch{Hashed: func(n int64) { total += n }}
	_, err := verify.Strict(t.Context(), openRuns(t, r)[0], watch)
	must(t, err)
	if total != int64(len(content)) {
		t.Errorf("reported %d bytes of %d", total, len(content))
	}
}

// TestCancelled is not a verdict, in any law, before the work and within it.
func TestCancelled(t *testing.T) {
	r, _, _ := bigRun(t)
	run := openRuns(t, r)[0]
	laws := map[string]func(context.Context, verify.Watch) error{
		"strict": func(ctx context.Context, w verify.Watch) error {
			b, err := verify.Strict(ctx, run, w)
			return none(b == nil, err)
		},
		"gate": func(ctx context.Context, w verify.Watch) error {
			g, err := verify.Gate(ctx, run, w)
			return none(g == nil, err)
		},
		"resume": func(ctx context.Context, w verify.Watch) error { return verify.Resume(ctx, run, "", w) },
		"memory": func(ctx context.Context, w verify.Watch) error { return verify.Memory(ctx, []*verify.Run{run}, w) },
		"chain": func(ctx context.Context, w verify.Watch) error {
			c, err := verify.StrictChain(ctx, []*verify.Run{run}, w)
			return none(c == nil, err)
		},
		"gate chain": func(ctx context.Context, w verify.Watch) error {
			c, err := verify.GateChain(ctx, []*verify.Run{run}, w)
			return none(c == nil, err)
		},
	}
	for name, law := range laws {
		for _, late := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			if !late {
				cancel()
			}
			err := law(ctx, verify.Watch{Hashed: func(int64) { cancel() }})
			var reject *verify.Reject
			if errors.As(err, &reject) || !late && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, late %v: %v", name, late, err)
			}
			cancel()
		}
	}
}

// countdown is a context that is done after n calls of Err.
type countdown struct {
	context.Context
	left *atomic.Int64
}

func (c countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledAnywhere stops at every place that looks, also in the middle of
// a file.
func TestCancelledAnywhere(t *testing.T) {
	r, _, _ := bigRun(t)
	must(t, os.Truncate(at(r, "dist/big"), 20*block))
	r.EditHashes(func(h map[string]any) { h["dist/big"] = bundletest.Hash(readFile(t, at(r, "dist/big"))) })
	run := openRuns(t, r)[0]
	stops := 0
	for n := int64(0); ; n++ {
		ctx := countdown{t.Context(), &atomic.Int64{}}
		ctx.left.Store(n)
		b, err := verify.Strict(ctx, run, verify.Watch{})
		if err == nil {
			break
		}
		var reject *verify.Reject
		if stops++; b != nil || errors.As(err, &reject) || !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d looks: %v", n, err)
		}
	}
	if stops < 6 {
		t.Errorf("stopped at %d places; a big file alone has five", stops)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}

// none is the error, unless a result came with it.
func none(nothing bool, err error) error {
	if err != nil && !nothing {
		return errors.New("a result came with the error")
	}
	return err
}

// TestManyOutputs: the first in order is reported, whatever ends first.
func TestManyOutputs(t *testing.T) {
	outputs := map[string]string{}
	for i := range 200 {
		outputs["o/"+string(rune('a'+i/26))+string(rune('a'+i%26))] = strings.Repeat("x", i*37)
	}
	r := bundletest.New(t).Run("run-1", outputs)
	run := openRuns(t, r)[0]
	paths := sortedKeys(outputs)
	for i, path := range paths {
		if i%3 == 2 {
			r.Write(path, "changed")
		} else if i%7 == 5 {
			must(t, os.Remove(at(r, path)))
		}
	}
	_, err := verify.Strict(t.Context(), run, verify.Watch{})
	checkReject(t, err, want{verify.HashMismatch, mismatch(paths[2], bundletest.Hash(outputs[paths[2]]), "changed")})
	always(t, func() error { _, err := verify.Strict(t.Context(), run, verify.Watch{}); return err })
}
