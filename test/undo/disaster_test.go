package undo

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A person follows what the program prints: the commands in quotes of its hints, with a place
// holder replaced by what the program itself lists. He knows the restore root, and that there
// is "spectrum rollback --emergency".
type person struct {
	t    *testing.T
	w    *fixture
	root string
}

// commandIn finds a command in a hint.
var commandIn = regexp.MustCompile(`"spectrum ([^"]*)"`)

// word finds a word of a command, which is in quotes where it has spaces.
var word = regexp.MustCompile(`'[^']*'|[^ ]+`)

// stateOption is what a printed command has for this state directory, which the person's own
// commands have anyway.
var stateOption = regexp.MustCompile(` --state-dir ('[^']*'|[^ ']*)`)

// does runs a command, and returns all that it prints.
func (p *person) does(args ...string) (harness.Reply, string) {
	p.t.Helper()
	r := p.w.site.Project.Run(p.t, nil, args...)
	p.t.Logf("$ spectrum %s\n%s%s(%d)", strings.Join(args, " "), r.Stdout, r.Stderr, r.Status)
	return r, r.Stdout + r.Stderr
}

// TestDisasterService: a service goes on writing while its root is taken back. Nothing that it
// wrote is lost: it is in the root, in the snapshot that the answer names, or in the files that the
// answer says are kept.
func TestDisasterService(t *testing.T) {
	for _, format := range kindsOfVolumes() {
		t.Run(format.Name, func(t *testing.T) { serviceOn(t, harness.MountedVolume(t, format).Path) })
	}
}

func serviceOn(t *testing.T, volume string) {
	own := *project(t)
	own.State = filepath.Join(harness.MemoryDir(t), "state")
	harness.Must(t, os.Mkdir(own.State, 0o700))
	site := own.Site(t, filepath.Join(volume, "root"))
	harness.Must(t, os.RemoveAll(filepath.Join(site.Root, harness.ForeignStaging)))
	w := &fixture{site: site}
	p := &person{t, w, site.Root}
	harness.Must(t, os.MkdirAll(w.path("service"), 0o755))
	harness.Must(t, os.WriteFile(w.path("service/log"), nil, 0o644))
	p.does("snapshot", "take", "--reason", "good", site.Root)
	good := harness.ReadFile(t, w.path("beside/deep.txt"))

	var wrote atomic.Int64
	stop, stopped := make(chan struct{}), make(chan error)
	go func() { // a log that grows, beside temporary files, as services do
		stopped <- service(w.path("service"), &wrote, stop)
	}()
	harness.Eventually(t, "the service writes", func() bool { return wrote.Load() > 20 })
	harness.Must(t, os.WriteFile(w.path("beside/deep.txt"), []byte("damaged"), 0o604))
	r, answer := p.does("rollback", "--emergency", site.Root)
	if r.Status != 0 {
		t.Fatalf("%v", r)
	}
	if is := harness.ReadFile(t, w.path("beside/deep.txt")); is != good {
		t.Errorf("the damage is still there: %q", is)
	}
	undo := regexp.MustCompile(`snapshot restore ([0-9a-f]+)"`).FindStringSubmatch(answer)
	if undo == nil {
		t.Fatalf("the answer does not say how to undo it: %q", answer)
	}
	aside := filepath.Join(volume, "aside")
	if r, _ := p.does("snapshot", "restore", "--to", aside, undo[1]); r.Status != 0 {
		t.Fatalf("%v", r)
	}
	close(stop)
	harness.Must(t, <-stopped)
	lines := map[string]bool{} // of the service, wherever they are kept
	for _, kept := range regexp.MustCompile(`is kept in '?([^'\n]*)`).FindAllStringSubmatch(answer, -1) {
		harness.Must(t, gather(kept[1], lines))
	}
	for _, dir := range []string{site.Root, aside} {
		harness.Must(t, gather(filepath.Join(dir, "service", "log"), lines))
	}
	for n := range wrote.Load() {
		if !lines[fmt.Sprint("line ", n)] {
			t.Errorf("line %d of %d that the service wrote is lost", n, wrote.Load())
			break
		}
	}
	if wrote.Load() < 20 {
		t.Errorf("the service wrote %d lines only", wrote.Load())
	}
	p.finds("audit", "verify")

	// Now that the service has ended the person takes it back, by the line that says how, and
	// goes back once more.
	p.follows(answer, "snapshot restore", "")
	if is := harness.ReadFile(t, w.path("beside/deep.txt")); is != "damaged" {
		t.Errorf("taken back it is %q", is)
	}
	p.finds("rollback", "--emergency", site.Root)
	if is := harness.ReadFile(t, w.path("beside/deep.txt")); is != good {
		t.Errorf("the damage is there again: %q", is)
	}
}

