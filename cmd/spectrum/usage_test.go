package main

import (
	"bytes"
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// typed is what came of a command line.
type typed struct {
	status         int
	stdout, stderr string
}

// typeIn runs the program in this process; what it is given must be wrong usage, and
// is not carried out.
func typeIn(t *testing.T, program string, args ...string) typed {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", stateHome(t))
	var stdout, stderr bytes.Buffer
	status := execute(t.Context(), &app{stdout: &stdout, stderr: &stderr}, program, args)
	return typed{status, stdout.String(), stderr.String()}
}

// checkUsage checks a usage error: its status, its line, the next command, and one JSON value
// where that is requested. It returns the line.
func checkUsage(t *testing.T, program string, args ...string) string {
	t.Helper()
	plain := typeIn(t, program, args...)
	if plain.status != statusUsage || plain.stdout != "" {
		t.Errorf("%q: exit %d, stdout %q, stderr %q", args, plain.status, plain.stdout, plain.stderr)
		return ""
	}
	hints := checkForm(t, plain.stderr)
	if !slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(h, " --help\"") }) {
		t.Errorf("%q: no hint names the help: %q", args, hints)
	}
	for _, json := range [][]string{append([]string{"--json"}, args...), append(slices.Clone(args), "--json")} {
		got := typeIn(t, program, json...)
		if !isCanonical([]byte(got.stdout)) || !strings.HasPrefix(got.stdout, `{"code":"USAGE",`) || got.status != statusUsage {
			t.Errorf("%q: exit %d, JSON %q", json, got.status, got.stdout)
		}
	}
	line, _, _ := strings.Cut(plain.stderr, "\n")
	return strings.TrimPrefix(line, "spectrum: ")
}

// programs are the command trees under the names that they are started by.
func programs() map[string]*cobra.Command {
	app := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	return map[string]*cobra.Command{"spectrum": newRoot(app), helperNames[0]: newMountHelper(app, helperNames[0])}
}

// wordsOfPath is how a command is called, but for the program.
func wordsOfPath(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.InitDefaultHelpFlag()
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	}
	return names
}

// TestWrongUsageOfEveryCommand tries what is wrong for any command: a flag that is
// not there, one without its value or with one that it cannot take, too many
// arguments, too few.
func TestWrongUsageOfEveryCommand(t *testing.T) {
	seen := 0
	for program, root := range programs() {
		eachCommand(root, func(cmd *cobra.Command) {
			seen++
			name := wordsOfPath(cmd)
			t.Run(strings.Join(append([]string{program}, name...), " "), func(t *testing.T) {
				with := func(words ...string) []string { return append(slices.Clone(name), words...) }
				checkUsage(t, program, with("--no-such-flag")...)
				checkUsage(t, program, with("-Z")...)
				checkFlags(t, program, cmd, with)
				checkArguments(t, program, cmd, with)
			})
		})
	}
	if seen < 30 {
		t.Errorf("only %d commands", seen)
	}
}

// isLawful reports whether the law has a verdict of its own on an empty value of a flag.
func isLawful(cmd *cobra.Command, flag string) bool {
	return flag == "--restore-root" && (cmd.Name() == "preview" || cmd.Name() == "commit")
}

// checkFlags gives every flag that takes any but a text what it cannot take, and no
// value where it needs one.
func checkFlags(t *testing.T, program string, cmd *cobra.Command, with func(...string) []string) {
	t.Helper()
	for _, name := range flagNames(cmd) {
		f := cmd.Flag(strings.TrimPrefix(name, "--"))
		if kind := f.Value.Type(); kind != "string" && !strings.HasPrefix(kind, "string") {
			checkUsage(t, program, with(name+"=nonsense\n")...)
		}
		if kind := f.Value.Type(); program == "spectrum" && strings.HasPrefix(kind, "string") && !isLawful(cmd, name) { // a variable of a shell may be unset
			if got := checkUsage(t, program, with(name+"=")...); got != name+" is empty" {
				t.Errorf("%s= leads to %q", name, got)
			}
		}
		if f.NoOptDefVal != "" {
			continue
		}
		if got := typeIn(t, program, with(name)...); got.status != statusUsage || !strings.Contains(got.stderr, name) {
			t.Errorf("%s without a value: %+v", name, got)
		}
	}
}

