package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestCommit: the tree is exactly as planned, everything that was there is as
// it was, and nothing of the attempt is left.
func TestCommit(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		t.Run(mode, func(t *testing.T) {
			s := newScene(t, mode)
			project := bundletest.Snapshot(t, s.Root)
			s.mustCommit()
			if bundletest.Snapshot(t, s.Root) != project {
				t.Error("the project changed")
			}
		})
	}
}

// TestCommitManyFiles: more than are synced one by one, deep and wide, some of
// them of several blocks, with one and with two processors.
func TestCommitManyFiles(t *testing.T) {
	harness.TempInMemory(t)
	big := map[string]string{"big": strings.Repeat("0123456789abcdef", 1<<17), "exact": strings.Repeat("x", 1<<20)}
	for i := range 120 {
		big[fmt.Sprintf("d%d/e%d/f%d", i%7, i%3, i)] = fmt.Sprint(i)
	}
	for _, chain := range []bool{false, true} {
		s := emptyScene(t, chain)
		s.add("run-1", map[string]string{"first": "1"})
		s.add("run-2", big)
		if !chain {
			s.runs = s.runs[1:]
			s.want = big
		}
		s.mustCommit()
	}
}

// TestCommitModesAndTimes: what is carried over of a source, to the nanosecond.
func TestCommitModesAndTimes(t *testing.T) {
	old := time.Date(1999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	for _, c := range []struct {
		source, want uint32
		mtime        time.Time
	}{
		{0o644, 0o644, old},
		{0o755, 0o755, old.Add(time.Nanosecond)},
		{0o4755, 0o755, time.Unix(0, 1)},
		{0o2755, 0o755, time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC)},
		{0o1777, 0o777, time.Date(2100, 1, 1, 0, 0, 0, 5, time.UTC)},
		{0o7777, 0o777, time.Unix(-1, 500)},
		{0o000, 0o000, old},
		{0o200, 0o200, old},
		{0o444, 0o444, old},
	} {
		t.Run(fmt.Sprintf("%04o", c.source), func(t *testing.T) {
			s := emptyScene(t, false)
			s.add("run-2", map[string]string{"d/x": "x"})
			name := s.source("d/x")
			must(t, unix.Chmod(name, c.source))
			must(t, os.Chtimes(name, time.Time{}, c.mtime))
			var source, target unix.Stat_t
			must(t, unix.Lstat(name, &source)) // what the file system makes of the time
			s.mustCommit()
			must(t, unix.Lstat(s.at("d/x"), &target))
			if target.Mode&0o7777 != c.want || target.Mtim != source.Mtim {
				t.Errorf("mode %04o, want %04o; time %v, want %v", target.Mode&0o7777, c.want, target.Mtim, source.Mtim)
			}
			if target.Ino == source.Ino || target.Nlink != 1 {
				t.Errorf("inode %d with %d links; the source is %d", target.Ino, target.Nlink, source.Ino)
			}
		})
	}
}

// TestCommitIgnoresUmask: a file has the mode of its source whatever the umask;
// a directory made on the way obeys it.
func TestCommitIgnoresUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o027))
	s := emptyScene(t, false)
	s.add("run-2", map[string]string{"d/x": "x"})
	must(t, os.Chmod(s.source("d/x"), 0o666))
	s.mustCommit()
	for path, want := range map[string]os.FileMode{"d/x": 0o666, "d": os.ModeDir | 0o750, restore.ReportName: 0o640} {
		info, err := os.Lstat(s.at(path))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", path, info.Mode(), want)
		}
	}
}

// TestCommitThroughLink: a parent is a link that stays inside the root.
func TestCommitThroughLink(t *testing.T) {
	s := newScene(t, "single")
	s.runs, s.want = nil, map[string]string{}
	s.add("run-3", map[string]string{"link/keep2.txt": "through\n", "link/new/x": "x", "up/y": "y"})
	must(t, os.Symlink("other/../existing", s.at("up")))
	s.want = map[string]string{"other/keep2.txt": "through\n", "other/new/x": "x", "existing/y": "y"}
	s.mustCommit()
}

// TestCommitKeepsNeighbours: what stands in a directory that gets something new
// is as it was to its change time.
func TestCommitKeepsNeighbours(t *testing.T) {
	s := newScene(t, "single")
	names := []string{"existing/keep.txt", "other", "other/keep.txt", "empty", "link", "fifo"}
	stat := func() (all []unix.Stat_t) {
		for _, name := range names {
			var st unix.Stat_t
			must(t, unix.Lstat(s.at(name), &st))
			st.Atim = unix.Timespec{} // the test itself reads
			all = append(all, st)
		}
		return all
	}
	before := stat()
	s.mustCommit()
	for i, after := range stat() {
		if after != before[i] {
			t.Errorf("%q was %+v, is %+v", names[i], before[i], after)
		}
	}
}

