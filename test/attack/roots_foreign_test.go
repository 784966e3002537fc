package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// Two ordinary users, neither of them in a table of accounts: alice attacks, bob is the
// operator where root is not.
const (
	alice = 4241
	bob   = 4242
)

// A neighbourhood is an operator's project, with a directory of alice on the way to the
// restore root, and a tree elsewhere that nothing may be done to.
type neighbourhood struct {
	*harness.Project
	t                     *testing.T
	operator              int
	top, bin, run         string
	theirs, root          string // alice's directory, and the restore root in it
	link, meant           string // a link in it, and where it leads at first
	victim                string
	before                harness.Tree // of the victim
	commit, whole, byLink string       // a commit in root, and snapshots of root and meant
}

// beside runs a test with root as the operator, and with an ordinary user.
func beside(t *testing.T, test func(t *testing.T, n *neighbourhood)) {
	needRoot(t)
	for name, operator := range map[string]int{"root": 0, "ordinary": bob} {
		t.Run(name, func(t *testing.T) { test(t, newNeighbourhood(t, operator)) })
	}
}

// newNeighbourhood makes all of it while the directory is still the operator's.
func newNeighbourhood(t *testing.T, operator int) *neighbourhood {
	t.Helper()
	top := open(t)
	at := func(name string) string { return filepath.Join(top, name) }
	n := &neighbourhood{
		Project: &harness.Project{Dir: at("project"), State: at("kept/state")}, t: t, operator: operator, top: top, bin: at("spectrum"),
		theirs: at("theirs"), root: at("theirs/root"), link: at("theirs/link"), meant: at("meant"), victim: at("victim"),
	}
	n.run = filepath.Join(n.Dir, "CONTRACTS/_runs/r1")
	for _, name := range []string{"project/out/a", "theirs/root/mine", "meant/mine", "victim/precious", "victim/out/precious", "kept/note"} {
		harness.Must(t, os.MkdirAll(filepath.Dir(at(name)), 0o755))
		harness.Must(t, os.WriteFile(at(name), []byte(name), 0o644))
	}
	harness.Must(t, os.Symlink(n.meant, n.link))
	program, err := os.ReadFile(harness.Binary())
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(n.bin, program, 0o755)) // where an ordinary user can run it
	harness.Must(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, operator, operator))
	}))
	n.must("keygen", "--out", at("kept/key.pem"))
	n.must("seal", "-q", "--key", at("kept/key.pem"), "--run-dir", n.run, filepath.Join(n.Dir, "out"))
	n.commit = n.committed(n.root)
	n.whole, n.byLink = n.snapshot(n.root), n.snapshot(n.meant)
	n.before = n.take(n.victim)
	return n
}

func (n *neighbourhood) take(dir string) harness.Tree {
	n.t.Helper()
	tree, err := harness.Take(dir)
	harness.Must(n.t, err)
	return tree
}

// as runs a program as another user, and returns its exit status and its output.
func (n *neighbourhood) as(uid int, argv ...string) (status int, stdout, stderr string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), harness.Patience)
	defer cancel()
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, "setpriv", asUser(uid, argv)[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), diag.String()
}

func asUser(uid int, argv []string) []string {
	return append([]string{"setpriv", fmt.Sprintf("--reuid=%d", uid), fmt.Sprintf("--regid=%d", uid), "--clear-groups"}, argv...)
}

// spectrum runs a command of the program as the operator.
func (n *neighbourhood) spectrum(args ...string) harness.Reply {
	n.t.Helper()
	argv := n.Argv(args...)
	argv[0] = n.bin
	r := harness.Reply{Args: args}
	r.Status, r.Stdout, r.Stderr = n.as(n.operator, argv...)
	_ = json.Unmarshal([]byte(r.Stdout), &r.Answer)
	return r
}

func (n *neighbourhood) must(args ...string) harness.Reply {
	n.t.Helper()
	r := n.spectrum(args...)
	if r.Status != 0 {
		n.t.Fatal(r)
	}
	return r
}

