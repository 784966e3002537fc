package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spectrumfs/spectrum/internal/dropin"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file has the defaults of flags that config.toml sets: those of the machine, and before them
// those of the user. The command line and the environment win.

// configName is the file, in $XDG_CONFIG_HOME/spectrum and in /etc/spectrum, and configLimit how
// many bytes it may have.
const (
	configName  = "config.toml"
	configLimit = 1 << 20
)

// neverConfigured are flags that must be given on the command line: those that approve,
// acknowledge, decide, replace, trust, or name a thing that is used once.
var neverConfigured = map[string]bool{
	"acknowledge": true, "approve": true, "decide": true, "replace": true, "require-trusted": true, "statement": true,
	"emergency": true, "foreign-root": true, "with-later": true, "with-edits": true, "without-damaged": true,
	"preview": true, "from-mount": true, "reason": true, "receipt": true, "html": true, "report": true, "help": true, "version": true,
}

// variables are the environment variables that set a flag.
var variables = map[string]string{"project-root": "SPECTRUM_PROJECT_ROOT", "state-dir": stateVariable, "color": "NO_COLOR"}

// alternatives are flags that replace each other.
var alternatives = []struct{ given, others []string }{
	{[]string{"unified", "stat", "name-status"}, []string{"unified", "stat", "name-status"}},
	{[]string{"preview"}, []string{"restore-root", "chain", "agent", "scope"}},
	{[]string{"from-mount"}, []string{"restore-root", "chain", "project-root"}},
	{[]string{"quiet"}, []string{"verbose"}}, {[]string{"verbose"}, []string{"quiet"}},
}

// configError is what is wrong with a key of a file.
type configError struct {
	file string
	line int
	key  string
	err  error
	keys []string // that are allowed in its table, where it is none of them
}

func (e *configError) Error() string {
	if e.key == "" {
		return fmt.Sprintf("%q, line %d: %v", e.file, e.line, e.err)
	}
	return fmt.Sprintf("%q, line %d: key %q: %v", e.file, e.line, e.key, e.err)
}

func (e *configError) Unwrap() error { return e.err }

// configVariable is the environment's word for the only file to read. When it is set and empty,
// no file is read.
const configVariable = "SPECTRUM_CONFIG"

// configure sets the flags of a command to the defaults of the files.
func configure(cmd *cobra.Command) error {
	for _, file := range configFiles() {
		if c := readDefaults(cmd, file, false); len(c.wrongs) > 0 {
			return &badConfig{args: os.Args[1:], stateDir: c.stateDir, err: c.wrongs[0]}
		}
	}
	return nil
}

// badConfig is an invalid config file. No command uses a part of it: the file may set the state
// directory, and another one has other commits.
type badConfig struct {
	args     []string // of the program
	stateDir string   // what the file sets; "" where that is not known
	err      error
}

func isStateDir(arg string) bool {
	return arg == "--state-dir" || strings.HasPrefix(arg, "--state-dir=")
}

func (e *badConfig) Error() string { return e.err.Error() }
func (e *badConfig) Unwrap() error { return e.err }

func (e *badConfig) hints() []string {
	first := "correct the file, or remove it; \"spectrum help config\" describes it"
	if wrong, is := errors.AsType[*configError](e.err); is && len(wrong.keys) > 0 {
		first = "allowed here are " + strings.Join(wrong.keys, ", ") + "; \"spectrum help config\" describes the file"
	}
	if refused, is := errors.AsType[*refusedError](e.err); is {
		first = refused.hint
	}
	line := []string{configVariable + "=", "spectrum"}
	if e.stateDir != "" && os.Getenv(stateVariable) == "" && !slices.ContainsFunc(e.args, isStateDir) {
		line = append(line, "--state-dir", shellQuote(e.stateDir))
	}
	for _, arg := range e.args {
		line = append(line, shellQuote(arg))
	}
	hints := []string{first, "to run this without config files: " + strings.Join(line, " "), "\"spectrum doctor\" lists every error in these files"}
	if e.stateDir == "" && os.Getenv(stateVariable) == "" && !slices.ContainsFunc(e.args, isStateDir) {
		hints = slices.Insert(hints, 2, "if the file sets a state directory, add --state-dir DIR to that command")
	}
	return hints
}

// configLeniently sets the flags of a command to the valid defaults of the files, and returns the
// contents.
func configLeniently(cmd *cobra.Command) (files []config) {
	for _, file := range configFiles() {
		files = append(files, readDefaults(cmd, file, true))
	}
	return files
}

// configurable reports whether a command takes defaults from files: one that only shows what the
// program is does not, and works with a file that is wrong.
func configurable(cmd *cobra.Command) bool {
	words := strings.Fields(cmd.CommandPath())
	return len(words) > 1 && !slices.Contains([]string{"help", "version", "completion", "manual", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd}, words[1])
}

