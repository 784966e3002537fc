package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tableFiles are the table of errors, verdicts, and what its rows call.
var tableFiles = []string{"verdict.go", "lawhints.go", "hints.go", "stephints.go", "keptverdicts.go"}

// A source is a function of this package, with the errors of packages below that it matches.
type source struct {
	name    string
	file    string
	decl    *ast.FuncDecl
	imports map[string]bool // names of the packages of ours that the file imports
}

func (s *source) inTable() bool { return slices.Contains(tableFiles, s.file) }

// sources are the functions of this package.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	set, files := parsed(t, ".")
	var all []source
	for _, file := range files {
		imports := map[string]bool{}
		for _, spec := range file.Imports {
			if name, _ := strconv.Unquote(spec.Path.Value); strings.HasPrefix(name, module) {
				imports[path.Base(name)] = true
			}
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				all = append(all, source{nameOf(f), filepath.Base(set.Position(f.Pos()).Filename), f, imports})
			}
		}
	}
	return set, all
}

// nameOf is the name of a function, with the type that it is a method of.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// lower returns the name of a type or an error of a package below; "" for all others.
func (s *source) lower(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if id, ok := sel.X.(*ast.Ident); !ok || !s.imports[id.Name] {
		return ""
	}
	return types.ExprString(sel)
}

// matches returns the types and errors of packages below that a part of the function matches.
func (s *source) matches(part ast.Node) (names []string) {
	ast.Inspect(part, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		name := ""
		switch fun, last := call.Fun, call.Args[len(call.Args)-1]; {
		case types.ExprString(fun) == "errors.Is":
			name = s.lower(last)
		case types.ExprString(fun) == "errors.As":
			if at, ok := last.(*ast.UnaryExpr); ok {
				name = s.declaredAs(types.ExprString(at.X))
			}
		default:
			if index, ok := fun.(*ast.IndexExpr); ok && types.ExprString(index.X) == "errors.AsType" {
				name = s.lower(index.Index)
			}
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return true
	})
	return names
}

// declaredAs returns the type of a package below with which the function declares a variable.
func (s *source) declaredAs(variable string) (name string) {
	ast.Inspect(s.decl, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Type != nil && slices.ContainsFunc(spec.Names, func(id *ast.Ident) bool { return id.Name == variable }) {
			name = s.lower(spec.Type)
		}
		return true
	})
	return name
}

// givesHint matches the names of functions that return a next step.
var givesHint = regexp.MustCompile(`(?i)(hints?|remedy|steps?)$`)

// A table is the functions of the table by their names, with the number of the parameter that takes a hint;
// -1 for none.
type table map[string]int

// tableOf returns the functions of the table, with the two that add a hint to any error.
func tableOf(all []source) table {
	functions := table{"refusedHint": 1, "hinted": 1}
	for _, s := range all {
		if !s.inTable() {
			continue
		}
		at, n := -1, 0
		for _, field := range s.decl.Type.Params.List {
			for _, name := range field.Names {
				if takesHint.MatchString(name.Name) {
					at = n
				}
				n++
			}
		}
		functions[s.decl.Name.Name] = at
	}
	return functions
}

var takesHint = regexp.MustCompile(`^(hint|next|steps?)$`)

// decides returns what a part of a function decides about an error other than by a function of the table.
func (t table) decides(part ast.Node) (what string) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if name, ok := typeOf(n); ok && slices.Contains([]string{"codedError", "refusedError", "verdict"}, name) {
				what = "makes a " + name
			}
		case *ast.CallExpr:
			at, is := t[calledName(n)]
			if !is || at < 0 || at >= len(n.Args) {
				return true
			}
			for _, arg := range n.Args[at:] {
				hint, ok := arg.(*ast.CallExpr)
				if ok {
					_, ok = t[calledName(hint)]
				}
				if !ok {
					what = "gives a hint"
				}
			}
		}
		return true
	})
	return what
}

