package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file is what tests read out of the program's own source.

// parsed are the files of a directory, but for the tests.
func parsed(t *testing.T, dir string) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return set, files
}

// declared are the constants of a type in a directory.
func declared(t *testing.T, dir, kind string) (values []string) {
	t.Helper()
	_, files := parsed(t, dir)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == kind && len(spec.Values) == 1 {
				values = append(values, textOf(spec.Values[0]))
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("%s declares no %s", dir, kind)
	}
	return values
}

var verb = regexp.MustCompile(`%[-+# 0-9.]*[a-zA-Z]`)

// textOf is the text that an expression makes, with X for what it takes from
// elsewhere.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return verb.ReplaceAllString(text, "X")
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	}
	return "X"
}

// texts calls do with every text in the source of a directory.
func texts(t *testing.T, dir string, do func(at token.Position, text string)) {
	t.Helper()
	set, files := parsed(t, dir)
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			_, literal := e.(*ast.BasicLit)
			_, sum := e.(*ast.BinaryExpr)
			if literal || sum {
				do(set.Position(e.Pos()), textOf(e))
			}
			return !sum
		})
	}
}

var (
	// quoted is a command in a text.
	quoted = regexp.MustCompile(`"(spectrum(?: [^"]*)?)"`)
	// ready is a command that a hint is, or that it ends with, ready to be copied.
	ready = regexp.MustCompile(`(?:^|^[a-z ]+: )(spectrum .*)$`)
)

// commandsIn are the commands that a text names.
func commandsIn(text string) (commands []string) {
	for _, found := range quoted.FindAllStringSubmatch(text, -1) {
		commands = append(commands, found[1])
	}
	return commands
}

// readyIn is the command that a hint has ready to be copied, if it has one.
func readyIn(hint string) []string {
	if found := ready.FindStringSubmatch(hint); found != nil {
		return found[1:]
	}
	return nil
}

// resolve requires that a command exists and takes the flags that are named with it, and, if any
// are named, the arguments.
func resolve(command string) error {
	root := newRoot(&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	root.InitDefaultHelpCmd()
	words := splitWords(command)[1:]
	cmd, rest, err := root.Find(words)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if len(args) == 0 {
		return nil
	}
	return cmd.ValidateArgs(args)
}

// shellWord is a word as it is written for a shell.
var shellWord = regexp.MustCompile(`(?:"\$\(printf '[^']*'\)"|'[^']*'|\\.|[^ '])+`)

// splitWords splits a line as a shell does, and leaves the quotes.
func splitWords(line string) []string {
	return shellWord.FindAllString(line, -1)
}

// flag is a flag that a text names by itself.
var flagName = regexp.MustCompile(`(?:^|[ "(])(--[a-z][a-z-]+)`)

// flagsOf are the flags of all commands, and of the one that mount(8) starts.
func flagsOf(t *testing.T) (names []string) {
	t.Helper()
	app := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	for _, root := range []*cobra.Command{newRoot(app), newMountHelper(app, helperNames[0])} {
		eachCommand(root, func(cmd *cobra.Command) {
			names = append(names, flagNames(cmd)...)
		})
	}
	return names
}

// flagsOfOthers are those of the programs that run containers and sandboxes, and of git.
var flagsOfOthers = map[string]bool{
	"--device": true, "--cap-add": true, "--rm": true, "--network": true, "--dev-bind": true, "--unshare-net": true, "--unshare-pid": true, "--proc": true,
	"--global": true, "--add": true, "--unshallow": true,
}

// TestTextsNameCommandsThatAreThere: every command and every flag that any text of
// the program names is there.
func TestTextsNameCommandsThatAreThere(t *testing.T) {
	flags, commands := flagsOf(t), 0
	for _, dir := range sourceDirs(t) {
		texts(t, dir, func(at token.Position, text string) {
			for _, command := range commandsIn(text) {
				commands++
				if err := resolve(command); err != nil {
					t.Errorf("%s: %s: %v", at, command, err)
				}
			}
			if dir != "." {
				return // others name the flags of other programs
			}
			for _, found := range flagName.FindAllStringSubmatch(text, -1) {
				if name := found[1]; !slices.Contains(flags, name) && !flagsOfOthers[name] {
					t.Errorf("%s: there is no flag %s: %s", at, name, text)
				}
			}
		})
	}
	if commands < 50 {
		t.Errorf("found only %d commands: this test no longer finds them", commands)
	}
}

// sourceDirs are the directories of the program's source.
func sourceDirs(t *testing.T) (dirs []string) {
	t.Helper()
	for _, top := range []string{".", "../../fusefs", "../../internal", "../../pathsafe", "../../restore", "../../staging", "../../verify"} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() != "testdata" && !strings.HasSuffix(d.Name(), "test") {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// eachCommand calls do with a command and all beneath it.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// TestDocumentsNameCommandsThatAreThere: the same of what the documents say in
// passing. Their blocks of commands are run by another test.
func TestDocumentsNameCommandsThatAreThere(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("`(spectrum [^`]*)`")
	for _, page := range append(pages, filepath.Join(repository, "README.md"), filepath.Join(repository, "CHANGELOG.md")) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inline.FindAllStringSubmatch(string(raw), -1) {
			err := resolve(found[1])
			if valueless := (&pflag.ValueRequiredError{}); err != nil && !errors.As(err, &valueless) { // a flag is named, and not used
				t.Errorf("%s: %s: %v", filepath.Base(page), found[1], err)
			}
		}
	}
}

// called are the calls of a function or method with this name in this directory.
func called(t *testing.T, name string, do func(at string, call *ast.CallExpr)) {
	t.Helper()
	set, files := parsed(t, ".")
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == name {
				do(fmt.Sprint(set.Position(call.Pos())), call)
			}
			return true
		})
	}
}
