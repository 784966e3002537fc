package power

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// traced are all calls that change a tree or make a change durable.
const traced = "openat,openat2,mkdirat,renameat,renameat2,linkat,symlinkat,unlinkat,mknodat," +
	"write,pwrite64,writev,pwritev,copy_file_range,sendfile,splice,ftruncate,fallocate,ioctl," +
	"fchmod,fchmodat,fchown,fchownat,utimensat,fsync,fdatasync,syncfs"

// A sysCall is one line of a trace, or the two lines of a call that others
// came in between.
type sysCall struct {
	name       string
	args       []string
	result     string
	start, end int // lines
}

func (c *sysCall) ok() bool { return !strings.HasPrefix(c.result, "-1") }

// strace runs a command and returns its calls in the order of their ends.
func strace(t *testing.T, argv ...string) []sysCall {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	all := append([]string{"-f", "-y", "-qq", "-o", out, "-e", "signal=none", "-e", "trace=" + traced}, argv...)
	if text, err := exec.CommandContext(ctx, "strace", all...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, text)
	}
	text, err := os.ReadFile(out)
	harness.Must(t, err)
	var calls []sysCall
	begun := map[string]sysCall{} // by thread
	texts := map[string]string{}
	for i, line := range strings.Split(string(bytes.TrimSpace(text)), "\n") {
		thread, rest, _ := strings.Cut(line, " ")
		rest = strings.TrimSpace(rest)
		c := sysCall{start: i, end: i}
		if head, unfinished := strings.CutSuffix(rest, " <unfinished ...>"); unfinished {
			begun[thread], texts[thread] = c, head
			continue
		}
		if cutForm.MatchString(rest) {
			continue
		}
		if resumed := resumedForm.FindString(rest); resumed != "" {
			c.start = begun[thread].start
			rest = texts[thread] + rest[len(resumed):]
		}
		if !c.parse(rest) {
			t.Fatalf("line %d of the trace: %q", i+1, line)
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		t.Fatalf("%q: nothing was traced", argv)
	}
	return calls
}

var (
	// cutForm is a call of a thread that the end of its process took away while strace
	// asked for the call: it did nothing, as one that stays unfinished.
	cutForm     = regexp.MustCompile(`^\?+\(\)?\s*(<detached \.\.\.>|= \?.*)$`)
	callForm    = regexp.MustCompile(`^(\w+)\((.*)\)\s+= (.*)$`)
	resumedForm = regexp.MustCompile(`^<\.\.\. \w+ resumed>`)
)

func (c *sysCall) parse(text string) bool {
	m := callForm.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	c.name, c.args, c.result = m[1], splitArgs(m[2]), m[3]
	return true
}

// splitArgs cuts at the commas that are in no string, path, list or struct.
func splitArgs(text string) (args []string) {
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case strings.IndexByte("<[{", c) >= 0:
			depth++
		case strings.IndexByte(">]}", c) >= 0:
			depth--
		case c == ',' && depth == 0:
			args = append(args, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(args, strings.TrimSpace(text[from:]))
}

// An effect is what a call does to a path.
type effect struct {
	kind       kind
	path, to   string
	nameless   bool // a file that was made without a name
	ok         bool
	start, end int
}

type kind int

const (
	making     kind = iota // a new name: path
	writing                // content or metadata of path
	moving                 // path to to
	linking                // path gets the name to as well
	removing               // path
	syncing                // path: its content, and the names in it
	syncingAll             // everything
)

var kindNames = [...]string{"make", "write", "move", "link", "remove", "fsync", "syncfs"}

func (k kind) String() string { return kindNames[k] }

var fdForm = regexp.MustCompile(`^(\w+)<(.*)>(?:\(deleted\))?$`)

// effects translates calls. Calls that change nothing are left out.
func effects(t *testing.T, calls []sysCall) []effect {
	t.Helper()
	var all []effect
	open := map[string]string{} // descriptors and their paths
	for _, c := range calls {
		for _, arg := range append(c.args, c.result) {
			if m := fdForm.FindStringSubmatch(arg); m != nil {
				open[m[1]] = m[2]
			}
		}
		e, counts := c.effect(open)
		if !counts {
			continue
		}
		if e.path == "" || (e.kind == moving || e.kind == linking) && e.to == "" {
			t.Fatalf("no path in %s(%q) = %s", c.name, c.args, c.result)
		}
		e.ok, e.start, e.end = c.ok(), c.start, c.end
		all = append(all, e)
	}
	return all
}

func (c *sysCall) effect(open map[string]string) (effect, bool) {
	fd := func(i int) string { return open[fdForm.ReplaceAllString(c.args[i], "$1")] }
	at := func(i int) string { return c.at(i, open) }
	switch c.name {
	case "openat", "openat2":
		created := c.ok() && (strings.Contains(c.args[2], "O_CREAT") || strings.Contains(c.args[2], "O_TMPFILE"))
		return effect{kind: making, path: fdForm.ReplaceAllString(c.result, "$2"), nameless: strings.Contains(c.args[2], "O_TMPFILE")}, created
	case "mkdirat", "mknodat":
		return effect{kind: making, path: at(0)}, c.ok()
	case "symlinkat":
		return effect{kind: making, path: at(1)}, c.ok()
	case "renameat", "renameat2":
		return effect{kind: moving, path: at(0), to: at(2)}, true
	case "linkat":
		return effect{kind: linking, path: at(0), to: at(2)}, true
	case "unlinkat":
		return effect{kind: removing, path: at(0)}, true
	case "write", "pwrite64", "writev", "pwritev", "ftruncate", "fallocate", "fchmod", "fchown":
		return effect{kind: writing, path: fd(0)}, c.ok() && strings.HasPrefix(fd(0), "/")
	case "sendfile":
		return effect{kind: writing, path: fd(0)}, c.ok()
	case "copy_file_range", "splice":
		return effect{kind: writing, path: fd(2)}, c.ok()
	case "ioctl":
		return effect{kind: writing, path: fd(0)}, c.ok() && strings.Contains(c.args[1], "FICLONE")
	case "fchmodat", "fchownat", "utimensat":
		return effect{kind: writing, path: at(0)}, c.ok()
	case "fsync", "fdatasync":
		return effect{kind: syncing, path: fd(0)}, c.ok()
	case "syncfs":
		return effect{kind: syncingAll, path: fd(0)}, c.ok()
	}
	return effect{}, false
}

const ownFd = "/proc/self/fd/"

// at is the path that the arguments i (a directory) and i+1 (a name) say.
func (c *sysCall) at(i int, open map[string]string) string {
	name := strings.Trim(c.args[i+1], `"`)
	if number, ok := strings.CutPrefix(name, ownFd); ok {
		return open[number]
	}
	if filepath.IsAbs(name) {
		return name
	}
	m := fdForm.FindStringSubmatch(c.args[i])
	if m == nil {
		return ""
	}
	return filepath.Join(m[2], name)
}