// calledName is the name of a function, or of a method whatever it is of.
func calledName(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// TestMatchedInTable: where a command matches an error of a package below, it decides no code, status, hint
// or details. It makes an error with what it knows, or calls a function of the table.
func TestMatchedInTable(t *testing.T) {
	set, all := sources(t)
	functions, givers := tableOf(all), map[string]string{}
	for _, s := range all {
		if what := functions.decides(s.decl.Body); what != "" && !s.inTable() && s.file != "voice.go" {
			givers[s.decl.Name.Name] = what
		}
	}
	found := 0
	for _, s := range all {
		names := s.matches(s.decl.Body)
		found += len(names)
		if s.inTable() || len(names) == 0 {
			continue
		}
		at := set.Position(s.decl.Pos())
		if givesHint.MatchString(s.decl.Name.Name) {
			t.Errorf("%v: %s matches %v, which is for the table", at, s.name, names)
		}
		if what := givers[s.decl.Name.Name]; what != "" && ofArguments[s.name] == "" {
			t.Errorf("%v: %s matches %v and %s, which is for the table", at, s.name, names, what)
		}
		for _, branch := range s.branches() {
			ast.Inspect(branch.body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && givers[calledName(call)] != "" && branch.takes(call) {
					t.Errorf("%v: where %s matches %v it calls %s, which %s: that is for the table", set.Position(call.Pos()), s.name, names, calledName(call), givers[calledName(call)])
				}
				return true
			})
		}
	}
	if found < 100 {
		t.Errorf("found %d matches: this test no longer finds them", found)
	}
}

// ofArguments are functions that match an error of a package below where an argument is wrong usage, and give
// hints for other errors.
var ofArguments = map[string]string{
	"app.openToLook": "an address of a store that is none",
}

// A branch is the part of a function that is for an error of a package below.
type branch struct {
	match, body ast.Node
}

// takes reports whether a call takes the error that was matched.
func (b *branch) takes(call *ast.CallExpr) bool {
	names := map[string]bool{}
	ast.Inspect(b.match, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && (names[id.Name] || id.Name == "err")
	})
}

// branches are the parts of a function that are for errors of packages below: after a match, and where
// another error has returned.
func (s *source) branches() (all []branch) {
	ast.Inspect(s.decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			all = append(all, s.rests(n.List)...)
		case *ast.IfStmt:
			if head := (&ast.IfStmt{Init: n.Init, Cond: n.Cond, Body: &ast.BlockStmt{}}); len(s.matches(head)) > 0 {
				all = append(all, branch{head, n.Body})
			}
		case *ast.CaseClause:
			if head := (&ast.CaseClause{List: n.List}); len(s.matches(head)) > 0 {
				all = append(all, branch{head, &ast.BlockStmt{List: n.Body}})
			}
			all = append(all, s.rests(n.Body)...)
		}
		return true
	})
	return all
}

// rests are the statements after a match, or after one that returns if there is no match.
func (s *source) rests(list []ast.Stmt) (all []branch) {
	for i, stmt := range list {
		var head ast.Stmt = &ast.EmptyStmt{}
		switch stmt := stmt.(type) {
		case *ast.AssignStmt:
			head = stmt
		case *ast.IfStmt:
			if isNegated(stmt.Cond) && returns(stmt.Body) {
				head = &ast.IfStmt{Init: stmt.Init, Cond: stmt.Cond, Body: &ast.BlockStmt{}}
			}
		}
		if len(s.matches(head)) > 0 {
			all = append(all, branch{head, &ast.BlockStmt{List: list[i+1:]}})
		}
	}
	return all
}

func isNegated(cond ast.Expr) (is bool) {
	ast.Inspect(cond, func(n ast.Node) bool {
		if not, ok := n.(*ast.UnaryExpr); ok && not.Op == token.NOT {
			is = true
		}
		return true
	})
	return is
}

func returns(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	_, is := body.List[len(body.List)-1].(*ast.ReturnStmt)
	return is
}