// attack has alice run a shell command.
func (n *neighbourhood) attack(command string, args ...any) {
	n.t.Helper()
	if status, _, said := n.as(alice, "sh", "-c", fmt.Sprintf(command, args...)); status != 0 {
		n.t.Fatalf("alice: %s", said)
	}
}

// becomeTheirs gives alice the directory.
func (n *neighbourhood) becomeTheirs(dir string) { harness.Must(n.t, os.Chown(dir, alice, alice)) }

// shown is what a preview answers.
type shown struct {
	ID   string `json:"preview_id"`
	Root struct {
		Path  string `json:"path"`
		Real  string `json:"real_path"`
		Owner int    `json:"owner"`
	} `json:"restore_root"`
	Conflicts []struct {
		ID      string `json:"conflict_id"`
		Type    string `json:"type"`
		Item    string `json:"item"`
		Current string `json:"current_state"`
	} `json:"conflicts"`
	Approval struct {
		Statement string `json:"statement"`
	} `json:"approval"`
}

func (n *neighbourhood) preview(root string) (s shown) {
	n.t.Helper()
	harness.Must(n.t, json.Unmarshal([]byte(n.must("preview", "--json", "--restore-root", root, n.run).Stdout), &s))
	return s
}

// committed commits to a root and returns the id of the commit.
func (n *neighbourhood) committed(root string) string {
	n.t.Helper()
	s := n.preview(root)
	r := n.must("commit", "--preview", s.ID, "--approve", s.Approval.Statement)
	return n.committedNow(r.Stderr)
}

func (n *neighbourhood) snapshot(root string) string {
	n.t.Helper()
	return strings.TrimSpace(strings.TrimPrefix(n.must("snapshot", "take", root).Stdout, "OK "))
}

// untouched requires that the victim is as it was.
func (n *neighbourhood) untouched(what any) {
	n.t.Helper()
	if diff := harness.Diff(n.before, n.take(n.victim)); diff != "" {
		n.t.Fatalf("%v: %s", what, diff)
	}
}

// withoutPreview are the commands that take the restore root without a preview.
func (n *neighbourhood) withoutPreview(root string) map[string][]string {
	commands := map[string][]string{
		"emergency": {"rollback", "--emergency", root}, "recover": {"recover", root}, "acknowledge": {"recover", "--acknowledge", root},
		"take": {"snapshot", "take", root}, "list": {"snapshot", "list", root}, "prune": {"snapshot", "prune", "--keep-last", "1", root},
	}
	if root == n.root {
		commands["rollback"], commands["restore"] = []string{"rollback", n.commit}, []string{"snapshot", "restore", n.whole}
	}
	return commands
}

// refused requires that a command was rejected because of a directory of alice.
func (n *neighbourhood) refused(args []string, directory, real string) {
	n.t.Helper()
	r := n.spectrum(append(args, "--json")...)
	var answer struct {
		Code    string
		Details struct {
			Directory string `json:"directory"`
			Owner     int    `json:"owner"`
			Root      string `json:"restore_root"`
		}
	}
	_ = json.Unmarshal([]byte(r.Stdout), &answer)
	if d := answer.Details; r.Status != 4 || answer.Code != "ROOT_FOREIGN" || d.Directory != directory || d.Owner != alice || d.Root != real {
		n.t.Fatal(r)
	}
	if !strings.Contains(r.Stderr, directory) || !strings.Contains(r.Stderr, "user 4241") || !strings.Contains(r.Stderr, "--foreign-root "+real) {
		n.t.Errorf("it does not say what to do: %v", r)
	}
}

// TestDoctorNamesWhoCanRenameARoot: doctor says which other user can rename a restore root, and
// what follows from that.
func TestDoctorNamesWhoCanRenameARoot(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		if r := n.spectrum("doctor", n.meant); !strings.Contains(r.Stdout, "root-parents     no other user can rename") {
			t.Error(r)
		}
		n.becomeTheirs(n.theirs)
		if r := n.spectrum("doctor", n.root); !strings.Contains(r.Stdout, "warn    root-parents     user 4241 can rename or replace") || !strings.Contains(r.Stdout, "--foreign-root "+n.root) {
			t.Error(r)
		}
	})
}