// TestCommitTwice: an approval is carried out once, and the zero one never.
func TestCommitTwice(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		s := newScene(t, mode)
		a := s.approve()
		must(t, s.commit(context.Background(), a, nil))
		before := bundletest.Census(t, s.root)
		want := restore.Failure{Code: restore.InternalError, Phase: restore.Execute}
		for _, spent := range []*preview.Approved{a, {}} {
			if got := failureOf(t, s.commit(context.Background(), spent, nil)); got != want {
				t.Errorf("%s: %+v", mode, got)
			}
		}
		if bundletest.Census(t, s.root) != before {
			t.Errorf("%s: the second commit left a trace", mode)
		}
	}
}

// TestForeignInStaging: a foreign file in staging does not undo a restore that is complete. It
// stays, under a name that is visible, and the root is the operator's again.
func TestForeignInStaging(t *testing.T) {
	s := newScene(t, "single")
	before, foreign := entriesIn(t, s.root), ""
	in, _, err := enter(s, staging.Automatic)
	must(t, err)
	left := 0
	must(t, action.Commit(t.Context(), in, s.approve(), action.Watch{
		Progress: at(publishPhase, func() {
			foreign = s.staging() + "/x"
			must(t, os.WriteFile(foreign, []byte("rival"), 0o600))
		}),
		Leftover: func(string, error) { left++ },
	}))
	in.Leave()
	var halt *staging.HaltError
	if _, _, err := enter(s, staging.Person); left != 1 || !errors.As(err, &halt) {
		t.Errorf("told %d times, then %v", left, err)
	}
	in, ended, err := enter(s, staging.Acknowledged)
	must(t, err)
	in.Leave()
	foreign = strings.Replace(foreign, ".spectrum06_staging_", "spectrum-kept-", 1)
	if len(ended) != 1 || ended[0].Result != staging.Released || ended[0].Left == nil || harness.ReadFile(t, foreign) != "rival" {
		t.Errorf("%v", ended)
	}
	must(t, os.RemoveAll(filepath.Dir(foreign)))
	s.checkRestored(before)
}

// TestHaltOutsideOfTheRoot: a root that turned read-only cannot take the mark of
// a halt. What remembers halts elsewhere can. (The kernel lets no root turn read-only while copies
// are open for writing, which is until they have been verified.)
func TestHaltOutsideOfTheRoot(t *testing.T) {
	for _, remembered := range []bool{true, false} {
		s := emptyScene(t, false)
		s.mount(".", "")
		s.add("run-1", map[string]string{"a/b": "x", "c": "y"})
		before := entriesIn(t, s.root)
		e := action.Entry{Key: restoretest.JournalKey}
		if remembered {
			e.Halts = halts{}
		}
		in, _, err := action.Enter(t.Context(), s.root, e)
		must(t, err)
		remount := func(flags uintptr) { must(t, unix.Mount("", s.root, "", unix.MS_REMOUNT|flags, "")) }
		err = action.Commit(t.Context(), in, s.approve(), action.Watch{Progress: at(publishPhase, func() { remount(unix.MS_RDONLY) })})
		in.Leave()
		remount(0)
		if got := failureOf(t, err); got.Code != restore.RollbackFailed {
			t.Fatal(err)
		}
		in, _, err = action.Enter(t.Context(), s.root, e)
		in.Leave()
		if remembered != errors.Is(err, staging.ErrHalted) {
			t.Errorf("remembered %v: %v", remembered, err)
		}
		e.Mode = staging.Person
		in, _, err = action.Enter(t.Context(), s.root, e)
		must(t, err)
		in.Leave()
		fault{on: finalizePhase}.checkLeft(s, before)
		if h, ok := e.Halts.(halts); ok && len(h) > 0 {
			t.Errorf("still remembered: %v", h)
		}
	}
}

// halts remembers in memory.
type halts map[string]bool

func (h halts) Halt(id string) error           { h[id] = true; return nil }
func (h halts) Halted(id string) (bool, error) { return h[id], nil }
func (h halts) Release(id string) error        { delete(h, id); return nil }