// TestCodesInOnePlace: a code is given by the table, or, where it is of a finding of one command, by that
// command.
func TestCodesInOnePlace(t *testing.T) {
	set, files := parsed(t, ".")
	given := map[string][]string{}
	for _, file := range files {
		name := filepath.Base(set.Position(file.Pos()).Filename)
		if slices.Contains(tableFiles, name) {
			name = "the table"
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && isCode.MatchString(id.Name) && name != "codes.go" && !slices.Contains(given[id.Name], name) {
				given[id.Name] = append(given[id.Name], name)
			}
			return true
		})
	}
	for _, code := range slices.Sorted(maps.Keys(given)) {
		if in := given[code]; len(in) > 1 && !slices.Contains(comparesCode, code) {
			t.Errorf("%s is given in %q", code, in)
		}
	}
	if len(given) < 30 {
		t.Errorf("found %d codes: this test no longer finds them", len(given))
	}
}

var isCode = regexp.MustCompile(`^code[A-Z]\w+$`)

// comparesCode are codes that a command compares with, to make a preview again.
var comparesCode = []string{"codeApprovalStale", "codeApprovalUsed"}

// bySteps are the errors of packages below that have hints at several places of the table, and why.
var bySteps = map[string]string{
	"action.ErrNoRoot":         leftToOther,
	"action.LaterError":        "which commit is undone first depends on what was to be undone",
	"action.UnfinishedError":   "a hint of the system, and a row after it",
	"bundle.FormError":         withoutIt,
	"bundle.SpecialError":      withoutIt,
	"dropin.ErrWritable":       "a config file, and a file of the operator that does not count",
	"existing.ErrHoles":        leftToOther,
	"fusemount.ErrDeadMount":   "one hint, of a mount point and of a view",
	"fusemount.ErrUnavailable": leftToOther,
	"gitbase.ErrNoGit":         leftToOther,
	"pathsafe.ErrCrossesMount": "a rollback, and a commit",
	"restore.Failure":          byCode,
	"snapshot.DamageError":     "of the store, and of contents of the snapshot that is restored",
	"snapshot.ErrHoles":        leftToOther,
	"staging.BusyError":        "a lock that is held, and one that cannot be made",
	"staging.Error":            "a rollback, and the restore of a part of a snapshot",
	"statedir.PartError":       "with the exit status of the machine, and with that of a rejection",
	"verify.ErrHoles":          leftToOther,
	"verify.Reject":            byCode,
}

const (
	leftToOther = "a step leaves it to the other place"
	withoutIt   = "run names the command that seals without it"
	byCode      = "a hint for each code, and for some codes another in a step that knows more"
)

func returnsBool(f *ast.FuncDecl) bool {
	return f.Type.Results != nil && len(f.Type.Results.List) == 1 && types.ExprString(f.Type.Results.List[0].Type) == "bool"
}

// TestOneHint: an error of a package below has its hint at one place of the table, unless what is to be done
// depends on what the command was doing.
func TestOneHint(t *testing.T) {
	_, all := sources(t)
	places := map[string][]string{}
	add := func(name, place string) {
		if !slices.Contains(places[name], place) {
			places[name] = append(places[name], place)
		}
	}
	for _, s := range all {
		if s.inTable() && !returnsBool(s.decl) {
			for _, name := range s.matches(s.decl.Body) {
				add(name, s.name)
			}
		}
	}
	_, files := parsed(t, ".")
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "verdicts" {
				return true
			}
			for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
				if subject, decides := rowOfTable(row); slices.Contains(decides, "hints") {
					add(strings.TrimPrefix(subject, "*"), "a row")
				}
			}
			return false
		})
	}
	for _, name := range slices.Sorted(maps.Keys(places)) {
		switch isSeveral := len(places[name]) > 1; {
		case isSeveral && bySteps[name] == "":
			t.Errorf("%s has hints in %q", name, places[name])
		case !isSeveral && bySteps[name] != "":
			t.Errorf("%s has hints in %q only", name, places[name])
		}
	}
	for name := range bySteps {
		if places[name] == nil {
			t.Errorf("%s has no hint", name)
		}
	}
	if len(places) < 80 {
		t.Errorf("found %d errors: this test no longer finds them", len(places))
	}
}