// TestForeignRootOfAnother: --foreign-root names another directory than the one that a command
// is for, which no other user can rename: that is a contradiction, and nothing is done. A
// rollback or a restore that is rejected is logged.
func TestForeignRootOfAnother(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		log := filepath.Join(n.State, "audit.log")
		before, state, logged := n.take(n.root), n.take(n.State), harness.ReadFile(t, log)
		commands := n.withoutPreview(n.root)
		commands["watch"] = []string{"snapshot", "watch", n.root, n.meant}
		for name, args := range commands {
			r := n.spectrum(append(args, "--foreign-root", n.victim)...)
			if r.Status != 64 || !strings.Contains(r.Stderr, n.victim) || !strings.Contains(r.Stderr, n.root) {
				t.Errorf("%s: %v", name, r)
			}
		}
		after := n.take(n.State)
		delete(state, "audit.log")
		delete(after, "audit.log")
		if diff := harness.Diff(before, n.take(n.root)) + harness.Diff(state, after); diff != "" {
			t.Fatal(diff)
		}
		for line := range strings.Lines(strings.TrimPrefix(harness.ReadFile(t, log), logged)) {
			if !strings.Contains(line, `"kind":"rollback_refused"`) {
				t.Errorf("it was logged: %s", line)
			}
		}
		n.must("snapshot", "take", n.root, "--foreign-root", n.root)
	})
}

// TestForeignRootNeedsItsName: a restore root in a directory of another user, or behind a
// link of his. The commands that have no preview touch it only when its real path is named,
// and not what stands in its place later.
func TestForeignRootNeedsItsName(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		n.becomeTheirs(n.theirs)
		for root, real := range map[string]string{n.root: n.root, n.link: n.meant} {
			before := n.take(real)
			for _, args := range n.withoutPreview(root) {
				n.refused(args, n.theirs, real)
				n.refused(append(args, "--foreign-root", n.victim), n.theirs, real)
				n.refused(append(args, "--foreign-root", n.link), n.theirs, real)
			}
			if diff := harness.Diff(before, n.take(real)); diff != "" {
				t.Fatal(diff)
			}
			for _, name := range []string{"recover", "take", "list"} {
				n.must(append(n.withoutPreview(root)[name], "--foreign-root", real)...)
			}
		}
		n.must("rollback", "--foreign-root", n.root, n.commit)
		n.must("snapshot", "restore", "--foreign-root", n.root, n.whole)
		n.attack("ln -sfn %s %s && mv %s %s.away && ln -s %s %s", n.victim, n.link, n.root, n.root, n.victim, n.root)
		for _, args := range n.withoutPreview(n.link) {
			n.refused(append(args, "--foreign-root", n.meant), n.theirs, n.victim)
		}
		for _, args := range n.withoutPreview(n.root) {
			n.refused(append(args, "--foreign-root", n.root), n.theirs, n.victim)
		}
		n.untouched("the link leads elsewhere")
		harness.Must(t, os.Chown(n.theirs, n.operator, n.operator)) // no longer alice's: nothing to acknowledge
		for _, name := range []string{"recover", "list"} {
			n.must(n.withoutPreview(n.link)[name]...)
		}
	})
}

// TestForeignRootIsNotRecoveredImplicitly: what a killed commit has left in such a root is
// ended by a command that names the real path, and by no preview or commit.
func TestForeignRootIsNotRecoveredImplicitly(t *testing.T) {
	needRoot(t)
	n := newNeighbourhood(t, 0)
	s := n.preview(n.link)
	commit := []string{"commit", "--preview", s.ID, "--approve", s.Approval.Statement}
	if r := n.Run(t, &sysfault.Plan{N: 1, Kill: true, Match: func(c sysfault.Call) bool {
		return c.Name == "renameat2" && c.To == filepath.Join(n.meant, "out")
	}}, commit...); !r.Killed() {
		t.Fatal(r)
	}
	n.becomeTheirs(n.theirs)
	before := n.take(n.meant)
	n.refused([]string{"preview", "--restore-root", n.link, n.run}, n.theirs, n.meant)
	n.refused(commit, n.theirs, n.meant)
	if diff := harness.Diff(before, n.take(n.meant)); diff != "" {
		t.Fatal(diff)
	}
	n.must("recover", "--foreign-root", n.meant, n.link)
	n.preview(n.link)
}

