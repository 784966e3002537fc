package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// abandon leaves a commit as a kill would: from the first call named so on,
// nothing works any more.
func (s *commitFixture) abandon(call string) {
	s.t.Helper()
	gone := false
	err := s.run(func(op, path string, f func() error) error {
		if gone = gone || op+" "+path == call; gone && op != "close" {
			return unix.EIO
		}
		return s.lazily(op, path, f)
	})
	if !gone {
		s.t.Fatalf("%q was not called: %v", call, err)
	}
}

// lazily syncs nothing in a lazy commitFixture.
func (s *commitFixture) lazily(op, _ string, f func() error) error {
	if s.lazy && strings.HasPrefix(op, "sync") {
		return nil
	}
	return f()
}

// Where a commit is abandoned.
const (
	allMoved     = "create .spectrum06_committed.new" // PREPARED, all targets in place
	someMoved    = "rename fresh"                     // PREPARED, some targets in place
	allStaged    = "rename a.txt"                     // PREPARED, none in place
	halfStaged   = "create g"                         // INTENT
	notPublished = "rename 0"                         // COMMITTED, no artifact in place
	oneIsMissing = "rename 1"                         // COMMITTED, one artifact in place
	allPublished = "unlink .spectrum06_prepared"      // COMMITTED, all artifacts in place
)

// abandoned makes a fixture on disk, where inode numbers are used again at once. Power
// is not cut, so a sample syncs nothing.
func abandoned(t *testing.T, call string) (*commitFixture, picture) {
	t.Helper()
	sc := singleCommit(t, t.TempDir())
	sc.lazy = sampled()
	before := take(t, sc.root)
	sc.abandon(call)
	return sc, before
}

func (s *commitFixture) at(path string) string { return filepath.Join(s.root, path) }

func (s *commitFixture) stage() string {
	s.t.Helper()
	stages, err := filepath.Glob(s.at(stagePrefix + "*-*"))
	if err != nil || len(stages) != 1 {
		s.t.Fatalf("%q, %v", stages, err)
	}
	return stages[0]
}

func TestRecover(t *testing.T) {
	for call, want := range map[string]Result{
		"create .spectrum06_intent.new": Cleared, "sync .spectrum06_intent.new": Cleared,
		halfStaged: RolledBack, allStaged: RolledBack, someMoved: RolledBack, allMoved: RolledBack,
		notPublished: Completed, oneIsMissing: Completed, allPublished: Completed,
		"unlink .spectrum06_committed": Completed,
	} {
		sc, before := abandoned(t, call)
		out, err := sc.recover(Automatic)
		must(t, err)
		if len(out) != 1 || out[0].Result != want || out[0].Left != nil {
			t.Errorf("%s: %v", call, out)
		}
		if want == Completed {
			sc.done(before)
		} else {
			sameTree(t, before, sc.root)
		}
	}
}

// What became of a target since the kill: only what is ours, and ours alone, is
// removed.
func TestRecoverFindsForeign(t *testing.T) {
	for name, c := range map[string]struct {
		call   string
		change func(sc *commitFixture) error
		stays  string // what is foreign by then
	}{
		"same content, other file":  {allMoved, func(sc *commitFixture) error { return rewrite(sc.at("existing/new")) }, "existing/new"},
		"written into":              {allMoved, func(sc *commitFixture) error { return flipByte(sc.at("fresh/g")) }, "fresh/g"},
		"grown":                     {allMoved, func(sc *commitFixture) error { return appendTo(sc.at("fresh/g"), "x") }, "fresh/g"},
		"a file beside":             {allMoved, func(sc *commitFixture) error { plant(sc.t, sc.root, "fresh/deep/theirs"); return nil }, "fresh/deep/theirs"},
		"replaced by a link":        {allMoved, func(sc *commitFixture) error { return relink(sc.at("a.txt"), "/etc/passwd") }, "a.txt"},
		"made where none was moved": {allStaged, func(sc *commitFixture) error { plant(sc.t, sc.root, "zero"); return nil }, "zero"},
		"written into, to publish":  {notPublished, func(sc *commitFixture) error { return flipByte(sc.at("fresh/g")) }, "fresh/g"},
		"artifact made":             {notPublished, func(sc *commitFixture) error { plant(sc.t, sc.root, "RESTORE_REPORT.json"); return nil }, "RESTORE_REPORT.json"},
		"artifact replaced": {oneIsMissing, func(sc *commitFixture) error {
			return errors.Join(rewrite(sc.at("RESTORE_MANIFEST.json")), flipByte(sc.at("zero")))
		}, "RESTORE_MANIFEST.json"},
		"aside": {allStaged, func(sc *commitFixture) error {
			plant(sc.t, sc.root, "theirs")
			return os.Rename(sc.at("theirs"), sc.stage()+"/"+oldsName+"/0")
		}, "a.txt"},
		"a file in staging": {allMoved, func(sc *commitFixture) error { return os.WriteFile(sc.stage()+"/x", nil, 0o600) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sc, before := abandoned(t, c.call)
			must(t, c.change(sc))
			if c.stays == "" {
				c.stays, _ = filepath.Rel(sc.root, sc.stage()+"/x")
			}
			var want []byte
			if name != "aside" {
				want, _ = os.ReadFile(sc.at(c.stays))
			}
			var halt *HaltError
			out, err := sc.recover(Automatic)
			if !errors.As(err, &halt) || len(out) > 0 || halt.Staging != filepath.Base(sc.stage()) {
				t.Errorf("recovered with %v, %v", out, err)
			}
			if got, err := os.ReadFile(sc.at(c.stays)); err != nil || want != nil && !bytes.Equal(got, want) {
				t.Errorf("%q did not stay: %q, %v", c.stays, got, err)
			}
			foreignKept(t, before, sc.root)
			must(t, os.Remove(sc.at(c.stays)))
			if name == "artifact replaced" {
				must(t, os.Remove(sc.at("zero")))
			}
			sc.mustRecover()
			sameTree(t, before, sc.root)
		})
	}
}

