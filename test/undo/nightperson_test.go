package undo

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/test/harness"
)

// An answer is what a command has printed.
type answer struct {
	line           string
	status         int
	stdout, stderr string
}

// types runs a line in a shell, as the user.
func (n *night) types(line string) answer {
	n.t.Helper()
	a := n.runs(line, n.user)
	n.tell("$ %s\n%s%s(%d)", line, a.stdout, a.stderr, a.status)
	switch {
	case !slices.Contains([]int{0, 1, 3, 4, 5, 74}, a.status):
		n.fail("exit status %d", a.status)
	case strings.Contains(a.stderr, "panic"):
		n.fail("panic")
	}
	n.read += a.stdout + a.stderr
	n.checkWords(a)
	return a
}

// runs runs a line in a shell.
func (n *night) runs(line string, user int) answer {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "sh", "-c", line)
	cmd.Dir = n.dir
	cmd.Env = []string{"PATH=" + shared + ":/usr/sbin:/usr/bin:/sbin:/bin", "SPECTRUM_STATE_DIR=" + n.state, "HOME=" + n.dir}
	if user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	}
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return answer{line, cmd.ProcessState.ExitCode(), out.String(), diag.String()}
}

// must runs a line that must succeed, and returns what it prints.
func (n *night) must(line string) string {
	n.t.Helper()
	a := n.runs(line, n.user)
	if a.status != 0 {
		n.t.Fatalf("%s: exit %d: %s%s", line, a.status, a.stdout, a.stderr)
	}
	return a.stdout
}

func (n *night) fail(format string, args ...any) {
	n.t.Helper()
	n.t.Fatalf("%s\nthe story: %+v\n%s", fmt.Sprintf(format, args...), n.story, strings.ReplaceAll(strings.Join(n.told, "\n"), n.dir+"/", "./"))
}

// checkWords checks what an answer says against the root.
func (n *night) checkWords(a answer) {
	n.t.Helper()
	text := a.stdout + a.stderr
	isUndone := strings.Contains(text, "it is undone now") || a.status == 0 && strings.HasPrefix(a.line, "spectrum rollback ") && !strings.Contains(a.line, "--emergency")
	if isUndone && n.differs() != "" {
		n.fail("%q has undone the commit by its words, and the root is not as before:\n%s", a.line, n.differs())
	}
}

// staysInAnswer finds a name that a command has left as it was.
var staysInAnswer = regexp.MustCompile(`(?m)^spectrum: ([^ ]*) stays: in the snapshot its content is damaged or lost`)

// differs names what is not as before the last commit, or as the snapshot of the whole root: "" is none. What
// the user has edited, and the commit has not changed, stays as it is, and so does what is called lost.
func (n *night) differs() string {
	n.t.Helper()
	is := n.picture()
	if n.restored && n.whole != nil && harness.Diff(n.whole, is) == "" {
		return ""
	}
	want := harness.Tree{}
	for name, thing := range n.edited {
		isIn := slices.ContainsFunc(slices.Collect(maps.Keys(n.names)), func(dir string) bool { return harness.Inside(name, dir) })
		if _, stays := is[name]; !n.names[name] && !(isIn && n.restored && !stays) { // the restore of a snapshot removes a new directory with all that is in it
			want[name] = thing
		}
	}
	for name := range n.names {
		thing, was := n.before[name]
		if n.committed[name] == thing { // the commit was killed before it changed that
			thing, was = n.edited[name]
		}
		if was {
			want[name] = thing
		}
	}
	for _, m := range staysInAnswer.FindAllStringSubmatch(n.read, -1) {
		delete(want, m[1])
		if thing, was := n.start[m[1]]; was {
			want[m[1]] = thing
		}
	}
	for name := range want { // what the user has made there keeps a new directory
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if _, wanted := want[dir]; !wanted {
				want[dir] = is[dir]
			}
		}
	}
	return harness.Diff(want, is)
}

// commandInAnswer finds the commands that are in quotes, and those that are not.
var (
	commandInAnswer = regexp.MustCompile(`"(spectrum [^"]*)"`)
	bareInAnswer    = regexp.MustCompile(`(?:^|[:;,] |then |run |otherwise |undo    )(as root: )?((?:spectrum|mv|chmod|chown|mkdir|rm) (?:'[^']*'|[^';,:"])+)`)
	bareName        = regexp.MustCompile(`^spectrum (rollback|recover|snapshot restore|snapshot verify)( --[a-z-]+)*$`) // the text is about the command
	placeholder     = regexp.MustCompile(` [A-Z][A-Z_]+( |$)`)
)

// A printed command is one of an answer, with the commands that its line names after it.
type printed struct {
	command string
	then    []string
}

// commandsOf returns the commands that an answer prints, in their order.
func commandsOf(a answer) (all []printed) {
	for line := range strings.Lines(a.stderr + a.stdout) {
		hint, isHint := strings.CutPrefix(strings.TrimSpace(line), "hint: ")
		if !isHint && !strings.HasPrefix(a.line, "spectrum status ") {
			continue
		}
		at := map[int]string{}
		for _, m := range commandInAnswer.FindAllStringSubmatchIndex(hint, -1) {
			at[m[2]] = hint[m[2]:m[3]]
		}
		for _, m := range bareInAnswer.FindAllStringSubmatchIndex(hint, -1) {
			at[m[4]] = strings.TrimSpace(hint[m[4]:m[5]])
			if m[2] >= 0 {
				at[m[4]] = asRoot + at[m[4]]
			}
		}
		var of []string
		for _, i := range slices.Sorted(maps.Keys(at)) {
			if !placeholder.MatchString(at[i]) && !bareName.MatchString(at[i]) && rank(at[i]) < others {
				of = append(of, at[i])
			}
		}
		for i := range of {
			all = append(all, printed{of[i], of[i+1:]})
		}
	}
	return all
}

