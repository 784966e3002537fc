package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wording are words that comments do not use: the subject of a sentence is the function, the
// program or the user, and a function returns, reports, requires or rejects.
var wording = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|everybody|wants|refuses|(tells|says|knows) whether|ways? back|mend what|takes its time|of no account|stands there|lets others|never again)\b`)

// TestWording checks the comments of all packages outside test/, without their test files.
func TestWording(t *testing.T) {
	for dir := range importsOfOurs(t) {
		if strings.HasPrefix(dir, "test/") {
			continue
		}
		for _, at := range unwanted(t, dir) {
			t.Error(at)
		}
	}
}

// unwanted returns the positions of these words in the comments of a package.
func unwanted(t *testing.T, dir string) (found []string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(repository, dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range files {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		file, err := parser.ParseFile(positions, filepath.Join(repository, dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Comments {
			found = append(found, unwantedIn(positions, group)...)
		}
	}
	return found
}

// unwantedIn returns the positions in a comment; a pair of words may be on two lines.
func unwantedIn(positions *token.FileSet, group *ast.CommentGroup) (found []string) {
	text := strings.Join(strings.Fields(group.Text()), " ")
	for _, word := range wording.FindAllString(text, -1) {
		found = append(found, positions.Position(group.Pos()).String()+": the comment has "+word)
	}
	return found
}

// TestWordingFinds checks that the search finds its words, also across lines.
func TestWordingFinds(t *testing.T) {
	positions := token.NewFileSet()
	text := "package p\n\n// Whoever asks, says\n// whether it wants.\nvar A int // Nobody\n"
	file, err := parser.ParseFile(positions, "p.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, group := range file.Comments {
		n += len(unwantedIn(positions, group))
	}
	if n != 4 {
		t.Errorf("found %d words, want 4", n)
	}
}