func relink(path, target string) error { return errors.Join(os.Remove(path), os.Symlink(target, path)) }

// Once all artifacts were in place the restore is the user's: what he does with
// it is not undone.
func TestRecoverAfterPublication(t *testing.T) {
	sc, before := abandoned(t, allPublished)
	must(t, os.Remove(sc.at("RESTORE_REPORT.json")))
	must(t, flipByte(sc.at("fresh/g")))
	must(t, os.Remove(sc.at("zero")))
	after := take(t, sc.root)
	out, err := sc.recover(Automatic)
	must(t, err)
	if len(out) != 1 || out[0].Result != Completed {
		t.Error(out)
	}
	for path := range after {
		if strings.Contains(path, stagePrefix+out[0].Attempt) {
			delete(after, path)
		}
	}
	sameTree(t, after, sc.root)
	foreignKept(t, before, sc.root)
}

// A target that was moved or removed since is not an error.
func TestRecoverMissesNothing(t *testing.T) {
	sc, before := abandoned(t, allMoved)
	must(t, os.Remove(sc.at("a.txt")))
	must(t, os.RemoveAll(sc.at("fresh/deep")))
	must(t, os.Rename(sc.at("zero"), sc.at("foreign/zero")))
	_, err := sc.recover(Automatic)
	must(t, err)
	must(t, os.Remove(sc.at("foreign/zero")))
	for path, text := range take(t, sc.root) {
		if path != "foreign" && before[path] != text {
			t.Errorf("%q is %s", path, text)
		}
	}
}

// A journal that this key has not written, or that was written for another place, is not acted
// on.
func TestRecoverForeignJournal(t *testing.T) {
	for name, spoil := range map[string]func(sc *commitFixture){
		"other key": func(sc *commitFixture) { forge(sc, []byte("another key of these tests")) },
		"no record": func(sc *commitFixture) { must(sc.t, os.WriteFile(sc.stage()+"/"+intentName, nil, 0o600)) },
		"lone record": func(sc *commitFixture) {
			must(sc.t, os.Remove(sc.stage()+"/"+intentName))
			must(sc.t, os.WriteFile(sc.stage()+"/"+preparedName, []byte("precious"), 0o600))
		},
		"record of another attempt": func(sc *commitFixture) {
			must(sc.t, os.Remove(sc.stage()+"/"+intentName))
			must(sc.t, os.Rename(sc.stage(), sc.at(stagePrefix+"11111111-2222-4333-8444-555555555555")))
		},
		"other user":  func(sc *commitFixture) { must(sc.t, os.Chown(sc.stage(), 65534, -1)) },
		"open to all": func(sc *commitFixture) { must(sc.t, os.Chmod(sc.stage(), 0o755)) },
		"other attempt": func(sc *commitFixture) {
			must(sc.t, os.Rename(sc.stage(), sc.at(stagePrefix+"11111111-2222-4333-8444-555555555555")))
		},
		"other staging directory": func(sc *commitFixture) {
			stage := sc.stage()
			must(sc.t, os.Rename(stage, sc.at("old")))
			must(sc.t, os.Mkdir(stage, 0o700))
			for _, name := range []string{intentName, preparedName} {
				must(sc.t, os.Rename(sc.at("old/"+name), stage+"/"+name))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sc, _ := abandoned(t, allMoved)
			spoil(sc)
			as := take(t, sc.root)
			for _, mode := range []Mode{Automatic, Person} {
				var halt *HaltError
				if _, err := sc.recover(mode); !errors.As(err, &halt) {
					t.Errorf("%v", err)
				}
				sameTree(t, as, sc.root)
			}
			out, err := sc.recover(Acknowledged)
			must(t, err)
			if own := name == "other key"; len(out) != 1 || own != (out[0].Result == RolledBack) {
				t.Errorf("%v", out)
			}
			if again, err := sc.recover(Automatic); err != nil || len(again) > 0 {
				t.Errorf("then %v, %v", again, err)
			}
		})
	}
}

