package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// wording are words that comments, messages and documents do not use: the subject of a sentence
// is the function, the program or the user, and a function returns, reports, requires or rejects.
var wording = regexp.MustCompile(`(?i)\b(whoever|nobody|somebody|anybody|everybody|wants|refuses?|refused|told|hears?|for good|(held|holds|hold it) against|lets? go|mend(s|ed)?|as ever|taken away|what comes|is no [a-z]+|(tells|says|knows) whether|ways? back|mend what|takes its time|of no account|stands there|lets others|never again)\b`)

// allowed are uses of these words that mean something else: the user nobody, a code and the name of a
// state of the audit log, an answer of the network, and "there is no X", also across a line of a table.
var allowed = regexp.MustCompile(`\b(user nobody|REFUSED|Refused)\b|(?i)\b(there|this|it) is no (longer|more)\b|\bis no (longer|more)\b|\bthere is no [a-z]+|connection refused|^"refused"$`)

// unwanted returns the words in a text that is not to have them; names are identifiers.
func unwanted(text string, names map[string]bool) []string {
	text = allowed.ReplaceAllString(strings.Join(strings.Fields(text), " "), "")
	return slices.DeleteFunc(wording.FindAllString(text, -1), func(word string) bool { return names[word] })
}

// TestWording checks comments and messages of all packages, their tests included, the comments of
// scripts, and the documents.
func TestWording(t *testing.T) {
	read := map[string]func(t *testing.T, path string) map[string]string{
		".txtar": commentsOfScript, ".sh": commentsOfScript, ".md": proseOfPage,
	}
	checked := map[string]int{}
	packages := map[string][]string{}
	err := filepath.WalkDir(repository, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(repository, path)
		switch kind := filepath.Ext(path); {
		case err != nil:
			return err
		case e.IsDir() && (name == "bin" || name != "." && strings.HasPrefix(name, ".") || name == "testdata/conformance"):
			return filepath.SkipDir
		case kind == ".go":
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], path)
		case read[kind] != nil && e.Type().IsRegular():
			checked[kind]++
			if isFixed(filepath.Dir(name)) {
				return nil
			}
			for at, text := range read[kind](t, path) {
				for _, word := range unwanted(text, nil) {
					t.Errorf("%s: %s has %q", name, at, word)
				}
			}
		}
		return nil
	})
	if err != nil || checked[".txtar"] < 50 || checked[".md"] < 10 || len(packages) < 50 {
		t.Fatalf("%d packages, %v, %v: this test no longer finds them", len(packages), checked, err)
	}
	for dir, files := range packages {
		if name, _ := filepath.Rel(repository, dir); isFixed(name) {
			continue
		}
		for _, at := range unwantedInPackage(t, files) {
			t.Error(at)
		}
	}
}

// fixed are directories whose texts cannot change freely: the author's sentences are part of the
// conformance suite, and the samples of reports hold texts of the decision block, which the ID of a
// preview covers.
var fixed = []string{
	"test/conformance/author", "restore/preview/report/testdata",
}

func isFixed(dir string) bool { return slices.Contains(fixed, filepath.ToSlash(dir)) }

// commentsOfScript returns the comments of a script by their lines; one may have several lines.
func commentsOfScript(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	comments, first := map[string]string{}, ""
	for line := range strings.Lines(string(raw)) {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "#")
		switch {
		case !isComment:
			first = ""
		case first == "":
			first = "the comment " + text
			fallthrough
		default:
			comments[first] += " " + text
		}
	}
	return comments
}

// proseOfPage returns the text of a page without what it quotes.
func proseOfPage(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"the page": regexp.MustCompile("`[^`\n]+`").ReplaceAllString(string(raw), "")}
}

// unwantedInPackage returns these words, with their positions, in the comments of a package and
// in its messages. A comment may have them as names of the package.
func unwantedInPackage(t *testing.T, files []string) (found []string) {
	t.Helper()
	positions, names := token.NewFileSet(), map[string]bool{}
	var parsed []*ast.File
	for _, path := range files {
		file, err := parser.ParseFile(positions, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if ident, is := n.(*ast.Ident); is {
				names[ident.Name] = true
			}
			return true
		})
	}
	for _, file := range parsed {
		isTest := strings.HasSuffix(positions.Position(file.Pos()).Filename, "_test.go")
		for pos, text := range writtenIn(file, isTest) {
			for _, word := range unwanted(text, names) {
				found = append(found, positions.Position(pos).String()+": "+word)
			}
		}
	}
	return found
}

// reports are the methods by which a test fails.
var reports = []string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf", "Skip", "Skipf"}

// writtenIn returns comments and strings of a file; of a test only the strings that it fails with,
// because others may be data.
func writtenIn(file *ast.File, isTest bool) map[token.Pos]string {
	texts := map[token.Pos]string{}
	for _, group := range file.Comments {
		texts[group.Pos()] = group.Text()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING && !isTest {
				texts[n.Pos()] = n.Value
			}
		case *ast.CallExpr:
			method, is := n.Fun.(*ast.SelectorExpr)
			if !is || !slices.Contains(reports, method.Sel.Name) || len(n.Args) == 0 {
				break
			}
			if text, is := n.Args[0].(*ast.BasicLit); is {
				texts[text.Pos()] = text.Value
			}
		}
		return true
	})
	return texts
}

// TestWordingFinds checks that the search finds its words, also across lines.
func TestWordingFinds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p_test.go")
	text := "package p\n\n// Whoever asks, says\n// whether it wants: nobody, the user nobody.\nvar nobody = \"whoever\" // Nobody\n\nfunc f() { t.Errorf(\"%s refuses\", \"somebody\") }\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := unwantedInPackage(t, []string{path}); len(found) != 5 {
		t.Errorf("found %q, want 5", found)
	}
	script := filepath.Join(t.TempDir(), "s.txtar")
	if err := os.WriteFile(script, []byte("# no way\n# back\nexec wants\n\t# whoever\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, comment := range commentsOfScript(t, script) {
		n += len(unwanted(comment, nil))
	}
	if n != 2 {
		t.Errorf("found %d words in a script, want 2", n)
	}
}
