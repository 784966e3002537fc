package main

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDecidedOnce: an error is given its exit status, code, details and hints by the rows of
// verdicts, each of them by one row.
func TestDecidedOnce(t *testing.T) {
	set, files := parsed(t, ".")
	rows := map[string]string{} // what is decided of an error, by the row
	for _, file := range files {
		name := filepath.Base(set.Position(file.Pos()).Filename)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && strings.HasPrefix(id.Name, "status") && isExitStatus(id.Name) && !slices.Contains([]string{"verdict.go", "voice.go", "manual.go"}, name) {
				if name != "commit.go" { // asks whether an approval is at fault
					t.Errorf("%v: %s is for the table in verdict.go", set.Position(id.Pos()), id.Name)
				}
			}
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "verdicts" {
				return true
			}
			for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
				subject, decides := rowOfTable(row)
				for _, what := range decides {
					key := subject + " " + what
					at := set.Position(row.Pos()).String()
					if other := rows[key]; other != "" {
						t.Errorf("%s: %s is decided at %s already", at, key, other)
					}
					rows[key] = at
				}
			}
			return false
		})
	}
	if len(rows) < 80 {
		t.Errorf("found %d decisions: this test no longer finds them", len(rows))
	}
}

func isExitStatus(name string) bool {
	return slices.Contains([]string{
		"statusOK", "statusRejected", "statusHalted", "statusApproval", "statusPolicy", "statusUsage", "statusUnavailable", "statusInternal", "statusMachine", "statusInterrupted",
	}, name)
}

// rowOfTable is the error of a row, and what the row decides of it.
func rowOfTable(row ast.Expr) (subject string, decides []string) {
	call, ok := row.(*ast.CallExpr)
	if !ok { // a function of its own, by where it stands
		return "", nil
	}
	if name := types.ExprString(call.Fun); name == "approval" || name == "rejection" {
		return types.ExprString(call.Args[0]), []string{"status", "code", "hints"}
	}
	subject = types.ExprString(call.Args[0])
	if f, ok := call.Args[0].(*ast.FuncLit); ok {
		subject = types.ExprString(f.Type.Params.List[0].Type)
	}
	ast.Inspect(call, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if name, isIdent := typeOf(lit); !ok || !isIdent || name != "verdict" {
			return true
		}
		for _, e := range lit.Elts {
			if what := e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name; !slices.Contains(decides, what) { // one row may choose
				decides = append(decides, what)
			}
		}
		return true
	})
	return subject, decides
}