// configFiles are the paths of the files, the weakest first.
func configFiles() []string {
	if only, isSet := os.LookupEnv(configVariable); isSet {
		if only == "" {
			return nil
		}
		return []string{only}
	}
	files := []string{filepath.Join(trust.System, configName)}
	if base := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		return append(files, filepath.Join(base, "spectrum", configName))
	}
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return append(files, filepath.Join(home, ".config", "spectrum", configName))
	}
	return files
}

// readDefaults sets the flags of a command to the defaults of a file. With isLenient it skips
// invalid keys.
func readDefaults(cmd *cobra.Command, file string, isLenient bool) config {
	c := config{cmd: cmd, file: file, isLenient: isLenient}
	raw, err := readConfig(file)
	if err != nil {
		c.wrongs = []error{refusedHint(fmt.Errorf("config file %q: %w", file, err), configHint(file, err))}
		return c
	}
	c.isThere = raw != nil
	values := map[string]any{}
	if err := toml.Unmarshal(raw, &values); err != nil {
		wrong := &configError{file: file, line: 1, err: err}
		if failed, is := errors.AsType[*toml.DecodeError](err); is {
			line, _ := failed.Position()
			wrong = &configError{file: file, line: line, key: strings.Join(failed.Key(), "."), err: errors.New(strings.TrimPrefix(failed.Error(), "toml: "))}
		}
		c.wrongs = []error{wrong}
		return c
	}
	c.stateDir, _ = values["state-dir"].(string)
	c.lines = linesOf(cmd.Root(), raw)
	c.table(cmd.Root(), values, nil)
	slices.SortStableFunc(c.keys, func(a, b string) int { return cmp.Compare(c.lines[a], c.lines[b]) })
	return c
}

// readConfig reads a file; nothing where there is none, unless it was named.
func readConfig(file string) (raw []byte, err error) {
	dir, name := filepath.Split(file)
	if os.Getenv(configVariable) != "" {
		defer func() {
			if err == nil && raw == nil {
				err = &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}
			}
		}()
	}
	way, err := pathsafe.WayFrom(cmp.Or(filepath.Clean(dir), "."))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || err == nil && way.Missing { // HOME may be another user's
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	place, err := way.Open()
	if err != nil {
		return nil, err
	}
	defer place.Close()
	raw, err = dropin.File(place, name, configLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if way, err = pathsafe.WayFrom(file); err == nil && len(way.Loose) > 0 {
		err = errors.New(way.Loose[0].String())
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, raw...), nil // an empty file is one
}

// config is a file that is read for a command.
type config struct {
	cmd       *cobra.Command
	file      string
	isThere   bool
	isLenient bool
	lines     map[string]int // by key
	keys      []string       // those that are right
	wrongs    []error
	stateDir  string // that the file sets
}

func (c *config) wrong(keys []string, format string, args ...any) {
	key := strings.Join(keys, ".")
	c.wrongs = append(c.wrongs, &configError{file: c.file, line: c.lines[key], key: key, err: fmt.Errorf(format, args...)})
}

// table checks every key of a table, that of a command, and sets the flags that are meant.
func (c *config) table(of *cobra.Command, values map[string]any, above []string) {
	names := []string{}
	for name := range values {
		names = append(names, name)
	}
	at := func(name string) int { return c.lines[strings.Join(append(slices.Clone(above), name), ".")] }
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(at(a), at(b)), strings.Compare(a, b)) })
	for _, name := range names {
		if len(c.wrongs) > 0 && !c.isLenient {
			return
		}
		keys := append(slices.Clone(above), name)
		if inner, is := values[name].(map[string]any); is {
			if sub := subcommand(of, name); sub != nil {
				c.table(sub, inner, keys)
			} else {
				c.wrong(keys, "there is no command with this name")
			}
			continue
		}
		flag := of.Flags().Lookup(name)
		if flag == nil {
			flag = cmp.Or(of.InheritedFlags().Lookup(name), of.PersistentFlags().Lookup(name))
		}
		switch {
		case flag == nil:
			c.wrong(keys, "%s", noFlag(of, name))
			if wrong, is := errors.AsType[*configError](c.wrongs[len(c.wrongs)-1]); is {
				wrong.keys = keysOf(of)
			}
		case !isAllowed(of, name):
			c.wrong(keys, "--%s cannot be set in a config file: give it with each command", name)
		default:
			c.set(of, flag, keys, values[name])
		}
	}
}

// isAllowed reports whether a flag of a command has a default in a config file.
func isAllowed(of *cobra.Command, name string) bool {
	return !neverConfigured[name] && !slices.Contains(strings.Fields(of.CommandPath()), "trust")
}

// noFlag returns the error of a flag that a table does not have, with the tables that have it.
func noFlag(of *cobra.Command, name string) string {
	text := "there is no flag --" + name
	if of.HasParent() {
		return text
	}
	var tables []string
	for _, sub := range of.Commands() {
		if sub.LocalNonPersistentFlags().Lookup(name) != nil {
			tables = append(tables, "["+sub.Name()+"]")
		}
	}
	switch {
	case len(tables) == 0:
		return text
	case neverConfigured[name]:
		return fmt.Sprintf("--%s cannot be set in a config file: give it with each command", name)
	}
	return text + " for all commands; put it in the table of a command: " + strings.Join(tables, ", ")
}