// follows runs the first command that an answer names with this beginning, which must succeed.
// A place holder is the restore root, or the snapshot that the person means.
func (p *person) follows(answer, begins, id string) string {
	p.t.Helper()
	for _, found := range commandIn.FindAllStringSubmatch(stateOption.ReplaceAllString(answer, ""), -1) {
		if !strings.HasPrefix(found[1], begins) {
			continue
		}
		args := word.FindAllString(found[1], -1)
		for i, arg := range args {
			switch args[i] = strings.Trim(arg, "'"); arg {
			case "RESTORE_ROOT":
				args[i] = p.root
			case "ID":
				args[i] = id
			}
		}
		r, answer := p.does(args...)
		if r.Status != 0 {
			p.t.Fatalf("%v", r)
		}
		return answer
	}
	p.t.Fatalf("no command %q in %q", begins, answer)
	return ""
}

// finds requires a command to find nothing wrong.
func (p *person) finds(args ...string) {
	p.t.Helper()
	if r, _ := p.does(args...); r.Status != 0 {
		p.t.Errorf("%v", r)
	}
}

// service opens its log anew for each line, makes it again where it is gone, and makes and
// removes temporary files.
func service(dir string, wrote *atomic.Int64, stop <-chan struct{}) error {
	for n := int64(0); ; n++ {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Millisecond):
		}
		for {
			err := os.MkdirAll(dir, 0o755)
			var f *os.File
			if err == nil {
				f, err = os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
			}
			if os.IsNotExist(err) || os.IsExist(err) { // it goes away just now
				continue
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(f, "line", n)
			if err := f.Close(); err != nil {
				return err
			}
			if err != nil {
				return err
			}
			break
		}
		wrote.Store(n + 1)
		temp := filepath.Join(dir, fmt.Sprint("temp", n%7))
		_ = os.WriteFile(temp, []byte("temporary"), 0o600)
		_ = os.Remove(temp)
	}
}

func gather(path string, lines map[string]bool) error {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines[s.Text()] = true
	}
	return nil
}

// TestDisasterNewestDamaged: the newest snapshot is damaged. The command that restores it reports
// what is wrong and what helps. If the content is still in the root it is copied again, and the
// restore works; otherwise the snapshot before it is restored.
func TestDisasterNewestDamaged(t *testing.T) {
	kind := &command{name: "newest damaged", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.target, w.old = w.take(t), anew(w.picture(t))
		w.goOnAfter(t)
		w.take(t)
		harness.Must(t, os.WriteFile(w.path("foreign.txt"), []byte("went on"), 0o640))
	}}
	for _, g := range turnsOf(kind) {
		t.Run(g.Name, func(t *testing.T) {
			w := borrowOn(t, kind, g)
			for _, stands := range []bool{true, false} {
				w.reset(t)
				w.newestDamaged(t, stands)
			}
		})
	}
}