// checkArguments gives a command fewer and more arguments than its line of usage
// shows.
func checkArguments(t *testing.T, program string, cmd *cobra.Command, with func(...string) []string) {
	t.Helper()
	least, most := argumentsOf(cmd)
	if cmd.HasSubCommands() {
		checkUsage(t, program, with("no-such-command")...)
		return
	}
	if most != unlimited {
		checkUsage(t, program, with(slices.Repeat([]string{"x"}, most+1)...)...)
	}
	for n := range least {
		checkUsage(t, program, with(slices.Repeat([]string{"x"}, n)...)...)
	}
}

var (
	optional = regexp.MustCompile(`\[[^\[\]]*\]`)
	argument = regexp.MustCompile(`^[A-Z_@]+(\|[a-z]+)?(\.\.\.)?$`)
)

// argumentsOf reads from its line of usage how many arguments a command takes. Of
// several forms the first with arguments counts.
func argumentsOf(cmd *cobra.Command) (least, most int) {
	form, _, _ := strings.Cut(cmd.Use, " | ")
	count := func(form string) (n int) {
		flag := false
		for _, word := range strings.Fields(form)[1:] {
			if !flag && argument.MatchString(word) {
				n++
			}
			f := cmd.Flag(strings.TrimLeft(word, "-"))
			flag = strings.HasPrefix(word, "-") && f != nil && f.NoOptDefVal == ""
		}
		return n
	}
	bare := form
	for optional.MatchString(bare) {
		bare = optional.ReplaceAllString(bare, "")
	}
	least, most = count(bare), count(strings.NewReplacer("[", " ", "]", " ").Replace(form))
	if strings.Contains(cmd.Use, "...") {
		most = unlimited
	}
	return least, most
}

