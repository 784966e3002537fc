package attack

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// committed is a project whose commit a rollback can undo, and that commit.
func committed(t *testing.T, uid int) (*harness.Project, *harness.Site, string) {
	t.Helper()
	p := harness.New(t, harness.Small())
	site := p.Site(t, filepath.Join(t.TempDir(), "root"))
	give(t, p, uid, site.Root)
	r := site.Commit(t, nil)
	commit := commitOf(r.Stderr)
	if r.Status != 0 || commit == "" {
		t.Fatal(r)
	}
	return p, site, commit
}

var undoes = regexp.MustCompile(`rollback (?:--foreign-root \S+ )?([0-9a-f-]{36})" undoes it`)

// commitOf is the commit that a command says how to undo; "" if none.
func commitOf(stderr string) string {
	if m := undoes.FindStringSubmatch(stderr); m != nil {
		return m[1]
	}
	return ""
}

// TestViewsOfOthersAreNotAsked: a rollback beside views of another user, whose
// server kills the process that asks it, takes its limits, or answers with much. It sends
// no request, completes, and names the views.
func TestViewsOfOthersAreNotAsked(t *testing.T) { victims(t, viewsOfOthers) }

func viewsOfOthers(t *testing.T, uid int) {
	p, site, commit := committed(t, uid)
	dir := open(t)
	var all []*served
	for name, a := range map[string]answers{"kills": {Size: 100, Attack: true}, "long": {Size: 100 << 20}, "stopped": {}} {
		at := filepath.Join(dir, name)
		harness.Must(t, os.Mkdir(at, 0o755))
		s := serveAs(t, alice, at, a)
		if name == "stopped" {
			harness.Freeze(t, s.cmd.Process.Pid)
		}
		all = append(all, s)
	}
	r := p.Run(t, nil, "rollback", "--json", commit)
	var answer struct {
		Views []string `json:"views"`
		Other []struct {
			Mountpoint string `json:"mountpoint"`
			UserID     int    `json:"user_id"`
		} `json:"other_views"`
	}
	if r.Status != 0 || json.Unmarshal([]byte(r.Stdout), &answer) != nil {
		t.Fatal(r)
	}
	for _, s := range all {
		s.checkUnasked(t, "rollback")
		if mountsOn(t, s.dir) != 1 {
			t.Errorf("the view on %q was detached", s.dir)
		}
		named := slices.ContainsFunc(answer.Other, func(o struct {
			Mountpoint string `json:"mountpoint"`
			UserID     int    `json:"user_id"`
		}) bool {
			return o.Mountpoint == s.dir && o.UserID == alice
		})
		if !named || !strings.Contains(r.Stderr, s.dir) {
			t.Errorf("the view on %q is not named: %v", s.dir, r)
		}
	}
	if len(answer.Views) != 0 {
		t.Errorf("detached %q", answer.Views)
	}
	after := harness.MustTake(t, site.Root)
	if _, ok := after["RESTORE_REPORT.json"]; ok {
		t.Error("the commit is still there")
	}
}

// TestHiddenViewIsRevoked: another user's view hides the one of root that a rollback has to
// take back. Root's is cut off by the number of its connection, so that those who hold it
// read nothing any more; the other one is not asked, and stays.
func TestHiddenViewIsRevoked(t *testing.T) {
	needRoot(t)
	const control = "/sys/fs/fuse/connections"
	harness.Must(t, unix.Mount("none", control, "fusectl", 0, ""))
	t.Cleanup(func() { harness.Must(t, unix.Unmount(control, unix.MNT_DETACH)) })
	p, _, commit := committed(t, 0)
	dir := filepath.Join(open(t), "view")
	harness.Must(t, os.Mkdir(dir, 0o755))
	v := p.MountOn(t, dir, harness.Mounting{})
	held, err := os.Open(v.Dir)
	harness.Must(t, err)
	defer held.Close()
	cover := serveAs(t, harness.Nobody, dir, answers{})
	var answer struct {
		Views []string `json:"views"`
	}
	r := p.Must(t, "rollback", "--json", commit)
	if json.Unmarshal([]byte(r.Stdout), &answer) != nil || !slices.Equal(answer.Views, []string{v.Dir}) {
		t.Error(r)
	}
	if status := v.Wait(t); status != 74 || !strings.Contains(v.Log(), "another mount hides the view") {
		t.Errorf("the server ended with status %d: %s", status, v.Log())
	}
	if names, err := held.Readdirnames(-1); len(names) > 0 || err == nil {
		t.Errorf("who holds the view reads %q, %v", names, err)
	}
	cover.checkUnasked(t, "rollback")
	if mountsOn(t, dir) != 2 {
		t.Error("what hides the view was unmounted")
	}
	takeAway(t, dir)
}