// TestChainManifest: steps C.6 and C.8. It stands in the root from before the
// first copy until the end, and records the intended order.
func TestChainManifest(t *testing.T) {
	s := emptyScene(t, true)
	for _, id := range []string{"z", "a", "m"} {
		s.add(id, map[string]string{"from-" + id: id})
	}
	a := s.approve()
	want := fmt.Sprintf(`{"bundle_roots":["%s","%s","%s"],"chain_root":"%s","run_ids":["z","a","m"]}`,
		s.runs[0].BundleRoot(), s.runs[1].BundleRoot(), s.runs[2].BundleRoot(), a.Restore().Plan().ChainRoot())
	var mu sync.Mutex
	seen := map[string]bool{}
	must(t, s.commit(context.Background(), a, func(phase string, _ int64) {
		mu.Lock()
		defer mu.Unlock()
		name := strings.Replace(s.staging(), ".spectrum06_staging_", ".spectrum06_chain_", 1) + ".json"
		if got := harness.ReadFile(t, name); got != want {
			t.Errorf("%s: %s\nwant %s", phase, got, want)
		}
		seen[phase] = true
	}))
	if len(seen) != 5 {
		t.Errorf("phases %v", seen)
	}
	s.checkRestored(map[string]entry{".": entriesIn(t, s.root)["."]})
}

// TestProgress: every byte counts once when it is staged and once when it is
// checked, and the phases come in their order.
func TestProgress(t *testing.T) {
	s := newScene(t, "chain")
	a := s.approve()
	var mu sync.Mutex
	var order []string
	bytes := map[string]int64{}
	must(t, s.commit(context.Background(), a, func(phase string, n int64) {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := bytes[phase]; !ok {
			order = append(order, phase)
		}
		bytes[phase] += n
	}))
	total := a.Restore().Plan().Bytes()
	if got := fmt.Sprint(order); got != "[stage sync finalize verify publish]" {
		t.Errorf("phases %v", got)
	}
	if bytes[stagePhase] != total || bytes[verifyPhase] != total {
		t.Errorf("%v of %d bytes", bytes, total)
	}
}

// TestCommitDirectories: a new directory gets the group's and the others' bits of its
// source, at most, and 0755 less the umask, at most; the owner's are his. The artifacts get
// what every output and every directory grants. What was there keeps its mode.
func TestCommitDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file, umask os.FileMode
		wantDir, wantArt os.FileMode
	}{
		"private":              {0o700, 0o644, 0o022, 0o700, 0o600},
		"group":                {0o750, 0o644, 0o022, 0o750, 0o640},
		"writable by all":      {0o777, 0o666, 0o002, 0o755, 0o644},
		"umask 077":            {0o755, 0o644, 0o077, 0o700, 0o600},
		"entered, not listed":  {0o711, 0o644, 0o022, 0o711, 0o600},
		"closed to its owner":  {0o555, 0o644, 0o022, 0o755, 0o644},
		"a private file":       {0o755, 0o600, 0o022, 0o755, 0o600},
		"a file":               {0o755, 0o000, 0o022, 0o755, 0o400},
		"set-id bits":          {0o7755, 0o644, 0o022, 0o755, 0o644},
		"others only, no list": {0o705, 0o604, 0o022, 0o705, 0o604},
	} {
		t.Run(name, func(t *testing.T) {
			s := emptyScene(t, false)
			s.add("run-2", map[string]string{"new/d/x": "x", "stays/d/y": "y"})
			must(t, os.MkdirAll(s.at("stays"), 0o711))
			for _, dir := range []string{"new/d", "stays/d"} {
				must(t, unix.Chmod(s.source(dir), uint32(c.dir)))
			}
			must(t, unix.Chmod(s.source("new/d/x"), uint32(c.file)))
			defer unix.Umask(unix.Umask(int(c.umask)))
			s.mustCommit()
			for path, want := range map[string]os.FileMode{
				"new/d": os.ModeDir | c.wantDir, "stays/d": os.ModeDir | c.wantDir, "stays": os.ModeDir | 0o711,
				"new": os.ModeDir | 0o755&^c.umask, "new/d/x": c.file, restore.ReportName: c.wantArt, restore.ManifestName: c.wantArt,
			} {
				info, err := os.Lstat(s.at(path))
				must(t, err)
				if info.Mode() != want {
					t.Errorf("%q has mode %v, want %v", path, info.Mode(), want)
				}
			}
		})
	}
}

// TestCommitDirectoryWithList: of a source directory with an access list the bits of the
// group are not those of its mode, which bound every entry of the list.
func TestCommitDirectoryWithList(t *testing.T) {
	s := emptyScene(t, false)
	s.add("run-2", map[string]string{"d/x": "x"})
	list := []byte("\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\x39\x30\x00\x00" +
		"\x04\x00\x00\x00\xff\xff\xff\xff" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff")
	must(t, unix.Setxattr(s.source("d"), "system.posix_acl_access", list, 0))
	if info, err := os.Stat(s.source("d")); err != nil || info.Mode().Perm() != 0o770 {
		t.Fatal(info.Mode(), err)
	}
	s.mustCommit()
	if info, err := os.Stat(s.at("d")); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}