func subcommand(of *cobra.Command, name string) *cobra.Command {
	for _, sub := range of.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// set sets a flag, unless the command line or the environment sets it.
func (c *config) set(of *cobra.Command, flag *pflag.Flag, keys []string, value any) {
	texts, err := textsOf(flag, value)
	if err == nil {
		err = checkTexts(flag, texts)
	}
	if err != nil {
		c.wrong(keys, "%w", err)
		return
	}
	isOther := c.cmd != of && of != c.cmd.Root() // its own flags are set only to see that they can be
	if isOther && c.cmd.Root().PersistentFlags().Lookup(flag.Name) == flag || !isOther && (flag.Changed || os.Getenv(variables[flag.Name]) != "" || c.isReplaced(flag.Name)) {
		c.keys = append(c.keys, strings.Join(keys, "."))
		return
	}
	if list, is := flag.Value.(pflag.SliceValue); is {
		err = list.Replace(texts)
	} else {
		err = flag.Value.Set(texts[0])
	}
	if err != nil {
		c.wrong(keys, "%w", err)
		return
	}
	c.keys = append(c.keys, strings.Join(keys, "."))
}

// checkTexts rejects what a flag does not take, so that the file and the line are named.
func checkTexts(flag *pflag.Flag, texts []string) error {
	for _, text := range texts {
		switch flag.Name {
		case "scope":
			if flag.Value.Type() == "stringArray" { // seal has PATTERN=SCOPE
				text = text[strings.LastIndex(text, "=")+1:]
			}
			if _, err := scope.Parse(text); err != nil {
				return err
			}
		case "color":
			if !slices.Contains(colors, text) {
				return fmt.Errorf("--color %q is not auto, always or never", text)
			}
		case "law":
			if !slices.Contains(laws, text) {
				return fmt.Errorf("--law %q is not one of %s", text, strings.Join(laws, ", "))
			}
		case "restore-root":
			if !filepath.IsAbs(text) {
				return fmt.Errorf("--restore-root requires an absolute path, not %q", text)
			}
		}
		if text == "" {
			return fmt.Errorf("--%s is empty", flag.Name)
		}
	}
	return nil
}

// isReplaced reports whether a flag that replaces this one was given.
func (c *config) isReplaced(name string) bool {
	for _, a := range alternatives {
		for _, given := range a.given {
			if f := c.cmd.Flags().Lookup(given); slices.Contains(a.others, name) && given != name && f != nil && f.Changed {
				return true
			}
		}
	}
	return false
}

// textsOf returns a value as texts of the command line.
func textsOf(flag *pflag.Flag, value any) ([]string, error) {
	_, isList := flag.Value.(pflag.SliceValue)
	switch v := value.(type) {
	case bool:
		if flag.Value.Type() == "bool" {
			return []string{strconv.FormatBool(v)}, nil
		}
	case int64:
		if strings.HasPrefix(flag.Value.Type(), "int") || strings.HasPrefix(flag.Value.Type(), "uint") {
			return []string{strconv.FormatInt(v, 10)}, nil
		}
	case string:
		if isList || !slices.Contains([]string{"bool", "int", "int64", "uint", "uint64"}, flag.Value.Type()) {
			return []string{v}, nil
		}
	case []any:
		texts := []string{}
		for _, one := range v {
			text, is := one.(string)
			if !is || !isList {
				return nil, fmt.Errorf("--%s takes %s", flag.Name, taken(flag, isList))
			}
			texts = append(texts, text)
		}
		return texts, nil
	}
	return nil, fmt.Errorf("--%s takes %s", flag.Name, taken(flag, isList))
}

// taken is what a flag takes, in words.
func taken(flag *pflag.Flag, isList bool) string {
	switch kind := flag.Value.Type(); {
	case isList:
		return "a list of strings"
	case kind == "bool":
		return "true or false, without quotes"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a number, without quotes"
	}
	return "a string"
}

// linesOf are the lines of the keys of a file. The library names the line of each key that a type
// has no field for, so the type has the tables of the commands and nothing else.
func linesOf(root *cobra.Command, raw []byte) map[string]int {
	lines := map[string]int{}
	into := reflect.New(tablesOf(root))
	err := toml.NewDecoder(strings.NewReader(string(raw))).DisallowUnknownFields().Decode(into.Interface())
	if missing, is := errors.AsType[*toml.StrictMissingError](err); is {
		for _, one := range missing.Errors {
			line, _ := one.Position()
			lines[strings.Join(one.Key(), ".")] = line
		}
	}
	return lines
}

func tablesOf(cmd *cobra.Command) reflect.Type {
	var fields []reflect.StructField
	for n, sub := range cmd.Commands() {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("T%d", n), Type: tablesOf(sub), Tag: reflect.StructTag(fmt.Sprintf("toml:%q", sub.Name()))})
	}
	return reflect.StructOf(fields)
}
