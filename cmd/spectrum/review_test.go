package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/terminal"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// A reviewing is a review at a terminal.
type reviewing struct {
	*exec.Cmd
	*terminal.Seat
	t    *testing.T
	root string
	out  strings.Builder
	run  *bundletest.Run
}

// reviewFiles are new, changed and conflicting files, some with contents and names that would do
// harm to a terminal.
var reviewFiles = map[string]string{
	"docs/guide.md": "one\ntwo\n", "docs/e\x1b[2Jvil\u202e": "x\x1b]0;title\x07", "src/main.go": "package main\n\nfunc main() {}\n", "taken": "new",
}

// review starts a review of the files on a screen of this size, with more of an environment.
func startReview(t *testing.T, columns, lines int, env []string, args ...string) *reviewing {
	t.Helper()
	return reviewOf(t, reviewFiles, columns, lines, env, args...)
}

func reviewOf(t *testing.T, files map[string]string, columns, lines int, env []string, args ...string) *reviewing {
	t.Helper()
	r := &reviewing{t: t, Seat: terminal.Sit(t, columns, lines), root: t.TempDir()}
	r.run = bundletest.New(t).Run("run-1", files)
	for name, content := range map[string]string{"src/main.go": "package main\n", "taken/inside": "x"} {
		path := filepath.Join(r.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.Cmd = command(t, append([]string{"review", "--restore-root", r.root, r.run.Dir}, args...)...)
	r.Env = append(append(r.Env, "TERM=xterm-256color", "NO_COLOR=", "COLORTERM="), env...)
	r.Stdin, r.Stdout, r.Stderr = r.Program, &r.out, r.Program
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// ends waits for the end: the exit status, what is written on the terminal after the screen was
// left, that the terminal is as it was, and that the root is unless something was restored.
func (r *reviewing) ends(status int, says ...string) {
	r.t.Helper()
	_ = r.Wait()
	raw := r.IsRaw(r.t)
	all := r.Hang(r.t)
	if raw || r.IsFull() || r.IsBare() {
		r.t.Errorf("the terminal is left raw: %t, with a full screen: %t, without a cursor: %t", raw, r.IsFull(), r.IsBare())
	}
	if got := r.ProcessState.ExitCode(); got != status {
		r.t.Errorf("exit status %d, want %d:\n%s", got, status, r.Text())
	}
	_, after, _ := strings.Cut(all, "\x1b[?1049l")
	after = strings.Join(strings.Fields(after), " ")
	for _, want := range says {
		if !strings.Contains(after, want) {
			r.t.Errorf("%q is not said:\n%s", want, after)
		}
	}
	names, err := os.ReadDir(r.root)
	if whole := err == nil && len(names) > 2; whole != (status == 0) {
		r.t.Errorf("restore root: %v, %v", names, err)
	}
	if result := r.out.String(); (result == "OK\n") != (status == 0) {
		r.t.Errorf("stdout: %q", result)
	}
}

// TestReviewScreens: on each size what is needed is on the screen; a screen that is resized is
// drawn anew; nothing that came from outside reaches the terminal as it is.
func TestReviewScreens(t *testing.T) {
	t.Parallel()
	sizes := [][2]int{{40, 12}, {80, 24}, {200, 60}, {60, 20}}
	for n, size := range sizes {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			r := startReview(t, size[0], size[1], nil, "--replace")
			r.Await(t, "IN PART", "guide.md", "Approved: restore items R-001", "to decide: C-001")
			if size[0] >= 80 {
				r.Await(t, "not pinned", "┬")
			}
			r.Type(t, "/main\r\rj") // found, and looked at
			r.Await(t, "@@ -1,1 +1,3 @@")
			r.Type(t, "G")
			r.Await(t, "+func main() {}")
			next := sizes[(n+1)%len(sizes)]
			r.SetSize(t, next[0], next[1])
			if err := r.Process.Signal(syscall.SIGWINCH); err != nil {
				t.Fatal(err)
			}
			if next[1] < 18 { // the verdict has one line only
				r.Await(t, "IN PART: 1 blocked")
			}
			r.Type(t, "G")
			r.Await(t, "+func main() {}", "IN PART")
			r.Type(t, "?")
			r.Await(t, "Keys", "Enter, right, l")
			r.Type(t, "xq")
			r.ends(statusApproval, "not approved: nothing was written, and preview", "was kept", "hint: spectrum review --restore-root ", "decide C-001 as well", "incomplete: Approved: restore items R-001")
			for _, bad := range []string{"\x1b[2Jvil", "\u202e", "title\x07"} {
				if strings.Contains(r.Raw(), bad) {
					t.Errorf("%q reaches the terminal", bad)
				}
			}
		})
	}
}

// TestReviewApproves: what is chosen and decided is what is committed, once the word was typed.
func TestReviewApproves(t *testing.T) {
	t.Parallel()
	r := startReview(t, 80, 24, nil, "--replace", "--reason", "as agreed")
	r.Await(t, "to decide: C-001")
	r.Type(t, "A")
	r.Await(t, "first decide C-001")
	r.Type(t, "/guide\rx") // left out
	r.Await(t, "Approved: restore items R-001 and R-003 only.")
	r.Type(t, "cE")
	r.Await(t, "only. Acknowledge C-001", "ready, 2 files")
	r.Type(t, "A")
	r.Await(t, "The whole statement", "type Approved", "sealed with your key as a derived bundle", "conflicts: C-001 acknowledged; C-002 not decided")
	if strings.Contains(r.Text(), "conflicts: 2") {
		t.Errorf("conflicts are counted as the preview recommends:\n%s", r.Text())
	}
	r.Type(t, "approved\r")
	r.Await(t, "not quite: type exactly \"Approved\"")
	r.Type(t, "Approved\r")
	r.ends(0, "statement: Approved: restore items R-001 and R-003 only. Acknowledge C-001.", "restored 2 files", "spectrum rollback")
	if got, err := os.ReadFile(filepath.Join(r.root, "src/main.go")); err != nil || string(got) != reviewFiles["src/main.go"] {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(r.root, "docs/guide.md")); err == nil {
		t.Error("what was left out is there")
	}
	if log := must(t, "audit", "show"); !strings.Contains(log, "as agreed") {
		t.Errorf("the reason is not in the log:\n%s", log)
	}
}

// TestReviewLeaves: a review that is left at any place, by a key or by a signal, has written
// nothing and says how to go on.
func TestReviewLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed  string
		signal syscall.Signal
		status int
	}{
		"q": {"q", 0, statusApproval}, "q at the statement": {"cEAqq", 0, statusApproval}, "Ctrl-C": {"\x03", 0, statusInterrupted},
		"Ctrl-C at the statement": {"cEAApproved\x03", 0, statusInterrupted}, "Ctrl-C while searching": {"/x\x03", 0, statusInterrupted},
		"SIGTERM": {"c", syscall.SIGTERM, statusInterrupted}, "SIGHUP": {"cEA", syscall.SIGHUP, statusInterrupted}, "SIGINT": {"?", syscall.SIGINT, statusInterrupted},
		"SIGQUIT": {"i", syscall.SIGQUIT, statusInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReview(t, 80, 24, nil, "--replace")
			r.Await(t, "to decide: C-001")
			r.Type(t, c.typed)
			if c.signal != 0 {
				if err := r.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			r.ends(c.status, "nothing was written", "was kept", "spectrum ")
		})
	}
}