// wrongUses are command lines whose parts do not fit together. A new usage error in the source
// needs a line here.
var wrongUses = [][]string{
	{"snapshot", "watch", "--foreign-root", "/nowhere", "/r"},
	{"verify"}, {"verify", "--law", "gravity", "x"}, {"verify", "--validator-build-id", "b", "x"}, {"verify", "--law", "resume", "--chain", "x"}, {"verify", "--law", "memory", "--require-trusted", "x"},
	{"verify", "nowhere/run"}, {"verify", "a/CONTRACTS/_runs/r", "b/CONTRACTS/_runs/s"},
	{"cat"}, {"cat", "r"}, {"diff"}, {"diff", "r"}, {"log", "--last", "-1"}, {"trust", "revoke", "x"}, {"savepoint", "verify", "--restore-root", "/r", "/r", "latest"},
	{"diff", "--color", "x", "r", "d"}, {"diff", "-u", "--stat", "r", "d"},
	{"seal", "--base", "a", "--base-run", "b"},
	{"seal", "--upper", "u"}, {"seal", "--upper", "u", "--lower", "l", "x"}, {"seal", "--upper", "u", "--base", "b"}, {"seal", "--upper", "u", "--lower", "l", "--task", "a/b"},
	{"run"},
	{"seal", "--task", "a/b", "x"}, {"seal", "--task", "t", "--run-dir", "r", "x"}, {"seal", "--run-dir", "nowhere", "x"},
	{"seal", "--run-dir", "r", "--constraint", "x", "y"}, {"seal", "--run-dir", "r", "--agent", "a", "--constraint", "agent_id=b", "y"},
	{"seal", "--run-dir", "r", "--scope", "x", "y"}, {"seal", "--run-dir", "r", "--scope", "a=nothing", "y"}, {"seal", "--run-dir", "r", "--scope", "/a=decisions", "y"},
	{"seal", "--run-dir", "r", "--exclude", "[", "y"},
	{"mount", "mnt"}, {"mount", "elsewhere", "p/CONTRACTS/_runs/r"}, {"mount", "--all", "--chain", "runs", "mnt"}, {"mount", "--all", "--restore-root", "/r", "runs", "mnt"}, {"mount", "--all", "a", "b", "mnt"},
	{"mount", "--all", "elsewhere", "mnt"}, {"mount", "--lazy", "--restore-root", "/r", "r", "mnt"}, {"mount", "--lazy", "--all", "runs", "mnt"}, {"mount", "-o", "nonsense", "r", "mnt"}, {"mount", "-o", "remount", "r", "mnt"},
	{"preview"}, {"preview", "--from-mount", "m", "x"}, {"preview", "--savepoint", "s", "--restore-root", "/r", "x"}, {"preview", "--scope", "nothing", "--restore-root", "/r", "x"},
	{"preview", "--decide", "C-001", "--restore-root", "/r", "x"}, {"preview", "--decide", "C-001=maybe", "--restore-root", "/r", "x"}, {"preview", "--decide", "C-001=resolved", "--decide", "C-001=rejected", "--restore-root", "/r", "x"}, {"preview", "--color", "loud", "--restore-root", "/r", "x"},
	{"commit"}, {"commit", "--receipt", "", "--preview", "i"}, {"preview", "--html", "", "--restore-root", "/r", "x"}, {"commit", "--preview", "i", "x"}, {"commit", "--preview", "i", "--agent", "a"}, {"commit", "--approve", "yes", "x"}, {"commit", "--from-mount", "m", "x"},
	{"rollback", "--emergency", "--with-later", "/r"},
	{"preview", "--from-mount", "m", "x", "y"}, {"preview", "--savepoint", "s", "x", "y"}, {"log", ""}, {"recover", ""}, {"rollback", "--emergency", ""}, {"rollback", "1234", "5678"}, {"savepoint", "verify", "latest", ""}, {"savepoint", "verify", "1234", "5678"},
	{"recover", "--statement", "x", "/r"},
	{"snapshot", "prune"}, {"snapshot", "diff"},
	{"rollback", "--reason", " ", "x"}, {"rollback", "--reason", "TEXT", "x"}, {"quarantine", "release", "--reason", "TEXT", "latest"}, {"snapshot", "restore", "--to", "d", "--dry-run", "x"}, {"snapshot", "take", "--reason", "\xff", "/r"}, {"snapshot", "watch", "--every", "0s", "/r"},
	{"quarantine", "release", "12345678"},
	{"push", "r"}, {"push", "file:///x", "file:///y"}, {"push", "--timeout", "0s", "r", "file:///x"}, {"push", "--key", "k", "r", "file:///x"}, {"cat", "--timeout", "-1s", "file:///x@" + anyRoot, "p"}, {"push", "r", "file:///x@" + anyRoot}, {"push", "r", "ftp://x"}, {"push", "r", "https://localhost/x"},
	{"pull", "file:///x", "d"}, {"store", "gc", "--grace", "0s", "file:///x"}, {"ls", "http://example.org/x"}, {"ls", "file:///x@12"}, {"pull", "file:///x@123", "d"}, {"verify", "file:///x@12G4"}, {"pull", "https://localhost/x@1234", "d"}, {"ls", "https://localhost/x@latest"},
	{"verify", "file:///x@" + anyRoot, "file:///y@" + anyRoot}, {"verify", "--project-root", "/p", "file:///x@" + anyRoot},
	{"help", "comit"},
}

// anyRoot is a bundle root.
const anyRoot = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// wrongMounts are the same of what mount(8) starts.
var wrongMounts = [][]string{{"none", "mnt"}, {"-t", "ext4", "r", "mnt"}}

