package undo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestStagingTakenAway: a rollback was killed, and its staging directory moved out of the root. Where
// files are not as before, the root is halted, through further commands, and nothing says that it is
// clean; when the directory is put back, recover ends the rollback, and the log has the end.
func TestStagingTakenAway(t *testing.T) {
	for _, way := range []func() *command{replaced, whole, broughtBack, emergency, some} {
		t.Run(way().name, func(t *testing.T) { stagingTakenAway(t, way()) })
	}
}

// broughtBack restores a snapshot from when the commit stood: it creates names, and does nothing else.
func broughtBack() *command {
	return &command{name: "brought back", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.commitIt(t)
		w.target, w.old = w.take(t), anew(w.picture(t))
		w.run(t, nil, "rollback", "--json", w.commit)
		w.args = []string{"snapshot", "restore", "--json", w.target}
	}, after: func(w *fixture) harness.Tree { return w.old }}
}

func stagingTakenAway(t *testing.T, way *command) {
	w := borrow(t, way)
	var sum harness.Tally
	w.reset(t)
	p := w.site.Project
	calls := p.Run(t, harness.Killing(1<<30, w.changing), w.args...).Fault.Calls
	s := sample.Thin(t, max(1, calls/12), 5)
	halted := 0
	for i := 0; s.At(i) < calls; i++ {
		w.reset(t)
		r := p.Run(t, harness.Killing(s.At(i), w.changing), w.args...)
		stages, err := filepath.Glob(w.path(".spectrum06_exchange_*"))
		harness.Must(t, err)
		if !r.Killed() || len(stages) == 0 {
			continue
		}
		away := filepath.Join(w.above(), "taken away")
		harness.Must(t, os.Rename(stages[0], away))
		put := func() { harness.Must(t, os.Rename(away, stages[0])) }
		if !w.isChanged(t) {
			sum.Add("as before")
			if r := p.Run(t, nil, "recover", w.site.Root); r.Status != 0 {
				t.Errorf("as before, killed before %s\n%v", w.site.Last(r), r)
			}
			put() // the log has its end; its journal is resumed all the same, and nothing of it is in the root
			r := p.Run(t, nil, "recover", w.site.Root)
			if _, err := os.Lstat(stages[0]); r.Status != 0 || w.isChanged(t) || err == nil {
				t.Errorf("put back, killed before %s\n%v", w.site.Last(r), r)
			}
			continue
		}
		if again := p.Run(t, nil, "recover", w.site.Root); again.Status == 0 { // the log has its end, or the savepoints have
			sum.Add("completed")
			if _, err := w.site.Check(harness.After); err != nil {
				t.Errorf("killed before %s\n%v\n%v", w.site.Last(r), again, err)
			}
			harness.Must(t, os.RemoveAll(away))
			continue
		}
		for range 2 {
			for _, args := range [][]string{{"recover", w.site.Root}, {"snapshot", "take", w.site.Root}} {
				again := p.Run(t, nil, args...)
				if again.Status != 3 || strings.Contains(again.Stdout, "clean") || !strings.Contains(again.Stderr, "staging directory was removed") || !strings.Contains(again.Stderr, "snapshot restore ") {
					t.Errorf("killed before %s\n%v", w.site.Last(r), again)
				}
			}
		}
		if status := p.Run(t, nil, "status", w.site.Root); !strings.Contains(status.Stdout, "halted by ") {
			t.Errorf("%v", status)
		}
		sum.Add("halted")
		if halted++; halted%2 == 0 {
			sum.Add("put back late")
			w.putBackLate(t, stages[0], put)
		} else {
			w.putBack(t, way.name, put)
		}
		p.Must(t, "audit", "verify")
	}
	sum.Demand(t, "halted", "as before", "put back late")
}

// TestCommitTakenAway: the same of a commit that replaces files, and of one that removes some. An
// emergency rollback ends the halt.
func TestCommitTakenAway(t *testing.T) {
	for name, stand := range map[string]func(t testing.TB, w *fixture){"replacing": func(t testing.TB, w *fixture) { w.standing(t) }, "removing": removing} {
		t.Run(name, func(t *testing.T) {
			commitTakenAway(t, &command{name: name, stands: true, prepare: func(t testing.TB, w *fixture) {
				stand(t, w)
				w.clear(t)
				w.take(t)
			}})
		})
	}
}

