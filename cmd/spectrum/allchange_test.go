package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestLatestPassesOverChangedRuns: an accepted run that is given another time of completion is
// another run; this counts even if the run is not entered.
func TestLatestPassesOverChangedRuns(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	older := project.Run("older", map[string]string{"a": "a"})
	newer := project.Run("newer", map[string]string{"b": "b"})
	completedAt(newer, "2026-05-01T00:00:00Z")
	v := mountAll(t, project)
	for _, id := range []string{"older", "newer"} {
		names(t, v.at(id))
	}
	older.Edit(bundle.Status, func(f map[string]any) { f["completed_at"] = "2030-01-01T00:00:00Z" })
	if got, err := os.Readlink(v.at("latest")); err != nil || got != "newer" {
		t.Errorf("latest is %q, %v: by an unsigned change", got, err)
	}
	harness.Flip(t, newer.Path(bundle.Proof), 3)
	harness.Eventually(t, "no run is left", func() bool {
		_, err := os.Readlink(v.at("latest"))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// becomesEIO polls until a file, also where it is cached, gives an error.
func becomesEIO(t *testing.T, path string) {
	t.Helper()
	harness.Eventually(t, "EIO for "+path, func() bool {
		_, err := os.ReadFile(path)
		return errors.Is(err, syscall.EIO)
	})
}

// TestChangedRun: nothing of a run is read any more when its artifacts change,
// cached or not; the others are, and what looks like a change is none.
func TestChangedRun(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	good := project.Run("good", map[string]string{"g": "good"})
	bad := project.Run("bad", map[string]string{"cached": "cached", "d/other": "other"})
	v := mountAll(t, project)
	for _, path := range []string{"good/g", "bad/cached", "bad/.spectrum/candidate.json"} {
		if _, err := os.ReadFile(v.at(path)); err != nil {
			t.Fatal(err)
		}
	}
	sources := countOpens(t, filepath.Join(project.Root, "cached"))
	check(t, os.Chtimes(good.Path(bundle.Status), time.Now(), time.Now()))
	check(t, os.Chmod(good.Path(bundle.Signature), 0o600))
	good.WriteRaw(bundle.Identity, good.Read(bundle.Identity)) // another inode
	harness.Flip(t, bad.Path(bundle.Status), 2)
	for _, path := range []string{"bad/cached", "bad/d/other", "bad/.spectrum/candidate.json", "bad/RESTORE_REPORT.json"} {
		becomesEIO(t, v.at(path))
	}
	harness.Flip(t, bad.Path(bundle.Status), 2) // repaired: it stays as it is
	for range 30 {
		if _, err := os.ReadFile(v.at("bad/cached")); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(v.at("good/g")); err != nil || string(got) != "good" {
			t.Fatalf("%q, %v", got, err)
		}
		time.Sleep(50 * time.Millisecond) // longer than the view goes without a look
	}
	if v.state("bad") != "changed" || v.state("good") != "accepted" || !v.status().Tampered {
		t.Errorf("%+v", v.status())
	}
	if n := sources.count(); n != 0 {
		t.Errorf("it was verified again: %d opens", n)
	}
	if said, err := v.stop(os.Interrupt); err != nil || strings.Count(said, "a run changed after it was verified") != 1 || strings.Contains(said, "good") {
		t.Errorf("%v: %s", err, said)
	}
}

// TestChangedRunIsNoticed without a lookup of its name: by a read of status.json alone, and by a
// reader that has one of its files open.
func TestChangedRunIsNoticed(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	one := project.Run("one", map[string]string{"a": "alpha"})
	two := project.Run("two", map[string]string{"b": "beta"})
	v := mountAll(t, project)
	names(t, v.at("one"))
	f, err := os.Open(v.at("two/b"))
	check(t, err)
	defer f.Close()
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Fatal(err)
	}
	harness.Flip(t, one.Path(bundle.Status), 2)
	harness.Eventually(t, "status.json says so", func() bool { return v.state("one") == "changed" })
	harness.Flip(t, two.Path(bundle.Status), 2)
	harness.Eventually(t, "EIO for who has it open", func() bool {
		check(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)) // or the kernel answers, once it has the block
		_, err := f.ReadAt(make([]byte, 1), 0)
		return errors.Is(err, syscall.EIO)
	})
}

// TestRemovedRun: it vanishes, comes back as it was, and when another has taken
// its place nothing of either is read.
func TestRemovedRun(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	aside := filepath.Join(project.Root, "aside")
	v := mountAll(t, project)
	reads := func() error { _, err := os.ReadFile(v.at("run-1/a")); return err }
	check(t, reads())
	check(t, os.Rename(run.Dir, aside))
	harness.Eventually(t, "it is gone", func() bool { return errors.Is(reads(), fs.ErrNotExist) && len(names(t, v.dir)) == 0 })
	check(t, os.Rename(aside, run.Dir))
	harness.Eventually(t, "it is back", func() bool { return reads() == nil })
	check(t, os.RemoveAll(run.Dir))
	project.Run("run-1", map[string]string{"b": "another run, and the output is as it was"})
	becomesEIO(t, v.at("run-1/a"))
	if v.state("run-1") != "changed" {
		t.Errorf("%+v", v.status())
	}
	if got := names(t, v.at("run-1")); slices.Contains(got, "b") {
		t.Errorf("the other run is shown: %q", got)
	}
}

// TestChangedOutputOfARun is found out block by block, as in a view of one run.
func TestChangedOutputOfARun(t *testing.T) {
	project := bundletest.New(t)
	project.Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 3*blockhash.TagBlockSize/16), "small": "small"})
	v := mountAll(t, project)
	names(t, v.at("run-1"))
	harness.Flip(t, filepath.Join(project.Root, "big"), blockhash.TagBlockSize+1)
	for block := range int64(3) {
		if _, err := readBlock(t, v.at("run-1/big"), block); (err != nil) != (block == 1) || err != nil && !errors.Is(err, syscall.EIO) {
			t.Errorf("block %d: %v", block, err)
		}
	}
	if got, err := os.ReadFile(v.at("run-1/small")); err != nil || string(got) != "small" {
		t.Errorf("%q, %v", got, err)
	}
	if s := v.status(); s.Findings != 1 || s.Tampering[0].Path != "run-1/big" || v.state("run-1") != "accepted" {
		t.Errorf("%+v", s)
	}
}

