package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// A Case is a tree, and what commands must make of it.
type Case struct {
	Name     string
	Text     []string // what the case is, in plain lines
	Law      string   // the clauses that decide it
	Ordinary bool     // it must be run as a user whom permission bits bind
	Commands []Command
	Entries  []Entry
}

// A Command is one command and what it must answer. Each starts from the tree
// as the case gives it.
type Command struct {
	Args    []string // the first is "verify" or "restore"
	Exit    int
	Result  string // JSON
	IfGiven string // JSON: members of details that may be left out, but must be this
	Free    []string
}

// Load reads all cases of a directory, in the order of their names.
func Load(dir string) ([]Case, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no case in %q", dir)
	}
	slices.Sort(files)
	var cases []Case
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c, err := Parse(strings.TrimSuffix(filepath.Base(file), ".txtar"), raw)
		if err != nil {
			return nil, fmt.Errorf("case %q: %w", file, err)
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// Parse reads a case.
func Parse(name string, raw []byte) (Case, error) {
	archive := txtar.Parse(raw)
	c := Case{Name: name}
	text, keys, ok := strings.Cut(string(archive.Comment), "\n\n")
	if !ok {
		return Case{}, errors.New("no empty line ends the text")
	}
	c.Text = strings.Split(text, "\n")
	for line := range strings.Lines(strings.TrimSpace(keys)) {
		if err := c.setKey(strings.TrimSuffix(line, "\n")); err != nil {
			return Case{}, err
		}
	}
	for _, f := range archive.Files {
		e, err := parseEntry(f.Name, f.Data)
		if err != nil {
			return Case{}, fmt.Errorf("entry %q: %w", f.Name, err)
		}
		c.Entries = append(c.Entries, e)
	}
	return c, c.check()
}

func (c *Case) setKey(line string) error {
	key, value, ok := strings.Cut(line, ": ")
	if !ok {
		return fmt.Errorf("not a key and a value: %q", line)
	}
	switch {
	case key == "law":
		c.Law = value
		return nil
	case key == "user" && value == "ordinary":
		c.Ordinary = true
		return nil
	case key == "command":
		args, err := parseArgs(value)
		c.Commands = append(c.Commands, Command{Args: args, Exit: -1})
		return err
	case len(c.Commands) == 0:
		return fmt.Errorf("before any command: %q", line)
	}
	return c.Commands[len(c.Commands)-1].setKey(key, value)
}

func (cmd *Command) setKey(key, value string) (err error) {
	switch key {
	case "exit":
		cmd.Exit, err = strconv.Atoi(value)
	case "result":
		cmd.Result, err = value, checkJSON(value)
	case "if-given":
		cmd.IfGiven, err = value, checkJSON(value)
	case "free":
		cmd.Free = strings.Fields(value)
	default:
		err = fmt.Errorf("unknown key %q", key)
	}
	return err
}

func checkJSON(text string) error {
	var members map[string]any
	return json.Unmarshal([]byte(text), &members)
}

func parseArgs(line string) ([]string, error) {
	var args []string
	for _, word := range strings.Fields(line) {
		arg, err := unescape(word)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
	}
	return args, nil
}

// check rejects a case that could not fail.
func (c *Case) check() error {
	if c.Law == "" || len(c.Commands) == 0 || len(c.Entries) == 0 {
		return errors.New("law, a command or the tree is missing")
	}
	for _, cmd := range c.Commands {
		if len(cmd.Args) == 0 || (cmd.Args[0] != "verify" && cmd.Args[0] != "restore") {
			return fmt.Errorf("unknown command %q", cmd.Args)
		}
		if cmd.Exit < 0 || cmd.Result == "" {
			return fmt.Errorf("no verdict for %q", cmd.Args)
		}
	}
	return nil
}

// Format writes a case.
func Format(c Case) []byte {
	var b strings.Builder
	b.WriteString(strings.Join(c.Text, "\n") + "\n\nlaw: " + c.Law + "\n")
	if c.Ordinary {
		b.WriteString("user: ordinary\n")
	}
	for _, cmd := range c.Commands {
		b.WriteString("command:")
		for _, arg := range cmd.Args {
			b.WriteString(" " + escape(arg))
		}
		fmt.Fprintf(&b, "\nexit: %d\nresult: %s\n", cmd.Exit, cmd.Result)
		if cmd.IfGiven != "" {
			b.WriteString("if-given: " + cmd.IfGiven + "\n")
		}
		if len(cmd.Free) > 0 {
			b.WriteString("free: " + strings.Join(cmd.Free, " ") + "\n")
		}
	}
	archive := txtar.Archive{Comment: []byte(b.String())}
	for _, e := range c.Entries {
		archive.Files = append(archive.Files, e.file())
	}
	return txtar.Format(&archive)
}
