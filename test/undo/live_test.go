package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestLive: a service works in the root all the time. It appends to files that it holds open,
// replaces files by renaming others over them, makes temporary files, and makes files in
// directories that go. No rollback, restore or emergency rollback is stopped by that, and no
// byte that it wrote is lost: each is in the root, in a snapshot, or where the output says.
func TestLive(t *testing.T) {
	formats := []harness.Format{harness.Tmpfs, harness.Ext4Large, harness.XFS, harness.Btrfs, harness.Overlay}
	for _, format := range sample.Pick(t, 1, formats) {
		t.Run(format.Name, func(t *testing.T) {
			at := in(filepath.Join(harness.MemoryDir(t), "live"))
			at.ground.Format = format
			at.above = filepath.Join(harness.MountedVolume(t, format).Path, "above")
			harness.Must(t, os.MkdirAll(at.state, 0o700))
			harness.Must(t, os.Remove(at.state))
			w := newFixture(t, at, &command{name: "live", prepare: func(t testing.TB, w *fixture) {
				w.clear(t)
				harness.Must(t, os.WriteFile(w.path("log"), nil, 0o644))
				w.target = w.take(t)
				w.commitIt(t)
			}})
			ways := [][]string{{"rollback", "--json", ""}, {"snapshot", "restore", "--json", w.target}, {"rollback", "--emergency", "--json", w.site.Root}}
			kept := 0
			for i := range sample.Of(9, 12, 48) {
				if i > 0 {
					for _, name := range w.site.Project.Targets() {
						harness.Must(t, os.RemoveAll(w.path(name)))
					}
					w.commitIt(t)
				}
				args := append([]string(nil), ways[i%len(ways)]...)
				if args[len(args)-1] == "" {
					args[len(args)-1] = w.commit
				}
				kept += w.beside(t, i, args)
				if t.Failed() {
					return
				}
			}
			if kept == 0 {
				t.Error("the service was never in the way")
			}
		})
	}
}

// beside runs a command beside the service, and returns how many files it says it has kept.
func (w *fixture) beside(t *testing.T, round int, args []string) int {
	t.Helper()
	s := &liveService{root: w.site.Root, round: round, stop: make(chan struct{}), wrote: map[string]bool{}}
	before, err := filepath.Glob(w.path("spectrum-kept-*"))
	harness.Must(t, err)
	s.start()
	time.Sleep(3 * time.Millisecond)
	r := w.site.Project.Run(t, nil, args...)
	s.end()
	if r.Status != 0 || s.failed != nil {
		t.Fatalf("round %d: %v, the service: %v", round, r, s.failed)
	}
	var answer struct {
		Kept []struct{ At, Path string } `json:"kept"`
	}
	harness.Must(t, json.Unmarshal([]byte(r.Stdout), &answer))
	dirs := map[string]bool{}
	for _, k := range answer.Kept {
		if _, err := os.Lstat(k.At); err != nil || !strings.Contains(r.Stderr, k.At) {
			t.Errorf("round %d: %q is kept: %v, %v", round, k.Path, err, r)
		}
		rest, _ := strings.CutPrefix(k.At, w.site.Root+"/")
		dirs[strings.Split(rest, "/")[0]] = true
	}
	after, err := filepath.Glob(w.path("spectrum-kept-*"))
	harness.Must(t, err)
	for _, dir := range after {
		if !strings.Contains(strings.Join(before, " "), dir) && !dirs[filepath.Base(dir)] {
			t.Errorf("round %d: %q is not named: %v", round, dir, r)
		}
	}
	if lost := w.lostOf(t, s); len(lost) > 0 {
		t.Errorf("round %d: %d are lost, %q: %v", round, len(lost), lost[:min(len(lost), 10)], r)
	}
	if len(s.wrote) < 20 {
		t.Errorf("round %d: the service has written %d times", round, len(s.wrote))
	}
	return len(answer.Kept)
}

// lostOf returns what the service wrote, and is neither in the root nor in the state directory.
func (w *fixture) lostOf(t *testing.T, s *liveService) (lost []string) {
	t.Helper()
	there := map[string]bool{}
	for _, top := range []string{w.site.Root, w.site.Project.State} {
		harness.Must(t, filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, token := range tokens.FindAllString(string(text), -1) {
				there[token] = true
			}
			return err
		}))
	}
	for token, must := range s.wrote {
		if must && !there[token] {
			lost = append(lost, token)
		}
	}
	return lost
}