// TestScarceDescriptors: a server that has no descriptor left for a look says
// nothing about a run, neither at the first entry nor later.
func TestScarceDescriptors(t *testing.T) {
	t.Parallel()
	project := bundletest.New(t)
	completedAt(project.Run("entered", map[string]string{"a": "alpha"}), "2026-05-01T00:00:00Z")
	project.Run("fresh", map[string]string{"b": "beta"})
	v := mountAll(t, project)
	names(t, v.at("entered"))
	var before unix.Rlimit
	check(t, unix.Prlimit(v.cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &before))
	check(t, unix.Prlimit(v.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil))
	defer func() { check(t, unix.Prlimit(v.cmd.Process.Pid, unix.RLIMIT_NOFILE, &before, nil)) }()
	for range 30 {
		if got, err := os.Readlink(v.at("latest")); err == nil && got != "entered" {
			t.Fatalf("latest is %s", got)
		}
		if got := v.state("entered"); got != "accepted" {
			t.Fatalf("it is %s", got)
		}
		if _, err := os.ReadDir(v.at("fresh")); !errors.Is(err, syscall.EIO) {
			t.Fatalf("entered without a look: %v", err)
		}
		time.Sleep(50 * time.Millisecond) // longer than the view goes without a look
	}
	check(t, unix.Prlimit(v.cmd.Process.Pid, unix.RLIMIT_NOFILE, &before, nil))
	for path, want := range map[string]string{"entered/a": "alpha", "fresh/b": "beta"} {
		if got, err := os.ReadFile(v.at(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if s := v.status(); s.Tampered || v.state("fresh") != "accepted" {
		t.Errorf("%+v", s)
	}
}

// TestRunsDirectoryIsExchanged: a view of all runs stays with the directory that it was
// mounted with. Nothing of another one that has taken its path is shown, and the view says
// that it moved.
func TestRunsDirectoryIsExchanged(t *testing.T) {
	for name, exchange := range map[string]func(t *testing.T, runs, other string){
		"exchanged": func(t *testing.T, runs, other string) {
			check(t, unix.Renameat2(unix.AT_FDCWD, runs, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE))
		},
		"a link": func(t *testing.T, runs, other string) {
			check(t, errors.Join(os.Rename(runs, runs+".aside"), os.Symlink(other, runs)))
		},
		"a directory above": func(t *testing.T, runs, other string) {
			above := filepath.Dir(runs)
			check(t, errors.Join(os.Rename(above, above+".aside"), os.Mkdir(above, 0o755), os.Rename(other, runs)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			project := bundletest.New(t)
			project.Run("run-1", map[string]string{"a": "alpha"})
			other := filepath.Join(t.TempDir(), "private")
			check(t, os.MkdirAll(filepath.Join(other, "secret-name"), 0o700))
			check(t, os.MkdirAll(filepath.Join(other, "run-1"), 0o700))
			v := mountAll(t, project)
			exchange(t, runsDir(project), other)
			if _, err := os.Lstat(v.at("secret-name")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of the other directory: %v", err)
			}
			if got := names(t, v.dir); !slices.Equal(got, []string{"latest", "run-1"}) {
				t.Errorf("%q", got)
			}
			if got, err := os.ReadFile(v.at("run-1/a")); err != nil || string(got) != "alpha" {
				t.Errorf("%q, %v", got, err)
			}
			if got, err := os.ReadFile(v.at("run-1/.spectrum/runs/run-1/STATUS.json")); err != nil || len(got) == 0 {
				t.Errorf("an artifact: %q, %v", got, err)
			}

			if raw, err := os.ReadFile(v.at(".spectrum/status.json")); err != nil || !strings.Contains(string(raw), `"runs_dir_moved":true`) {
				t.Errorf("%s, %v", raw, err)
			}
			if said, _ := v.stop(os.Interrupt); strings.Count(said, "was moved or replaced") != 1 {
				t.Errorf("the server said: %s", said)
			}
		})
	}
}

// TestRunsDirectoryIsMadeAnew: the view of one that was removed has no runs, whatever is
// made in its place, and says so.
func TestRunsDirectoryIsMadeAnew(t *testing.T) {
	project := bundletest.New(t)
	project.Run("run-1", map[string]string{"a": "alpha"})
	v := mountAll(t, project)
	if raw, err := os.ReadFile(v.at(".spectrum/status.json")); err != nil || strings.Contains(string(raw), "runs_dir_moved") {
		t.Errorf("%s, %v", raw, err)
	}
	check(t, os.RemoveAll(runsDir(project)))
	project.Run("run-2", map[string]string{"a": "another"})
	harness.Eventually(t, "no run is there", func() bool { return len(names(t, v.dir)) == 0 })
	if _, err := os.Lstat(v.at("run-2")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("run-2: %v", err)
	}
	if said, _ := v.stop(os.Interrupt); strings.Count(said, "was moved or replaced") != 1 {
		t.Errorf("the server said: %s", said)
	}
}