// TestForeignMountIsFoundInTheTable: no command sends a request to the server of another
// user, on whose mount, or in which, it is pointed. Only root takes his mount away.
func TestForeignMountIsFoundInTheTable(t *testing.T) { victims(t, judgedByTheTable) }

func judgedByTheTable(t *testing.T, uid int) {
	p := harness.New(t, harness.Small())
	give(t, p, uid)
	run := p.Runs[0].Dir
	for _, test := range []struct {
		name   string
		args   func(dir string) []string
		status int
		gone   bool
		held   bool
	}{
		{"umount", func(dir string) []string { return []string{"umount", dir} }, 0, true, false},
		{"umount, held", func(dir string) []string { return []string{"umount", dir} }, 1, false, true},
		{"umount beneath", func(dir string) []string { return []string{"umount", dir + "/x/y"} }, 74, false, false},
		{"mount", func(dir string) []string { return []string{"mount", run, dir} }, 1, false, false},
		{"mount beneath", func(dir string) []string { return []string{"mount", run, dir + "/x"} }, 74, false, false},
		{"preview", func(dir string) []string { return []string{"preview", "--from-mount", dir} }, 74, false, false},
		{"doctor", func(string) []string { return []string{"doctor"} }, -1, false, false},
	} {
		for _, stopped := range []bool{false, true} {
			dir := filepath.Join(open(t), "view")
			harness.Must(t, os.Mkdir(dir, 0o755))
			s := serveAs(t, alice, dir, answers{Size: 100, Attack: true})
			if stopped {
				harness.Freeze(t, s.cmd.Process.Pid)
			}
			if test.held {
				fd, err := unix.Open(dir, unix.O_PATH, 0)
				harness.Must(t, err)
				defer func() { _ = unix.Close(fd) }()
			}
			if uid != 0 && slices.Equal(test.args(dir), []string{"umount", dir}) {
				test.status, test.gone = 74, false
			}
			r := p.Run(t, nil, test.args(dir)...)
			if r.Hung || test.status >= 0 && r.Status != test.status || r.Killed() {
				t.Errorf("%s, server stopped %v: %v", test.name, stopped, r)
			}
			if stopped {
				harness.Must(t, s.cmd.Process.Signal(unix.SIGCONT))
			}
			if gone := mountsOn(t, dir) == 0; gone != test.gone {
				t.Errorf("%s, server stopped %v: gone is %v", test.name, stopped, gone)
			}
			if !test.gone { // what it did not read before is asked of it now, behind what was
				_, _ = os.Stat(dir)
				asked := s.asked()
				harness.Eventually(t, "it was asked", func() bool { asked = s.asked(); return len(asked) > 0 })
				if len(asked) != 1 || !strings.HasPrefix(asked[0], "request getattr 0 ") {
					t.Errorf("%s: %q", test.name, asked)
				}
				continue
			}
			s.checkUnasked(t, test.name)
		}
	}
}

// TestLongAnswerCostsLittle: a view of the user's own answers with 16 MiB of small JSON
// values. What is read of it is bounded, and so is the memory; and it is detached, since
// it may show what was rolled back.
func TestLongAnswerCostsLittle(t *testing.T) { victims(t, longAnswer) }

func longAnswer(t *testing.T, uid int) {
	p, _, commit := committed(t, uid)
	dir := filepath.Join(open(t), "view")
	harness.Must(t, os.Mkdir(dir, 0o755))
	harness.Must(t, os.Chown(dir, uid, uid))
	if uid != 0 {
		showConnections(t)
	}
	s := serveAs(t, uint32(uid), dir, answers{Size: 16 << 20})
	argv := p.Argv("rollback", "--json", commit)
	cmd := exec.Command(argv[0], argv[1:]...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if peak := peakOf(cmd); peak > 200<<20 {
		t.Errorf("the rollback took %d MiB", peak>>20)
	}
	reads := 0
	for _, request := range s.asked() {
		if strings.HasPrefix(request, "request read ") {
			reads++
		}
	}
	if reads == 0 || reads > 4 {
		t.Errorf("%d requests to read", reads)
	}
	if mountsOn(t, dir) != 0 {
		t.Errorf("it stays: %s", out)
	}
}

// showConnections has the files of FUSE connections shown, by which an ordinary user cuts off
// a server of his own.
func showConnections(t *testing.T) {
	t.Helper()
	const at = "/sys/fs/fuse/connections"
	harness.Must(t, unix.Mount("fusectl", at, "fusectl", 0, ""))
	t.Cleanup(func() { harness.Must(t, unix.Unmount(at, 0)) })
}