// TestReviewVague: three lines that are no statement put the candidate in quarantine, as those at
// the prompt of a commit do; a review of it shows it, and approves nothing.
func TestReviewVague(t *testing.T) {
	t.Parallel()
	r := startReview(t, 80, 24, nil, "--replace")
	r.Await(t, "to decide: C-001")
	r.Type(t, "cEA")
	r.Await(t, "type Approved")
	for n, shown := range []string{`"sure0" is not`, "one more", ""} {
		r.Type(t, fmt.Sprintf("sure%d\r", n))
		if shown != "" {
			r.Await(t, shown)
		}
	}
	r.ends(statusApproval, "the statement is not an explicit approval", "the candidate is in quarantine now")
	if log := must(t, "audit", "show"); !strings.Contains(log, "sure2") || strings.Contains(log, "sure2:") {
		t.Errorf("the mark has another line than the one that was typed:\n%s", log)
	}
	again := command(t, "review", "--restore-root", r.root, r.run.Dir)
	seat := terminal.Sit(t, 80, 24)
	again.Env = append(again.Env, "TERM=xterm")
	again.Stdin, again.Stderr = seat.Program, seat.Program
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	seat.Await(t, "QUARANTINED", "approval_vague")
	seat.Type(t, "A")
	seat.Await(t, "the candidate is in quarantine")
	seat.Type(t, "q")
	_ = again.Wait()
	if got := again.ProcessState.ExitCode(); got != statusPolicy {
		t.Errorf("exit status %d:\n%s", got, seat.Hang(t))
	}
}

