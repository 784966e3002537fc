package action_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// run approves, lets the fault happen at its time, and returns how the commit
// ended.
func (f fault) run(s *scene) error {
	s.t.Helper()
	a := s.approve()
	quiet := ""
	if f.on == "" {
		f.do(s)
		quiet = bundletest.Census(s.t, s.root)
	}
	err := s.commit(context.Background(), a, at(f.on, func() { f.do(s) }))
	if f.quiet && bundletest.Census(s.t, s.root) != quiet {
		s.t.Error("something was written")
	}
	return err
}

// at makes a progress function that does something once, when a phase begins.
func at(phase string, do func()) func(string, int64) {
	done := phase == ""
	return func(p string, _ int64) {
		if p == phase && !done {
			done = true
			do()
		}
	}
}

// moved reports whether anything may have stood in a directory of the root for a while, so that
// its time of modification is another.
func (f fault) moved() bool { return f.on != "" && f.on != stagePhase }

// checkLeft requires the root as it was, except for what other processes did to it.
func (f fault) checkLeft(s *scene, before map[string]entry) {
	s.t.Helper()
	after, want := entriesIn(s.t, s.root), maps.Clone(before)
	for _, path := range f.lost {
		delete(want, path)
	}
	for _, path := range f.foreignPaths(s) {
		e, ok := after[path]
		if isFile := strings.HasPrefix(e.mode, "-"); !ok || isFile && e.content != "rival" && e.content != "keep" {
			s.t.Errorf("foreign %q did not stay as it was: %q", path, e)
		}
		delete(after, path)
		delete(want, path)
	}
	if f.code == restore.RollbackFailed {
		dropOurs(s, after)
	}
	for path := range want {
		if want[path] != after[path] && !f.sameButTime(path, want[path], after[path]) {
			s.t.Errorf("%q was %q, is %q", path, want[path], after[path])
		}
	}
	for path, e := range after {
		if _, ok := want[path]; !ok {
			s.t.Errorf("%q was left: %q", path, e)
		}
	}
}

func (f fault) foreignPaths(s *scene) []string {
	var paths []string
	for _, path := range f.foreign {
		paths = append(paths, s.target(path))
	}
	if s.chain && len(paths) > 0 {
		paths = append(paths, "run-2")
	}
	return paths
}

func (f fault) sameButTime(path string, a, b entry) bool {
	if path == "." || f.moved() && a.dir() {
		a.mtime, b.mtime = "", ""
	}
	return a == b
}

var ours = regexp.MustCompile(`^\.spectrum06_((staging|chain)_[0-9a-f]{8}-|lock$)`)

// dropOurs removes what a rollback that failed had to leave: there must be some.
func dropOurs(s *scene, after map[string]entry) {
	s.t.Helper()
	n := len(after)
	maps.DeleteFunc(after, func(path string, _ entry) bool { return ours.MatchString(path) })
	if len(after) == n {
		s.t.Error("nothing of the attempt was left")
	}
}

// cleared is what a person does afterwards: the rival's things go, what was
// lost comes back, the sources are right again.
func (f fault) cleared(s *scene, before map[string]entry) {
	s.t.Helper()
	if f.code == restore.RollbackFailed {
		f.checkHalted(s)
	}
	for path := range entriesIn(s.t, s.root) {
		if _, was := before[path]; !was {
			must(s.t, os.RemoveAll(s.at(path)))
		}
	}
	if len(f.lost) > 0 {
		must(s.t, os.RemoveAll(s.at("existing")))
		must(s.t, os.Mkdir(s.at("existing"), 0o755))
		must(s.t, os.WriteFile(s.at("existing/keep.txt"), []byte("keep"), 0o600))
	}
	must(s.t, os.RemoveAll(s.source("new")))
	for path, content := range outputs {
		s.Write(path, content)
	}
}