// TestForeignRootIsAcknowledged: the preview names what another user can rename; no
// statement that leaves it out is enough, and what leads elsewhere afterwards is stale.
func TestForeignRootIsAcknowledged(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		n.becomeTheirs(n.theirs)
		before := n.take(n.meant)
		s := n.preview(n.link)
		if s.Root.Path != n.link || s.Root.Real != n.meant || s.Root.Owner != n.operator {
			t.Errorf("%+v", s.Root)
		}
		id := foreignConflict(s, n)
		if id == "" {
			t.Fatalf("no conflict: %+v", s.Conflicts)
		}
		for _, r := range []harness.Reply{
			n.spectrum(harness.CommitArgs(s.ID)...),
			n.spectrum("commit", "--json", "--preview", s.ID, "--approve", harness.Statement+" Resolve "+id+"."),
		} {
			if r.Status != 4 || r.Answer.Code != "APPROVAL_INCOMPLETE" && r.Answer.Code != "APPROVAL_UNFIT" {
				t.Fatal(r)
			}
		}
		approve := []string{"commit", "--json", "--preview", s.ID, "--approve", s.Approval.Statement}
		n.attack("ln -sfn %s %s", n.victim, n.link)
		if r := n.spectrum(approve...); r.Status != 4 || r.Answer.Code != "APPROVAL_STALE" {
			t.Fatal(r)
		}
		n.untouched("the link leads elsewhere")
		if diff := harness.Diff(before, n.take(n.meant)); diff != "" {
			t.Fatal(diff)
		}
		n.attack("ln -sfn %s %s", n.meant, n.link)
		n.must(approve...)
		if _, err := os.Lstat(filepath.Join(n.meant, ".spectrum06_lock")); !os.IsNotExist(err) {
			t.Errorf("the lock is left: %v", err)
		}
	})
}

// foreignConflict is the id of the conflict on the link, that alice can put another one in
// the place of.
func foreignConflict(s shown, n *neighbourhood) string {
	for _, c := range s.Conflicts {
		if c.Type == "authority_conflict" && c.Item == n.link && strings.Contains(c.Current, fmt.Sprintf("%q belongs to user %d", n.theirs, alice)) {
			return c.ID
		}
	}
	return ""
}

// TestForeignRootFlips: alice flips the link before any call of a commit that looks it up,
// and back before a later one. What she owns may keep the commit away, and leads none to
// another directory than the one that was approved.
func TestForeignRootFlips(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		n.becomeTheirs(n.theirs)
		aside := filepath.Join(n.theirs, "aside")
		n.attack("ln -s %s %s", n.victim, aside)
		before := n.take(n.meant)
		flip := func() {
			harness.Must(t, unix.Renameat2(unix.AT_FDCWD, n.link, unix.AT_FDCWD, aside, unix.RENAME_EXCHANGE))
		}
		id := n.preview(n.link)
		acted := 0
		for s, i := sample.Thin(t, 8, 2), 0; ; i++ {
			at, seen, flipped := s.At(i), 0, false
			plan := sysfault.Plan{N: 1, Onward: true, Match: func(c sysfault.Call) bool {
				return strings.HasPrefix(c.Path, n.theirs)
			}, Before: func(sysfault.Call) {
				if seen++; seen == at || seen == at+1 && flipped {
					flip()
					flipped = !flipped
				}
			}}
			argv := n.Argv("commit", "--json", "--preview", id.ID, "--approve", id.Approval.Statement)
			argv[0] = n.bin
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			r, err := sysfault.Run(ctx, plan, asUser(n.operator, argv)...)
			cancel()
			harness.Must(t, err)
			n.untouched(fmt.Sprintf("flipped before call %d: %d, %s", at, r.Status, r.Stderr))
			if flipped {
				flip()
			}
			if seen < at {
				break
			}
			acted++
			if r.Status == 0 { // it was used up, and is to be done again
				n.must("rollback", "--foreign-root", n.meant, n.committedNow(string(r.Stderr)))
			} else if diff := harness.Diff(before, n.take(n.meant)); diff != "" && r.Status != 3 {
				t.Fatalf("flipped before call %d: %d, %s: %s", at, r.Status, r.Stderr, diff)
			}
			before = n.take(n.meant)
			id = n.preview(n.link)
		}
		if acted == 0 {
			t.Errorf("flipped %d times", acted)
		}
	})
}

