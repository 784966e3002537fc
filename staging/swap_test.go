package staging

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// An attacker swaps an existing parent with a link out of the root, all the
// time. Nothing ever gets out, and nothing foreign is lost.
func TestSwappedParent(t *testing.T) {
	base := mountTmpfs(t, "")
	plant(t, base, "root/parent/keep", "outside/keep", "root/swap -> ../outside")
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	before := take(t, outside)
	stop := harness.Exchange(t, filepath.Join(root, "parent"), filepath.Join(root, "swap"), func(swaps int) {
		time.Sleep(250 * time.Microsecond << (swaps % 6)) // a commit takes about as long, or less on a fast machine
	})
	done, refused, failed := 0, 0, 0
	rounds, source := sample.Of(100, 200, 5000), swapSource(t)
	for i := 0; i < rounds || (i < 4000 && (done < 10 || refused < 10)); i++ {
		switch e := failureOrNil(t, swappedCommit(t, root, source, i, nil)); {
		case e == nil:
			done++
		case e.Rollback == nil:
			refused++
		default:
			failed++ // our file is where the root does not lead at that moment
			recoverSwapped(t, root)
		}
	}
	t.Logf("%d committed, %d refused, %d with a failed rollback, %d swaps", done, refused, failed, stop())
	if d := diff(before, take(t, outside), false); d != "" {
		t.Errorf("something got out:\n%s", d)
	}
	if done < 10 || refused < 10 {
		t.Error("the attack says nothing: too few of one kind")
	}
}

// The same with a swap before call n and a swap back before call m, for all n
// and many m.
func TestSwappedParentAtEveryCall(t *testing.T) {
	base := mountTmpfs(t, "")
	plant(t, base, "root/parent/keep", "outside/keep", "root/swap -> ../outside")
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	before := take(t, outside)
	swap := func() {
		must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "parent"), unix.AT_FDCWD, filepath.Join(root, "swap"),
			unix.RENAME_EXCHANGE))
	}
	results, spans, source := map[bool]int{}, []int{1, 2, 7, 20, 60}, swapSource(t)
	total, stride := 1, sample.Every(t, 11)
	must(t, swappedCommit(t, root, source, 0, func(_, _ string, f func() error) error {
		total++
		return f()
	}))
	for n := 1; n <= total; n++ {
		for i, span := range spans {
			if !stride.Has((n-1)*len(spans) + i + 1) {
				continue
			}
			calls := 0
			err := swappedCommit(t, root, source, n*100+span, func(op, path string, f func() error) error {
				if calls++; calls == n || calls == n+span {
					swap()
				}
				return f()
			})
			results[err == nil]++
			total = max(total, min(calls, 200))
			if calls >= n && calls < n+span {
				swap()
			}
			recoverSwapped(t, root)
			if d := diff(before, take(t, outside), false); d != "" {
				t.Fatalf("swapped at %d, back at %d: something got out:\n%s", n, n+span, d)
			}
		}
	}
	t.Logf("%d committed, %d refused", results[true], results[false])
	if !sampled() && (results[true] < 10 || results[false] < 10) {
		t.Error("too few of one kind")
	}
}

// recoverSwapped asks until the root leads to what the commit had made.
func recoverSwapped(t *testing.T, root string) {
	l, err := enter(context.Background(), openRoot(t, root), testKey, &sysHook{})
	must(t, err)
	defer l.Close()
	for range 1000 {
		if _, err = l.recover(context.Background(), Person); err == nil {
			return
		}
	}
	t.Error(err)
}

// swappedCommit puts new names below parent.
func swappedCommit(t *testing.T, root, source string, i int, hook func(op, path string, f func() error) error) error {
	file := func(name string) fileAt {
		return fileAt{Path: mustParse(t, name), File: File{
			Size: 1, SHA256: sha256.Sum256([]byte("x")), Perm: 0o644, ModTime: modTime,
			Open:  func(*pathsafe.Opener) (Source, error) { return os.Open(source) },
			Check: func(context.Context, io.ReaderAt) error { return nil },
		}}
	}
	return run(context.Background(), openRoot(t, root), spec{
		files:     []fileAt{file(fmt.Sprintf("parent/f%d", i)), file(fmt.Sprintf("parent/n%d/f", i))},
		artifacts: []artifactAt{{Path: mustParse(t, fmt.Sprintf("parent/r%d", i)), Artifact: Artifact{[]byte("r"), 0o644}}},
		workers:   1,
	}, &runner{testKey, hookedBy(hook)})
}

// swapSource makes the source of every file of the commits.
func swapSource(t *testing.T) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	must(t, os.WriteFile(source, []byte("x"), 0o600))
	return source
}
