package restore_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// The numbers in the names of these tests are those of the hostile list
// (RELIABILITY 2.7). Every bundle is signed as it is.

// TestHostilePathForms: what is not a path is rejected by a restore, and by a view,
// without its source being looked at.
func TestHostilePathForms(t *testing.T) {
	harness.TempInMemory(t)
	const traversal, null = restore.PathTraversalDetected, restore.PathNullByteDetected
	for _, c := range []struct {
		no, path string
		want     restore.Code
	}{
		{"01", "../x", traversal},
		{"02", "a/../../x", traversal},
		{"03", "a/../b", traversal},
		{"04", "..", traversal},
		{"05", ".", traversal},
		{"06", "./a", traversal},
		{"07", "a/./b", traversal},
		{"08", "/etc/passwd", traversal},
		{"09", "//a", traversal},
		{"10", "a//b", traversal},
		{"11", "a/", traversal},
		{"12", "", traversal},
		{"13", `..\x`, traversal},
		{"14", `a\b`, traversal},
		{"15", `C:\x`, traversal},
		{"15b", `\\srv\x`, traversal},
		{"16", "a\x00b", null},
		{"16b", "\x00", null},
		{"17", "../\x00", traversal},
		{"17b", "\x00/..", traversal},
	} {
		for _, chain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chain=%v", c.no, chain), func(t *testing.T) {
				s := only(t, chain, c.path)
				want := restore.Failure{Code: c.want, Phase: restore.Preflight, Path: c.path}
				if chain {
					want.RunID = s.lastID()
				}
				if got := s.refused(); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				p, err := restore.ForView(context.Background(), s.candidate())
				if got := restoretest.FailureOf(t, err); got != want || p != nil {
					t.Errorf("view: %+v, %v", got, p)
				}
			})
		}
	}
}

// TestHostileReservedNames: nothing is written, though the phase
// is VERIFY; in a chain the names are those below the run's directory.
func TestHostileReservedNames(t *testing.T) {
	harness.TempInMemory(t)
	for _, c := range []struct{ no, path string }{
		{"19", "RESTORE_REPORT.json"},
		{"19b", "RESTORE_MANIFEST.json"},
		{"20", "RESTORE_MANIFEST.json/x"},
		{"20b", "RESTORE_REPORT.json/a/b"},
		{"21", ".spectrum06_staging_x/a"},
		{"21b", ".spectrum06_chain_x.json"},
		{"21c", ".spectrum06_"},
	} {
		for _, chain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chain=%v", c.no, chain), func(t *testing.T) {
				s := newScene(t, chain, map[string]string{c.path: "x", "other": "y"})
				want := restore.Failure{Code: restore.ResultArtifactWriteFailed, Phase: restore.Verify, Path: c.path}
				if chain {
					want.RunID, want.Path = s.lastID(), s.lastID()+"/"+c.path
				}
				if got := s.refused(); got != want {
					t.Errorf("%+v, want %+v", got, want)
				}
				p, err := restore.ForView(context.Background(), s.candidate())
				if got := restoretest.FailureOf(t, err); got != want || p != nil {
					t.Errorf("view: %+v, %v", got, p)
				}
			})
		}
	}
}

// TestHostileOrdinaryNames: names that only look dangerous are restored byte
// for byte.
func TestHostileOrdinaryNames(t *testing.T) {
	for _, c := range []struct {
		no    string
		paths []string
	}{
		{"18", []string{"...", "..a", "a/...", "a../b", ". ", " "}},
		{"19c", []string{"restore_report.json", "d/RESTORE_REPORT.json", "RESTORE_REPORT.json.", "d/.spectrum06_staging_x", ".spectrum0"}},
		{"26", []string{"A", "a"}},
		{"27", []string{"\u00e9", "e\u0301"}},
		{"28", []string{"\x1b[2J\x1b]0;x\x07", "a\nb", "a\tb", "\u202egpj.exe", "a|b", "`a`", "<script>", "\"", "'", "\u2028", "\x7f", "\r"}},
		{"29", []string{"%2e%2e/x", "\uff0e\uff0e\uff0fx", "..%00", "..;/x"}},
		{"30", []string{"--json", "-rf", "-", "--/x"}},
		{"31", []string{"proc/self/fd/3", "dev/null", "NUL", "CON", "~", "$HOME", "*", "?"}},
	} {
		for _, chain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chain=%v", c.no, chain), func(t *testing.T) {
				outputs, want := map[string]string{}, map[string]string{}
				s := newScene(t, chain)
				for i, p := range c.paths {
					outputs[p] = fmt.Sprint("content ", i)
				}
				s.add("run-1", outputs)
				for p, content := range outputs {
					if chain {
						p = "run-1/" + p
					}
					want[p] = content
				}
				s.mustRestore(want)
			})
		}
	}
}