// committedNow is the commit that a line of stderr says how to undo.
func (n *neighbourhood) committedNow(stderr string) string {
	n.t.Helper()
	id := commitOf(stderr)
	if id == "" {
		n.t.Fatalf("no commit in %s", stderr)
	}
	return id
}

// TestStateCannotBeMovedAway: a validator is pinned, so a candidate of another one is held. The
// owner of a directory above the state directory moves that away. No command makes a new one, in
// which no validator is pinned, and none works in one that the attacker could move.
func TestStateCannotBeMovedAway(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		kept := filepath.Dir(n.State)
		n.must("trust", "add", strings.Repeat("ab", 32))
		preview := []string{"preview", "--json", "--restore-root", n.meant, n.run}
		if r := n.spectrum(preview...); r.Status != 5 {
			t.Fatal(r)
		}
		n.becomeTheirs(kept)
		before := n.take(n.meant)
		for _, moved := range []bool{false, true} {
			if moved {
				n.attack("mv %[1]s %[1]s.away", n.State)
			}
			for _, args := range [][]string{
				preview, harness.CommitArgs(strings.Repeat("ab", 32)), {"savepoint", "list"}, {"trust", "list"}, {"audit", "show"},
				{"snapshot", "take", n.meant}, {"snapshot", "list"}, {"recover", n.meant}, {"rollback", n.commit}, {"quarantine", "list"},
			} {
				r := n.spectrum(args...)
				if r.Status != 1 || !strings.Contains(r.Stderr, fmt.Sprintf("%q belongs to user %d", kept, alice)) || !strings.Contains(r.Stderr, "--state-dir DIR") {
					t.Errorf("moved away: %v: %v", moved, r)
				}
			}
			if _, err := os.Lstat(n.State); moved && err == nil {
				t.Error("a state directory was made")
			}
		}
		if diff := harness.Diff(before, n.take(n.meant)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestOwnGroupIsNotForeign: a user without an entry in the table of accounts, in a directory that
// only the user's own group may write. A group of another user is foreign, and so is a group with
// the user's own number of which the user is not a member.
func TestOwnGroupIsNotForeign(t *testing.T) {
	needRoot(t)
	n := newNeighbourhood(t, bob)
	for _, group := range []int{bob, alice} {
		harness.Must(t, os.Chown(n.theirs, bob, group))
		harness.Must(t, os.Chmod(n.theirs, 0o775))
		r := n.spectrum("snapshot", "take", n.root)
		if want := map[bool]int{true: 0, false: 4}[group == bob]; r.Status != want {
			t.Errorf("group %d: want exit status %d, got %v", group, want, r)
		}
	}
	harness.Must(t, os.Chown(n.theirs, bob, bob))
	argv := n.Argv("snapshot", "take", n.root)
	cmd := exec.Command("setpriv", append([]string{fmt.Sprintf("--reuid=%d", bob), fmt.Sprintf("--regid=%d", alice), "--clear-groups", n.bin}, argv[1:]...)...)
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 4 {
		t.Errorf("in another group: %v: %s", err, out)
	}
}
