package main

import (
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is what the import path of every package of ours begins with.
const module = "github.com/spectrumfs/spectrum/"

// TestArchitecture checks the table of layers in docs/architecture.md: it names every package of
// the module once, and each imports only packages that are named before it.
func TestArchitecture(t *testing.T) {
	order := architectureOrder(t)
	imports := importsOfOurs(t)
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if !slices.Contains(order, name) {
			t.Errorf("%s is not in the table", name)
		}
	}
	for at, name := range order {
		if _, ok := imports[name]; !ok {
			t.Errorf("there is no package %s", name)
		}
		for _, other := range imports[name] {
			if slices.Index(order, other) >= at {
				t.Errorf("%s imports %s, which is not named before it", name, other)
			}
		}
	}
}

// architectureOrder returns the packages in the order of the table of layers.
func architectureOrder(t *testing.T) (order []string) {
	t.Helper()
	_, table, _ := strings.Cut(architecturePage(t), "\n| layer | packages |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		if slices.Contains(order, found[1]) {
			t.Errorf("%s is named twice", found[1])
		}
		order = append(order, found[1])
	}
	if len(order) < 30 {
		t.Fatalf("found %d packages: this test no longer finds them", len(order))
	}
	return order
}

func architecturePage(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// importsOfOurs are the packages of the module, each with those of them that it imports.
func importsOfOurs(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		all := strings.Fields(line)
		ours := []string{}
		for _, path := range all[1:] {
			if name, ok := strings.CutPrefix(path, module); ok {
				ours = append(ours, name)
			}
		}
		imports[strings.TrimPrefix(all[0], module)] = ours
	}
	return imports
}

// TestArchitectureNames: what the table of the sealed values calls by its name is
// exported by its package.
func TestArchitectureNames(t *testing.T) {
	packages := map[string]string{}
	for name := range importsOfOurs(t) {
		packages[filepath.Base(name)] = name
	}
	names := regexp.MustCompile("`\\(?\\*?([a-z]+)\\.([A-Z]\\w*)\\)?((?:\\.\\w+)?)`").FindAllStringSubmatch(architecturePage(t), -1)
	if len(names) < 20 {
		t.Fatalf("found %d names: this test no longer finds them", len(names))
	}
	for _, name := range names {
		cmd := exec.CommandContext(t.Context(), "go", "doc", "./"+packages[name[1]], name[2]+name[3])
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name[0], err, out)
		}
	}
}

// TestOurNames: what the names of our own files beneath a root begin with stands in one place.
func TestOurNames(t *testing.T) {
	const home = "internal/sys"
	for dir := range importsOfOurs(t) {
		if dir == home || strings.HasPrefix(dir, "test/") {
			continue
		}
		texts(t, filepath.Join(repository, dir), func(at token.Position, text string) {
			if strings.HasPrefix(text, ".spectrum06_") {
				t.Errorf("%v: %q; the prefix is in %s", at, text, home)
			}
		})
	}
}

// TestWhoStartsGit: one package starts git, and only a seal calls it. What else starts programs names
// them by their paths.
func TestWhoStartsGit(t *testing.T) {
	const home = "cmd/spectrum/internal/gitbase"
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	cmd.Dir = repository
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var start []string
	for line := range strings.Lines(string(out)) {
		all := strings.Fields(line)
		name := strings.TrimPrefix(all[0], module)
		if strings.HasPrefix(name, "test/") || strings.HasPrefix(name, "scripts/") || name == "bench" {
			continue
		}
		if slices.Contains(all[1:], "os/exec") && name != "internal/machine" { // which knows its errors only
			start = append(start, name)
		}
		if slices.Contains(all[1:], module+home) && name != "cmd/spectrum" {
			t.Errorf("%s imports %s", name, home)
		}
		if name != home {
			texts(t, filepath.Join(repository, name), func(at token.Position, text string) {
				if text == "git" {
					t.Errorf("%v names the program git", at)
				}
			})
		}
	}
	if want := []string{"cmd/spectrum", home, "fusefs/fusemount", "internal/overlay"}; !slices.Equal(start, want) {
		t.Errorf("%q start programs, want %q", start, want)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for text, only := range map[string]string{"gitbase.Read(": "sealgit.go", ".gitBase(": "sealbase.go", ".openBase(": "seal.go"} {
		found := 0
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(raw), text); n > 0 && !strings.HasSuffix(file, "_test.go") {
				found += n
				if file != only {
					t.Errorf("%s calls %s", file, text)
				}
			}
		}
		if found != 1 {
			t.Errorf("%s is there %d times", text, found)
		}
	}
}