func (w *fixture) newestDamaged(t *testing.T, stands bool) {
	t.Helper()
	p := &person{t, w, w.site.Root}
	newest := w.newest(t)
	for _, object := range w.glob("snapshots/objects/*/*") {
		if strings.Contains(harness.ReadFile(t, object), "only in the newest") {
			harness.Must(t, os.Remove(object))
		}
	}
	if stands { // at another name
		harness.Must(t, os.Rename(w.path("precious"), w.path("moved")))
	} else {
		harness.Must(t, os.RemoveAll(w.path("precious")))
	}
	look := "restore"
	if stands { // a restore would work: the snapshot before it keeps that content, and so brings it again
		look = "verify"
	}
	r, answer := p.does("snapshot", look, newest)
	if r.Status != 1 {
		t.Fatalf("%v", r)
	}
	if stands {
		p.follows(answer, "snapshot verify --repair", newest)
		p.finds("snapshot", "restore", newest)
		if is := harness.ReadFile(t, w.path("precious")) + harness.ReadFile(t, w.path("foreign.txt")); is != "only in the newestnot yours: foreign.txt" {
			t.Errorf("the newest is not back: %q", is)
		}
		return
	}
	answer = p.follows(answer, "rollback --emergency", "")
	if !strings.Contains(answer, "skipped: snapshot "+newest[:8]) {
		t.Fatalf("%q", answer)
	}
	if diff := harness.Diff(w.old, anew(w.picture(t))); diff != "" {
		t.Error(diff)
	}
}

// goOnAfter makes a file that only the newest snapshot has.
func (w *fixture) goOnAfter(t testing.TB) {
	t.Helper()
	harness.Must(t, os.WriteFile(w.path("precious"), []byte("only in the newest"), 0o600))
}

// TestDisasterStateLost: parts of the state directory are lost, one after the other. The doctor
// names them. The person goes back with what is left, takes a new snapshot, breaks something,
// goes back again, and takes that back by the line that says how.
func TestDisasterStateLost(t *testing.T) {
	for _, g := range turnsOf(damaging()) {
		t.Run(g.Name, func(t *testing.T) {
			w := borrowOn(t, damaging(), g)
			w.reset(t)
			pictures := w.restorable(t)
			for _, lost := range [][]string{
				{"audit.log"}, {"savepoints"}, {"host.pem"}, {"journal.key", "attempts", "previews"}, {"audit.log", "savepoints", "host.pem", "journal.key", "rolled-back", "roots.log"},
			} {
				t.Run(strings.Join(lost, " "), func(t *testing.T) {
					w.reset(t)
					w.loses(t, lost, pictures)
				})
			}
		})
	}
}

func (w *fixture) loses(t *testing.T, lost []string, pictures map[string]harness.Tree) {
	t.Helper()
	for _, name := range lost {
		harness.Must(t, os.RemoveAll(filepath.Join(w.state(), name)))
	}
	p := &person{t, w, w.site.Root}
	if r, answer := p.does("doctor", "-q"); lost[0] != "journal.key" && (r.Status != 1 || !strings.Contains(answer, "hint: ")) {
		t.Errorf("the doctor does not find it: %v", r)
	}
	r, answer := p.does("rollback", "--emergency", "--json", w.site.Root)
	target := ""
	for id := range pictures {
		if strings.Contains(answer, `"target":"`+id+`"`) {
			target = id
		}
	}
	if r.Status != 0 || target == "" {
		t.Fatalf("%v", r)
	}
	if diff := harness.Diff(pictures[target], anew(w.picture(t))); diff != "" {
		t.Error(diff)
	}
	p.finds("snapshot", "take", w.site.Root)
	good := anew(w.picture(t))
	harness.Must(t, os.WriteFile(w.path("foreign.txt"), []byte("broken"), 0o640))
	w.give(t)
	broken := anew(w.picture(t))
	_, answer = p.does("rollback", "--emergency", w.site.Root)
	if diff := harness.Diff(good, anew(w.picture(t))); diff != "" {
		t.Errorf("back once more:\n%s", diff)
	}
	p.follows(answer, "snapshot restore", "")
	if diff := harness.Diff(broken, anew(w.picture(t))); diff != "" {
		t.Errorf("and taken back:\n%s", diff)
	}
}