// checkHalted requires the root to be halted, and recovered by a person once the rival's things
// are gone.
func (f fault) checkHalted(s *scene) {
	s.t.Helper()
	var halt *staging.HaltError
	if _, _, err := enter(s, staging.Automatic); !errors.As(err, &halt) || !errors.Is(err, staging.ErrHalted) {
		s.t.Errorf("the root is not halted: %v", err)
	}
	for _, path := range f.foreignPaths(s) {
		must(s.t, os.RemoveAll(s.at(path)))
	}
	in, ended, err := enter(s, staging.Person)
	must(s.t, err)
	in.Leave()
	if len(ended) != 1 || ended[0].Result != staging.RolledBack && ended[0].Result != staging.Cleared {
		s.t.Errorf("recovered with %v", ended)
	}
	for path := range entriesIn(s.t, s.root) {
		if ours.MatchString(path) {
			s.t.Errorf("%q is left", path)
		}
	}
}

func enter(s *scene, mode staging.Mode) (*action.Root, []staging.Outcome, error) {
	return action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Mode: mode, Acknowledge: looked})
}

// looked is a person who has looked.
func looked(string, error) (string, error) { return "I have looked", nil }

// eachFault runs each fault that is tried, in each mode where it can be.
func eachFault(t *testing.T, tried sample.Stride, do func(t *testing.T, f fault, mode string)) {
	n := 0
	for _, f := range faults() {
		for _, mode := range []string{"single", "chain"} {
			if f.only != "" && f.only != mode {
				continue
			}
			if n++; tried.Has(n) {
				name := strings.TrimPrefix(f.on+"/", "/") + f.name + "/" + mode
				t.Run(name, func(t *testing.T) { do(t, f, mode) })
			}
		}
	}
}

// TestFaults: each fault gives its code, phase and cause; the root is as it was
// but for what is foreign; and when the fault is gone the restore succeeds.
func TestFaults(t *testing.T) {
	eachFault(t, sample.Every(t, 3), func(t *testing.T, f fault, mode string) {
		s := newScene(t, mode)
		before := entriesIn(t, s.root)
		err := f.run(s)
		s.mend()
		if got, want := failureOf(t, err), f.want(s); got != want {
			t.Errorf("got %+v\nwant %+v\n%v", got, want, err)
		}
		f.checkLeft(s, before)
		f.cleared(s, before)
		s.mustCommit()
	})
}

// TestFaultsAreDeterministic: the same answer every time.
func TestFaultsAreDeterministic(t *testing.T) {
	harness.TempInMemory(t)
	eachFault(t, sample.Every(t, 9), func(t *testing.T, f fault, mode string) {
		for procs := 1; procs <= 2; procs++ {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			for range sample.Of(2, 10, 10) {
				t.Run("", func(t *testing.T) {
					s := newScene(t, mode)
					err := f.run(s)
					s.mend()
					if got, want := failureOf(t, err), f.want(s); got != want {
						t.Errorf("got %+v\nwant %+v", got, want)
					}
				})
			}
		}
	})
}

// TestEveryLateCodeIsCaused: the codes that only a commit can have. (Package
// restore's tests cause the others.)
func TestEveryLateCodeIsCaused(t *testing.T) {
	caused := map[restore.Code]bool{}
	for _, f := range faults() {
		caused[f.code] = true
	}
	raw := harness.ReadFile(t, filepath.Join("..", "code.go"))
	codes := regexp.MustCompile(`"RESTORE_[A-Z_]+"`).FindAllString(raw, -1)
	late := 0
	for _, quoted := range codes {
		code := restore.Code(strings.Trim(quoted, `"`))
		phase := restore.Fail(code, "", nil).Phase
		if phase == restore.Preflight || phase == restore.Planning {
			continue
		}
		if late++; !caused[code] {
			t.Errorf("%s is never caused", code)
		}
	}
	if len(codes) != 29 || late != 8 {
		t.Errorf("%d codes, %d of them late", len(codes), late)
	}
}