// TestWrongUsage: flags that do not go together, and those that are missing. Each
// error of usage in the source is met.
func TestWrongUsage(t *testing.T) {
	var lines []string
	for _, args := range wrongUses {
		lines = append(lines, checkUsage(t, "spectrum", args...))
	}
	for _, args := range wrongMounts {
		lines = append(lines, checkUsage(t, helperNames[0], args...))
	}
	lines = append(lines, checkUsage(t, "spectrum", "version", "x"))
	for _, args := range [][]string{
		{"snapshot", "watch", "/r"}, {"cat", "r", "p"}, {"diff", "-u", "r", "x"}, {"preview", "--diff", "--restore-root", "/r", "x"}, // which is right without --json
		{"run", "--task", "a/b", "true"}, {"run", "--exclude", "[", "true"}, // where what follows the command is its own
	} {
		said := typeIn(t, "spectrum", append([]string{"--json"}, args...)...)
		lines = append(lines, strings.TrimPrefix(strings.Split(said.stderr, "\n")[0], "spectrum: "))
	}
	called(t, "usage", func(at string, call *ast.CallExpr) {
		format := textOf(call.Args[1])
		if strings.Trim(format, "X") == "" {
			return // the words come from elsewhere
		}
		pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(format), "X", ".*") + "$"
		if !slices.ContainsFunc(lines, regexp.MustCompile(pattern).MatchString) && !laterUsage[format] {
			t.Errorf("%s: no line of the table leads to %q", at, format)
		}
	})
}

// laterUsage is wrong usage that shows only when something was looked up.
var laterUsage = map[string]bool{
	"there are savepoints of several restore roots: name one with --restore-root DIR":                          true, // savepoint.txtar
	"output X is neither in the project nor in X; a revision is named with an equals sign: --base-git=X":       true, // seal_git.txtar
	"stderr is redirected, so the question cannot be seen: run it without that, or with </dev/null to confirm": true, // prune_edits.txtar
}

// TestSuggestions: a slip of the finger in a command, at any depth, or in a flag.
func TestSuggestions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"comit"}, `did you mean "spectrum commit"`},
		{[]string{"comit", "--preview", "x"}, `did you mean "spectrum commit"`},
		{[]string{"snapshot", "tak"}, `did you mean "spectrum snapshot take"`},
		{[]string{"snapshot", "tak", "/r", "--reason", "x"}, `did you mean "spectrum snapshot take"`},
		{[]string{"trust", "revok"}, `did you mean "spectrum trust revoke"`},
		{[]string{"help", "audit", "shwo"}, `did you mean "spectrum audit show"`},
		{[]string{"completion", "bsah"}, `did you mean "spectrum completion bash"`},
		{[]string{"verify", "--chian", "x"}, `did you mean --chain`},
		{[]string{"preview", "--restoreroot=/r", "x"}, `did you mean --restore-root`},
		{[]string{"verify", "--jsno", "x"}, `did you mean --json`},
	} {
		checkUsage(t, "spectrum", c.args...)
		if got := typeIn(t, "spectrum", c.args...); !strings.Contains(got.stderr, "\nhint: "+c.want) {
			t.Errorf("%q: %s", c.args, got.stderr)
		}
	}
	if got := typeIn(t, "spectrum", "xyzzy"); strings.Contains(got.stderr, "did you mean") {
		t.Errorf("nothing is like it: %s", got.stderr)
	}
}

// TestSuggestionsForEveryCommand drops a letter of every command's name.
func TestSuggestionsForEveryCommand(t *testing.T) {
	eachCommand(programs()["spectrum"], func(cmd *cobra.Command) {
		name := wordsOfPath(cmd)
		if len(name) == 0 || cmd.Hidden {
			return
		}
		last := name[len(name)-1]
		slip := append(slices.Clone(name[:len(name)-1]), last[:1]+last[2:])
		if got := typeIn(t, "spectrum", slip...); !strings.Contains(got.stderr, `"`+cmd.CommandPath()+`"`) {
			t.Errorf("%q: %+v", slip, got)
		}
	})
}