// forge writes the journal anew with another key.
func forge(sc *commitFixture, key []byte) {
	for _, name := range []string{intentName, preparedName} {
		path := filepath.Join(sc.stage(), name)
		raw, err := os.ReadFile(path)
		must(sc.t, err)
		text, _, _ := bytes.Cut(raw, []byte("\n"))
		sealed := fmt.Appendf(bytes.Clone(text), "\n%x\n", authenticate(key, name, text))
		must(sc.t, os.WriteFile(path, sealed, 0o600))
	}
}

// What only has the name of a staging directory is none.
func TestNoAttempts(t *testing.T) {
	const id = "11111111-2222-4333-8444-55555555555"
	sc := singleCommit(t, t.TempDir())
	plant(t, sc.root, stagePrefix+id+"0/x", stagePrefix+id+"1", stagePrefix+id+"2 -> foreign",
		stagePrefix+strings.ToUpper("aaaaaaaa-2222-4333-8444-555555555550")+"/"+intentName,
		stagePrefix+id+"/"+intentName, stagePrefix+"/"+intentName, ".spectrum06_chain_"+id+"0.json")
	before := take(t, sc.root)
	for _, mode := range []Mode{Automatic, Person, Acknowledged} {
		out, err := sc.recover(mode)
		if err != nil || len(out) > 0 {
			t.Errorf("%v, %v", out, err)
		}
		sameTree(t, before, sc.root)
	}
	must(t, sc.commit())
	sc.done(before)
}

// Two attempts in one root: each is ended.
func TestRecoverTwo(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	sc.abandon(halfStaged)
	first := sc.stage()
	must(t, os.Rename(first, sc.at("kept")))
	sc.abandon(allMoved)
	must(t, os.Rename(sc.at("kept"), first))
	out, err := sc.recover(Automatic)
	if err != nil || len(out) != 2 {
		t.Errorf("%v, %v", out, err)
	}
	sameTree(t, before, sc.root)
}

func TestLockWaits(t *testing.T) {
	root := openRoot(t, t.TempDir())
	first, err := Lock(context.Background(), root, testKey, 0)
	must(t, err)
	must(t, first.Hold(t.Context()))
	var busy *BusyError
	_, err = Lock(context.Background(), root, testKey, time.Millisecond)
	if !errors.As(err, &busy) || !errors.Is(err, pathsafe.ErrLocked) || busy.PID != os.Getpid() || busy.Command == "" {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Lock(ctx, root, testKey, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	got := make(chan error)
	go func() {
		second, err := Lock(context.Background(), root, testKey, time.Hour)
		if err == nil {
			second.Close()
		}
		got <- err
	}()
	first.Close()
	must(t, <-got)
}

func TestLockIsRejected(t *testing.T) {
	if _, err := Lock(context.Background(), nil, testKey, 0); err == nil {
		t.Error("no root")
	}
	if _, err := Lock(context.Background(), openRoot(t, t.TempDir()), testKey[:MinKey-1], 0); err == nil {
		t.Error("a short key")
	}
}

// TestLeftover: a restore that is complete says so, whatever becomes of its
// staging directory.
func TestLeftover(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	told := ""
	sc.spec.leftover = func(name string, err error) { told = name }
	sc.hook = func(path string, n int, _ io.ReaderAt) error {
		if path == "zero" && n == 2 {
			return os.WriteFile(sc.stage()+"/theirs", nil, 0o600)
		}
		return nil
	}
	must(t, sc.commit())
	if told != filepath.Base(sc.stage()) {
		t.Errorf("told of %q", told)
	}
	must(t, os.Remove(sc.stage()+"/theirs"))
	completed(t, sc)
	sc.done(before)
}

func TestOutcomeWords(t *testing.T) {
	if RolledBack.String() != "rolled back" || Released.String() != "released" || Result(0).String() != "result 0" || Result(9).String() != "result 9" {
		t.Error("words")
	}
	e := &HaltError{"id", KindCommit, stagePrefix + "id", fs.ErrExist}
	if !errors.Is(e, fs.ErrExist) || !strings.Contains(e.Error(), stagePrefix+"id") {
		t.Error(e)
	}
}

// TestJournalOfAnotherVersion: what another version of the program has left is named as such,
// whatever its records look like, and nothing of it is touched.
func TestJournalOfAnotherVersion(t *testing.T) {
	for _, version := range []int{0, 1, journalVersion + 1} {
		for _, name := range []string{intentName, preparedName} {
			sc, _ := abandoned(t, allMoved)
			sealed, err := seal(testKey, name, map[string]any{"version": version, "files": []string{"a.txt"}, "more": nil})
			must(t, err)
			must(t, os.WriteFile(sc.stage()+"/"+name, sealed, 0o600))
			as := take(t, sc.root)
			var halt *HaltError
			_, err = sc.recover(Person)
			if want := fmt.Sprintf("has version %d, this program knows %d", version, journalVersion); !errors.As(err, &halt) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			sameTree(t, as, sc.root)
		}
	}
}