// TestLiveFaults: beside the service an undo operation is killed before its calls, or they fail.
// The recovery, beside it too, ends what was begun: what the service does not touch is all as
// before or all as after, and nothing of what it wrote is lost. Where the service has made a
// directory in the place of one that has to come back, the root is halted until a person releases
// it; then the undo operation works, and nothing is lost either.
func TestLiveFaults(t *testing.T) {
	for _, way := range sample.Pick(t, 1, []func() *command{rollback, emergency, whole}) {
		t.Run(way().name, func(t *testing.T) {
			var sum harness.Tally
			sweep(t, way(), sample.Thin(t, 61, 19), func(t *testing.T, w *fixture, n int) bool { return w.faultBeside(t, &sum, n) })
			sum.Demand(t, "as before", "as after", "killed")
		})
	}
}

// faultBeside is false where there is no such call.
func (w *fixture) faultBeside(t *testing.T, sum *harness.Tally, n int) bool {
	t.Helper()
	s := &liveService{root: w.site.Root, round: n, stop: make(chan struct{}), wrote: map[string]bool{}}
	s.start()
	time.Sleep(3 * time.Millisecond)
	plan := harness.Killing(n, w.changing)
	if n%2 == 0 {
		plan = &sysfault.Plan{N: n, Onward: n%4 == 0, Errno: []unix.Errno{unix.EIO, unix.ENOSPC, unix.EMFILE}[n/2%3], Match: w.changing, Only: harness.ChangingCalls, Record: true}
	}
	r := w.site.Project.Run(t, plan, w.args...)
	if r.Killed() {
		sum.Add("killed")
	}
	recovery := w.site.Recover(t, nil)
	s.end()
	if r.Fault.Fired == 0 {
		return false
	}
	var errs []error
	state, err := w.apart()
	switch {
	case recovery.Status == 3: // the service has made a directory where one has to come back
		sum.Add("halted")
		err = w.site.Halted(t)
		if r := w.site.Acknowledge(t); r.Status != 0 {
			errs = append(errs, fmt.Errorf("acknowledge: %v", r))
		}
		if r := w.site.Project.Run(t, nil, w.args...); r.Status != 0 {
			errs = append(errs, fmt.Errorf("once more, after the acknowledgement: %v", r))
		}
	case recovery.Status != 0:
		errs = append(errs, fmt.Errorf("the recovery: %v", recovery))
	case r.Status == 0 && state != harness.After:
		errs = append(errs, errors.New("it has not done it"))
	default:
		sum.Add("as " + state.String())
		if again := w.site.Recover(t, nil); again.Status != 0 {
			errs = append(errs, fmt.Errorf("the next one: %v", again))
		}
	}
	if lost := w.lostOf(t, s); len(lost) > 0 {
		errs = append(errs, fmt.Errorf("%d are lost, %q", len(lost), lost[:min(len(lost), 10)]))
	}
	if err := errors.Join(append(errs, err, s.failed, w.keeps(t), w.site.Ended())...); err != nil {
		t.Errorf("before %s: %v\n%v", w.site.Last(r), r, err)
	}
	return true
}

// apart compares the root with the one after the undo operation, except what the service touches.
func (w *fixture) apart() (harness.State, error) {
	is, err := harness.Take(w.site.Root)
	if err != nil {
		return harness.Other, err
	}
	names := []string{"top.txt", "new/sub/b.txt", "new/sub/todo.txt", "whole/e", "out/deep/long.bin", "RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "later/own"}
	fits := func(want harness.Tree) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return is[name].Content != want[name].Content })
	}
	switch {
	case fits(w.site.Before):
		return harness.Before, nil
	case fits(w.site.After):
		return harness.After, nil
	}
	return harness.Other, errors.New("what the service does not touch is neither as before nor as after")
}

// A liveService writes tokens, each once, beneath a root.
type liveService struct {
	root  string
	round int
	stop  chan struct{}
	work  sync.WaitGroup

	mu     sync.Mutex
	wrote  map[string]bool // false: it has removed it, or put another in its place
	failed error
}