// removing seals a change set that removes files, and nothing else: all that it has is there.
func removing(t testing.TB, w *fixture) {
	t.Helper()
	p := w.site.Project
	p.Identical = nil
	for name, content := range files() {
		source, err := os.Stat(p.Source(name))
		harness.Must(t, err)
		harness.Must(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
		harness.Must(t, os.WriteFile(w.path(name), []byte(content), 0o644))
		harness.Must(t, os.Chmod(w.path(name), source.Mode()))
		p.Identical = append(p.Identical, name)
	}
	base := harness.Old("gone.txt", "out/gone.txt", "beside/gone.bin")
	for _, name := range base.Names() {
		harness.Must(t, os.WriteFile(w.path(name), []byte(base[name]), 0o604))
	}
	w.site.Project.SealChanges(t, "changes-"+filepath.Base(w.dir), base)
	w.give(t)
	w.old = anew(w.picture(t))
}

func commitTakenAway(t *testing.T, way *command) {
	w := borrow(t, way)
	var sum harness.Tally
	w.reset(t)
	p := w.site.Project
	calls := w.site.Commit(t, harness.Killing(1<<30, w.changing)).Fault.Calls
	s := sample.Thin(t, max(1, calls/30), 3)
	for i := 0; s.At(i) < calls; i++ {
		w.reset(t)
		r := w.site.Commit(t, harness.Killing(s.At(i), w.changing))
		stages, err := filepath.Glob(w.path(".spectrum06_staging_*"))
		harness.Must(t, err)
		if !r.Killed() || len(stages) == 0 {
			continue
		}
		harness.Must(t, os.RemoveAll(stages[0]))
		changed := w.isChanged(t)
		found := p.Run(t, nil, "recover", w.site.Root)
		switch {
		case !changed:
			sum.Add("as before")
		case found.Status == 3:
			sum.Add("halted")
			p.Must(t, "rollback", "--emergency", w.site.Root)
			if r := p.Must(t, "recover", w.site.Root); r.Stdout != "clean\n" {
				t.Error(r)
			}
			continue
		case strings.Contains(found.Stdout, "completed ") || strings.Contains(p.Must(t, "audit", "show").Stdout, " commit_end "):
			sum.Add("completed")
		default:
			t.Errorf("killed before %s\n%v", w.site.Last(r), found)
		}
		if found.Status != 0 {
			t.Errorf("killed before %s\n%v", w.site.Last(r), found)
		}
	}
	sum.Demand(t, "halted", "as before")
}

// putBack puts the staging directory back while the root is halted.
func (w *fixture) putBack(t *testing.T, way string, put func()) {
	t.Helper()
	end := " rollback session "
	if way == "emergency" {
		end = " rollback emergency "
	}
	put()
	p := w.site.Project
	if r := p.Run(t, nil, "recover", w.site.Root); r.Status != 0 {
		t.Error(r)
	}
	if log := p.Must(t, "audit", "show").Stdout; !strings.Contains(log[strings.LastIndex(log, " halt "):], end) {
		t.Errorf("%s is not logged:\n%s", end, log)
	}
	if w.isChanged(t) {
		if _, err := w.site.Check(harness.After); err != nil {
			t.Error(err)
		}
	}
}

// putBackLate puts it back after the root was released: nothing is resumed.
func (w *fixture) putBackLate(t *testing.T, stage string, put func()) {
	t.Helper()
	p := w.site.Project
	id := strings.TrimPrefix(filepath.Base(stage), ".spectrum06_exchange_")
	p.Must(t, "recover", "--acknowledge", "--statement", fmt.Sprintf("I have looked at %s; what is left of %s stays.", w.site.Root, id[:8]), w.site.Root)
	put()
	before, log := w.picture(t), p.Must(t, "audit", "show").Stdout
	for _, args := range [][]string{{"recover", w.site.Root}, {"snapshot", "take", w.site.Root}} {
		if r := p.Run(t, nil, args...); r.Status != 0 || !strings.Contains(r.Stderr, "it is not resumed") || !strings.Contains(r.Stderr, "rm -r '"+stage+"'") {
			t.Errorf("%v", r)
		}
	}
	if diff := harness.Diff(before, w.picture(t)); diff != "" {
		t.Errorf("an attempt that was released was resumed:\n%s", diff)
	}
	if now := p.Must(t, "audit", "show").Stdout; strings.Count(now, " rollback ") != strings.Count(log, " rollback ") {
		t.Errorf("before\n%s\nafter\n%s", log, now)
	}
	harness.Must(t, os.RemoveAll(stage))
	p.Must(t, "recover", w.site.Root)
}

// isChanged reports whether a file of the root is another one than before the command.
func (w *fixture) isChanged(t testing.TB) bool {
	now := w.picture(t)
	for name, was := range w.site.Before {
		if is, stands := now[name]; !was.Mode.IsDir() && (!stands || is.Inode != was.Inode) {
			return true
		}
	}
	for name := range now {
		if _, was := w.site.Before[name]; !was && !strings.HasPrefix(name, ".spectrum06_") {
			return true
		}
	}
	return false
}