// TestReviewStale: what a plain commit rejects a review does not bring about: the root was changed
// while it was shown.
func TestReviewStale(t *testing.T) {
	t.Parallel()
	r := startReview(t, 80, 24, nil, "--replace")
	r.Await(t, "to decide: C-001")
	if err := os.WriteFile(filepath.Join(r.root, "src/main.go"), []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Type(t, "cEA")
	r.Await(t, "type Approved")
	r.Type(t, "Approved\r")
	r.ends(statusApproval, "the preview is stale", "spectrum review --restore-root "+r.root+" --replace ")
}

// TestReviewChanged: a file that is no longer what was signed is not shown, neither its changes
// nor in the pager.
func TestReviewChanged(t *testing.T) {
	t.Parallel()
	r := startReview(t, 80, 24, []string{"PAGER=cat >/dev/null"}, "--replace")
	r.Await(t, "to decide: C-001")
	if err := os.WriteFile(filepath.Join(r.run.Project.Root, "docs/guide.md"), []byte("one\nTWO\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.Type(t, "/guide\r")
	r.Await(t, "docs/guide.md", "not match the signed hash")
	r.Type(t, "v")
	r.Await(t, `"docs/guide.md": `)
	r.Type(t, "q")
	r.ends(statusApproval)
	if strings.Contains(r.Raw(), "TWO") {
		t.Error("it was shown")
	}
}

// TestReviewPager: the pager gets what was signed, with an escape for what cannot be seen, and the
// review goes on after it.
func TestReviewPager(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page")
	r := reviewOf(t, map[string]string{"a": "one\n\u202etwo\n"}, 80, 24, []string{"PAGER=cat >" + page})
	r.Await(t, "the statement acknowledges C-001")
	r.Type(t, "v")
	r.Type(t, "c")
	r.Await(t, "conflicts, 1 of 1")
	r.Type(t, "q")
	r.ends(statusApproval)
	got, err := os.ReadFile(page)
	if want := "a, 11 bytes, as it was signed\n\none\n\\u202etwo\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReviewNoColor: NO_COLOR is obeyed.
func TestReviewNoColor(t *testing.T) {
	t.Parallel()
	color := regexp.MustCompile(`\x1b\[[\d;]*[34]\d[\d;]*m`)
	for env, colored := range map[string]bool{"NO_COLOR=1": false, "NO_COLOR=": true} {
		r := startReview(t, 80, 24, []string{env}, "--replace")
		r.Await(t, "to decide: C-001")
		r.Type(t, "q")
		r.ends(statusApproval)
		if found := color.FindString(r.Raw()); (found != "") != colored {
			t.Errorf("%s: %q", env, found)
		}
	}
}

// TestReviewNoScreen: what is not a whole screen is said, with the commands that need none.
func TestReviewNoScreen(t *testing.T) {
	t.Parallel()
	seat := terminal.Sit(t, 80, 24)
	for _, c := range []struct {
		stdin, stderr bool
		term, says    string
		more          []string
	}{
		{false, true, "xterm", "stdin is not one", nil}, {true, false, "xterm", "draws on stderr, which is not a terminal", nil},
		{true, true, "dumb", `of the type "dumb"`, nil}, {true, true, "", `of the type ""`, nil}, {true, true, "xterm", "combined with --json", []string{"--json"}},
	} {
		var errs strings.Builder
		cmd := command(t, append([]string{"review", "--restore-root", t.TempDir(), "x"}, c.more...)...)
		cmd.Env = append(cmd.Env, "TERM="+c.term)
		if c.stdin {
			cmd.Stdin = seat.Program
		}
		if cmd.Stderr = &errs; c.stderr {
			cmd.Stderr = seat.Program
		}
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != statusUsage {
			t.Errorf("%q: exit status %d", c.says, got)
		}
		if c.stderr {
			seat.Await(t, c.says)
		} else if !strings.Contains(errs.String(), c.says) || !strings.Contains(errs.String(), "spectrum commit --preview ID") {
			t.Errorf("%s", errs.String())
		}
	}
}

// TestReviewMany: a preview of very many files is shown folded, and gone through.
func TestReviewMany(t *testing.T) {
	t.Parallel()
	const many = 20_000
	files := make(map[string]string, many)
	for n := range many {
		files[fmt.Sprintf("d%02d/f%05d", n%50, n)] = "x"
	}
	r := reviewOf(t, files, 80, 24, nil)
	r.Await(t, "20,000 to create", "> d00/ (400)", "1 of 50")
	r.Type(t, "/f19999\r")
	r.Await(t, ">[x]   A f19999", "none to decide: the statement acknowledges C-001")
	r.Type(t, "x")
	r.Await(t, "Approved: restore items R-001 to R-19999 only.")
	r.Type(t, "qq")
	r.ends(statusApproval)
}

// reviewChangeSet makes the directories base, work and root of these files, seals what changed from
// base to work, and reviews that for root.
func reviewChangeSet(t *testing.T, files map[string]string) *reviewing {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(dir, "work/CONTRACTS/_runs/r1")
	must(t, "seal", "--project-root", filepath.Join(dir, "work"), "--run-dir", run, "--base", filepath.Join(dir, "base"))
	r := &reviewing{t: t, Seat: terminal.Sit(t, 80, 24), root: filepath.Join(dir, "root")}
	r.Cmd = command(t, "review", "--restore-root", r.root, run)
	r.Env = append(r.Env, "TERM=xterm")
	r.Stdin, r.Stdout, r.Stderr = r.Program, &r.out, r.Program
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReviewChangeSet: what a change set removes is shown as that, and removed once it was
// approved; what is not what it started from stays.
func TestReviewChangeSet(t *testing.T) {
	t.Parallel()
	r := reviewChangeSet(t, map[string]string{
		"base/app": "one\n", "base/gone": "leaving\n", "base/drift": "as it was\n", "work/app": "two\n", "work/drift": "theirs\n",
		"root/app": "one\n", "root/gone": "leaving\n", "root/drift": "mine\n",
	})
	r.Await(t, "M app", "U drift", "D gone", "1 diverged, 1 to remove, 1 to replace")
	r.Type(t, "/gone\r")
	r.Await(t, "-leaving", "remove, 8 bytes")
	r.Type(t, "v")
	r.Await(t, "the candidate removes this file")
	r.Type(t, "/drift\rx")
	r.Await(t, "not what the change set started from")
	r.Type(t, "JJ")
	r.Await(t, "-mine")
	r.Type(t, "/app\rx")
	r.Await(t, "choose a file that is not removed")
	r.Type(t, "xcEA")
	r.Await(t, "exactly as proposed.", "remove what is at the targets of R-003", "type Approved")
	r.Type(t, "Approved\r")
	r.ends(0, "restored", "1 removed")
	if _, err := os.Stat(filepath.Join(r.root, "gone")); err == nil {
		t.Error("it was not removed")
	}
	if got, err := os.ReadFile(filepath.Join(r.root, "drift")); err != nil || string(got) != "mine\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReviewReplacesDiverged: R replaces a file that has diverged, in a new preview of the same
// candidate, with the decisions of the one before.
func TestReviewReplacesDiverged(t *testing.T) {
	t.Parallel()
	r := reviewChangeSet(t, map[string]string{
		"base/app": "one\n", "base/b": "as b was\n", "base/c": "as c was\n", "work/app": "two\n", "work/b": "their b\n", "work/c": "their c\n",
		"root/app": "one\n", "root/b": "my b\n", "root/c": "my c\n",
	})
	r.Await(t, "U b", "U c", "2 diverged, 1 to replace")
	r.Type(t, "/c\rR")
	r.Await(t, "M c", "1 diverged, 2 to replace")
	r.Type(t, "/b\rR")
	r.Await(t, "M b", "3 to replace")
	r.Type(t, "cEA")
	r.Await(t, "type Approved")
	r.Type(t, "Approved\r")
	r.ends(0, "restored", "3 replaced")
	for name, want := range map[string]string{"app": "two\n", "b": "their b\n", "c": "their c\n"} {
		if got, err := os.ReadFile(filepath.Join(r.root, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestReviewLeftChoice: what goes on after a review that was left is what was composed in it, and
// no more: neither what was left out nor what was not decided.
func TestReviewLeftChoice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choose, shows, leave string
		status               int
		want                 []string
	}{
		"open, q":         {"/guide\rx", "R-001 and R-003 only.", "qq", statusApproval, []string{"decide C-001 as well", "incomplete: Approved: restore items R-001 and R-003 only."}},
		"open, Ctrl-C":    {"/guide\rx", "R-001 and R-003 only.", "\x03", statusInterrupted, []string{"decide C-001 as well", "incomplete: Approved: restore items R-001 and R-003 only."}},
		"at the question": {"/guide\rxcEA", "The whole statement", "qq", statusApproval, []string{"--approve 'Approved: restore items R-001 and R-003 only. Acknowledge C-001.'"}},
		"decided, Ctrl-C": {"/guide\rxcE", "ready, 2 files", "\x03", statusInterrupted, []string{"--approve 'Approved: restore items R-001 and R-003 only. Acknowledge C-001.'"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReview(t, 80, 24, nil, "--replace")
			r.Await(t, "to decide: C-001")
			r.Type(t, c.choose)
			r.Await(t, c.shows)
			r.Type(t, c.leave)
			r.ends(c.status, c.want...)
			_, after, _ := strings.Cut(r.Raw(), "\x1b[?1049l")
			if _, next, _ := strings.Cut(after, "hint: "); !strings.HasPrefix(next, "spectrum review --restore-root "+r.root+" --replace ") || strings.Contains(after, "STATEMENT") {
				t.Errorf("the key that returns to the review is not first, or a placeholder is offered:\n%s", after)
			}
			if strings.Contains(after, "R-001 to R-003") || c.want[0] == "decide C-001 as well" && strings.Contains(after, "Acknowledge") {
				t.Errorf("more than was chosen is offered:\n%s", after)
			}
		})
	}
	r := startReview(t, 80, 24, nil, "--replace")
	r.Await(t, "to decide: C-001")
	r.Type(t, "/main\rxgx")
	r.Await(t, "no item is chosen")
	r.Type(t, "qq")
	r.ends(statusApproval, "no item is chosen, so there is nothing to approve; start the review again")
}

// TestReviewPagerLeavesNothing: what the pager has shown is gone from the terminal with it.
func TestReviewPagerLeavesNothing(t *testing.T) {
	t.Parallel()
	set := filepath.Join(t.TempDir(), "set")
	for _, env := range [][]string{{"PAGER=sh -c 'echo \"$LESS\" >" + set + "; cat >/dev/null'"}, {"PAGER=sh -c 'echo \"$LESS\" >" + set + "; cat >/dev/null'", "LESS=FRX"}} {
		r := reviewOf(t, map[string]string{"a": "SECRET=hunter2\n"}, 80, 24, env)
		r.Await(t, "the statement acknowledges C-001")
		r.Type(t, "v")
		r.Type(t, "c")
		r.Await(t, "conflicts, 1 of 1")
		r.Type(t, "q")
		r.ends(statusApproval)
		if got, err := os.ReadFile(set); err != nil || !strings.Contains(string(got), "-+X") {
			t.Errorf("LESS=%q, %v", got, err)
		}
	}
}

// TestReviewPagerFails: a pager that reads nothing, or that is not there, is named as it was set,
// and the text is not left on the terminal.
func TestReviewPagerFails(t *testing.T) {
	t.Parallel()
	for pager, says := range map[string]string{
		"false": `the pager "false" has read nothing: set SPECTRUM_PAGER`, "/nonexistent": `the pager "/nonexistent" cannot be started: set SPECTRUM_PAGER`,
	} {
		r := reviewOf(t, map[string]string{"a": strings.Repeat("SECRET=hunter2\n", 8)}, 100, 24, []string{"SPECTRUM_PAGER=" + pager})
		r.Await(t, "the statement acknowledges C-001")
		r.Type(t, "cv") // no file is selected
		r.Await(t, "this is a conflict; press c")
		before := len(r.Raw())
		r.Type(t, "cv")
		r.Await(t, says)
		if strings.Contains(r.Raw()[before:], "as it was signed") {
			t.Errorf("%s: the text was written on the terminal", pager)
		}
		r.Type(t, "q")
		r.ends(statusApproval)
		if strings.Contains(r.Raw(), "LESS") {
			t.Errorf("%s: what is set for the pager is shown", pager)
		}
	}
}

// TestReviewPasted: keys that arrive all at once approve nothing, since the operator has not read
// what they approve; not even with much between them that is not a key.
func TestReviewPasted(t *testing.T) {
	t.Parallel()
	for name, filler := range map[string]string{
		"nothing": "", "focus": strings.Repeat("\x1b[I", 1000), "a terminal's answers": strings.Repeat("\x1b[?1;2c", 1000),
		"no UTF-8": strings.Repeat("\xff", 4000), "mouse": strings.Repeat("\x1b[<35;1;1M", 30000), "a paste that ends": "\x1b[201~" + strings.Repeat("\x1b[O", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startReview(t, 80, 24, nil, "--replace")
			r.Await(t, "to decide: C-001")
			r.Type(t, "cEA"+filler+"Approved\r")
			r.Await(t, "type Approved")
			r.Type(t, "\x03")
			r.ends(statusInterrupted, "nothing was written")
		})
	}
}

// TestReviewOfAnotherTarget: where another file is at a target than the preview has found, its lines
// are not shown: they are not those that a commit changes.
func TestReviewOfAnotherTarget(t *testing.T) {
	t.Parallel()
	r := startReview(t, 80, 24, nil, "--replace")
	r.Await(t, "to decide: C-001")
	src := filepath.Join(r.root, "src")
	if err := errors.Join(os.Rename(src, src+".kept"), os.Mkdir(src, 0o755), os.WriteFile(filepath.Join(src, "main.go"), []byte("package other\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	r.Type(t, "/main\r")
	r.Await(t, "what is there has changed")
	if strings.Contains(r.Raw(), "package other") {
		t.Error("the lines of another file are shown")
	}
	if err := errors.Join(os.RemoveAll(src), os.Rename(src+".kept", src)); err != nil {
		t.Fatal(err)
	}
	r.Type(t, "q")
	r.ends(statusApproval)
}

// TestReviewOnlySecret: where a possible secret is all that is proposed, it can be chosen by name.
func TestReviewOnlySecret(t *testing.T) {
	t.Parallel()
	r := reviewOf(t, map[string]string{"a": "a", ".env": "S=1"}, 80, 24, nil, "--scope", "restricted_context")
	r.Await(t, "IN PART", "[ ] A .env")
	r.Type(t, "/.env\r ")
	r.Await(t, "[x] A .env")
	r.Type(t, "cEA")
	r.Await(t, "Approved: restore items R-001 only.", "type Approved")
	r.Type(t, "Approved\r")
	r.ends(0, "restored 1 file")
}