var tokens = regexp.MustCompile(`<[a-z]+ [0-9]+ [0-9]+>`)

// start has all of it begin.
func (s *liveService) start() {
	s.each("held", s.append("log", 1<<30))
	s.each("again", s.append("new/c.txt", 7))
	s.each("once", s.append("beside/deep.txt", 1))
	s.each("replaced", s.replace("out/a.txt"))
	s.each("config", s.replace("foreign.txt"))
	s.each("temporary", s.temporary)
	s.each("kept", s.make("whole/deep"))
	s.each("more", s.make("fresh/dir"))
}

// end has all of it end.
func (s *liveService) end() {
	close(s.stop)
	s.work.Wait()
}

// each writes one token after the other until the service ends.
func (s *liveService) each(name string, write func(token string, n int) error) {
	s.work.Go(func() {
		for n := 0; ; n++ {
			token := fmt.Sprintf("<%s %d %d>", name, s.round, n)
			err := write(token, n)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory of it has just gone
				s.mu.Lock()
				s.failed = errors.Join(s.failed, fmt.Errorf("%s: %w", token, err))
				s.mu.Unlock()
				return
			}
			select {
			case <-s.stop:
				_ = write("", 0)
				return
			case <-time.After(300 * time.Microsecond):
			}
		}
	})
}

// wants notes whether a token has to be somewhere.
func (s *liveService) wants(token string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote[token] = is
}

func (s *liveService) at(path string) string { return filepath.Join(s.root, path) }

// append writes to the end of a file, which it opens anew after some times.
func (s *liveService) append(path string, times int) func(string, int) error {
	var f *os.File
	return func(token string, n int) (err error) {
		if f != nil && (token == "" || n%times == 0) {
			err = f.Close()
			f = nil
		}
		if token == "" || err != nil {
			return err
		}
		if f == nil {
			if err := os.MkdirAll(filepath.Dir(s.at(path)), 0o755); err != nil {
				return err
			}
			if f, err = os.OpenFile(s.at(path), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644); err != nil {
				f = nil
				return err
			}
		}
		if _, err = f.WriteString(token); err == nil {
			s.wants(token, true)
		}
		return err
	}
}

// replace puts a new file in the place of another one, which it looks at then.
func (s *liveService) replace(path string) func(string, int) error {
	return func(token string, n int) error {
		if token == "" {
			return nil
		}
		temp := s.at(fmt.Sprintf("%s.%d-%d", path, s.round, n))
		if err := os.MkdirAll(filepath.Dir(temp), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(temp, []byte(token), 0o644); err != nil {
			return err
		}
		s.wants(token, true)
		for {
			err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, s.at(path), unix.RENAME_EXCHANGE)
			if errors.Is(err, unix.ENOENT) {
				if err = unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, s.at(path), unix.RENAME_NOREPLACE); errors.Is(err, unix.EEXIST) {
					continue
				}
				return err
			}
			if err != nil {
				return err
			}
			text, err := os.ReadFile(temp)
			if err != nil {
				return err
			}
			for _, old := range tokens.FindAllString(string(text), -1) {
				s.wants(old, false)
			}
			return os.Remove(temp)
		}
	}
}

// temporary makes a file, and removes it.
func (s *liveService) temporary(token string, n int) error {
	if token == "" {
		return nil
	}
	for _, dir := range []string{"", "beside", "new/sub"} {
		name := s.at(fmt.Sprintf("%s/temporary %d %d", dir, s.round, n))
		one := strings.Replace(token, "<temporary", "<temporary"+map[string]string{"": "", "beside": "a", "new/sub": "b"}[dir], 1)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		err := os.WriteFile(name, []byte(one), 0o600)
		if err == nil {
			s.wants(one, true)
			if err = os.Remove(name); err == nil {
				s.wants(one, false)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// make makes files that stay.
func (s *liveService) make(dir string) func(string, int) error {
	return func(token string, n int) error {
		if token == "" || n%5 != 0 {
			return nil
		}
		if err := os.MkdirAll(s.at(dir), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(s.at(fmt.Sprintf("%s/of %d %d", dir, s.round, n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if _, err = f.WriteString(token); err == nil {
			s.wants(token, true)
		}
		return errors.Join(err, f.Close())
	}
}