// TestHostileLength: 22, 23 and 25 have no source, so the verifier rejects them, on every file
// system.
func TestHostileLength(t *testing.T) {
	for _, c := range []struct{ no, path string }{
		{"22 component of 256 bytes", strings.Repeat("c", 256)},
		{"22b", "d/" + strings.Repeat("c", 256) + "/x"},
		{"23 path of 5000 bytes", strings.Repeat("abcd/", 999) + "abcde"},
		{"23b depth 2000", strings.Repeat("d/", 1999) + "d"},
		{"23c one byte too long", strings.Repeat("d/", 2047) + "dd"},
	} {
		for _, chain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chain=%v", c.no, chain), func(t *testing.T) {
				s := only(t, chain, c.path)
				if got := s.refused(); got.Code != restore.VerifyStrictFailed || got.Path != c.path {
					t.Errorf("%+v", got)
				}
				_, err := s.plan()
				wantVerdict(t, err, verify.OutputMissing)
			})
		}
	}
}

// 25: a file cannot be a directory too.
func TestHostileFileAndDirectory(t *testing.T) {
	for _, source := range []string{"a", "a/b"} {
		s := newScene(t, false, map[string]string{source: "x"})
		s.last().EditHashes(func(h map[string]any) {
			h["a"], h["a/b"] = bundletest.Hash("x"), bundletest.Hash("x")
		})
		if got := s.refused(); got.Code != restore.VerifyStrictFailed {
			t.Errorf("with a source at %q: %+v", source, got)
		}
	}
}

// 24: a path of the greatest length is restored, although with the restore root
// before it it would be too long for any system call.
func TestHostileLongestPath(t *testing.T) {
	long := strings.Repeat(strings.Repeat("d", 254)+"/", 15) + strings.Repeat("d", 254) + "/" + strings.Repeat("f", 14)
	if len(long) != 4094 {
		t.Fatal(len(long))
	}
	for _, chain := range []bool{false, true} {
		t.Run(fmt.Sprintf("chain=%v", chain), func(t *testing.T) {
			target := long
			if chain { // the run's directory counts too
				target = strings.Replace(long, strings.Repeat("d", 254), strings.Repeat("d", 240), 1)
			}
			s := newScene(t, chain, oneRun)
			deepWrite(t, s.Root, target, "deep\n")
			s.last().EditHashes(func(h map[string]any) {
				clear(h)
				h[target] = bundletest.Hash("deep\n")
			})
			must(t, s.commit())
			if chain {
				target = "run-1/" + target
			}
			if got := deepRead(t, s.root, target); got != "deep\n" {
				t.Errorf("restored %q", got)
			}
		})
	}
}

// deep calls do with the parent directory of a path that is too long for one
// call.
func deep(t testing.TB, root, p string, mkdirs bool, do func(parent int, name string)) {
	t.Helper()
	fd, err := unix.Open(root, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	for _, name := range strings.Split(path.Dir(p), "/") {
		if mkdirs {
			must(t, unix.Mkdirat(fd, name, 0o755))
		}
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	defer unix.Close(fd)
	do(fd, path.Base(p))
}

func deepWrite(t testing.TB, root, p, content string) {
	t.Helper()
	deep(t, root, p, true, func(parent int, name string) {
		fd, err := unix.Openat(parent, name, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		must(t, err)
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		_, err = f.WriteString(content)
		must(t, err)
	})
}

func deepRead(t testing.TB, root, p string) (content string) {
	t.Helper()
	deep(t, root, p, false, func(parent int, name string) {
		fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		must(t, err)
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		buf := make([]byte, 100)
		n, _ := f.Read(buf)
		content = string(buf[:n])
	})
	return content
}

// The same place by two ways: a link in the restore root, which is allowed,
// leads one target to another one's place. It is rejected before anything is
// written. This is what 26 and 27 are on a file system that folds names.
func TestHostileSamePlaceTwice(t *testing.T) {
	s := newScene(t, false, map[string]string{"a/x": "1", "b/x": "2"})
	must(t, harness.Directory(s.inRoot("a")))
	s.link("a", "b")
	a := s.approved()
	before := bundletest.Census(t, s.arena)
	err := commitApproved(a)
	want := restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: "b/x"}
	if got := restoretest.FailureOf(t, err); got != want {
		t.Errorf("%+v", got)
	}
	if bundletest.Census(t, s.arena) != before {
		t.Error("it left a trace")
	}
}