const asRoot = "as root: "

func isShell(command string) bool { return !strings.HasPrefix(command, "spectrum ") }

// isUndo are the commands that go back; a person who is back does not type them.
func isUndo(command string) bool {
	return strings.HasPrefix(command, "spectrum rollback ") || strings.HasPrefix(command, "spectrum snapshot restore ")
}

// rank orders the commands that a person may type: those that continue; those that accept a loss; those that only look. The
// others are not for him.
func rank(command string) int {
	switch {
	case strings.HasPrefix(command, "spectrum recover --acknowledge "):
		return 1
	case isUndo(command), strings.HasPrefix(command, "spectrum recover "), strings.HasPrefix(command, "spectrum snapshot verify --repair "), isShell(command):
		return 0
	case slices.ContainsFunc([]string{"status", "log", "audit", "doctor", "savepoint", "snapshot list", "snapshot verify", "snapshot show"}, func(name string) bool {
		return strings.HasPrefix(command, "spectrum "+name)
	}):
		return looks
	}
	return others
}

const looks, others = 2, 3

// next is the command that a person types after an answer: the first that is printed and was not typed with the
// same state, with those that its line names after it; none at the end. One of the shell is typed once.
func (n *night) next(a answer, isBack bool) printed {
	n.t.Helper()
	now := n.now()
	all := commandsOf(a)
	for wanted := range others {
		for _, p := range all {
			key := p.command
			if !isShell(key) {
				key += now
			}
			if rank(p.command) == wanted && !n.typed[key] && !(isBack && isUndo(p.command)) {
				n.typed[key] = true
				return p
			}
		}
	}
	return printed{}
}

// maxSteps is how many commands of the program that change something a person types at most.
const maxSteps = 6

// follow types what is printed until the root is back and nothing is reported, or until what is lost was named.
func (n *night) follow() {
	n.t.Helper()
	n.start = n.picture()
	steps, total := 0, 0
	a := n.types("spectrum status " + n.root)
	for {
		isBack := n.differs() == ""
		if isBack && a.status == 0 && n.isClean(&a) {
			return
		}
		p := n.next(a, isBack)
		if p.command == "" && !strings.HasPrefix(a.line, "spectrum status ") {
			a = n.types("spectrum status " + n.root)
			p = n.next(a, isBack)
		}
		if p.command == "" {
			break
		}
		if isShell(p.command) { // and then what its line says, or the same again
			again := a.line
			n.shell(p.command)
			for _, then := range p.then {
				if !isShell(then) {
					again = then
					break
				}
				n.shell(then)
			}
			p.command = again
		}
		if rank(p.command) < looks {
			steps++
		}
		if total++; steps > maxSteps || total > 2*maxSteps {
			n.fail("%d commands, and not back", steps)
		}
		if isUndo(p.command) {
			n.restored = n.restored || strings.HasPrefix(p.command, "spectrum snapshot ") || strings.Contains(p.command, "--emergency")
		}
		a = n.types(p.command)
		if a.status == 0 {
			a = n.types("spectrum status " + n.root)
		}
	}
	n.judge()
}

// shell types a command of the shell.
func (n *night) shell(command string) {
	n.t.Helper()
	user := n.user
	if as, is := strings.CutPrefix(command, asRoot); is {
		command, user = as, 0
	}
	n.typed[command] = true
	a := n.runs(command, user)
	n.tell("$ %s\n%s%s(%d)", command, a.stdout, a.stderr, a.status)
	if a.status != 0 {
		n.fail("a printed command of the shell fails")
	}
}

// isClean reports whether recover and the doctor find nothing. If one does, its answer is the next.
func (n *night) isClean(a *answer) bool {
	n.t.Helper()
	for _, line := range []string{"spectrum recover " + n.root, "spectrum doctor -q " + n.root} {
		if r := n.types(line); r.status != 0 {
			*a = r
			return false
		}
	}
	return true
}

// judge judges a night at whose end the root is not back.
func (n *night) judge() {
	n.t.Helper()
	if !regexp.MustCompile(`lost|cannot be undone|no longer possible`).MatchString(n.read) {
		n.fail("nothing more is printed, the root is not back, and nothing is called lost:\n%s", n.differs())
	}
	if diff := harness.Diff(n.start, n.picture()); diff != "" {
		n.fail("it is called lost, and the root has changed:\n%s", diff)
	}
	if !n.isDamaged["snapshots"] && !n.isDamaged["audit.log"] && !n.isDamaged["journal.key"] {
		n.fail("it is called lost, and no snapshot is damaged:\n%s", n.differs())
	}
	if a := (answer{}); !n.isClean(&a) {
		n.fail("the loss was named, and is reported further")
	}
	n.told = append(n.told, "lost")
}
