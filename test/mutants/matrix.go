package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const module = "github.com/spectrumfs/spectrum/"

// A table is which tests notice which mutant.
type table struct {
	scope *regexp.Regexp
	own   bool // only the package that is changed, and that of the named test
	limit time.Duration
	// needs are the packages of the module that the tests of a package are built of.
	needs map[string][]string
	// sound are the tests that fail without any fault: they notice nothing.
	sound map[string]bool
}

// matrix runs all tests that could notice a mutant, and prints a document.
func (r *runner) matrix(ctx context.Context, scope string, own bool, limit time.Duration) error {
	wanted, err := regexp.Compile(scope)
	if err != nil {
		return err
	}
	needs, err := needsOf(r.checkout)
	if err != nil {
		return err
	}
	m := &table{scope: wanted, own: own, limit: limit, needs: needs, sound: map[string]bool{}}
	if err := r.soundTests(ctx, m); err != nil {
		return err
	}
	rows := make([]string, len(r.mutants))
	work := make(chan int, len(rows))
	for i := range rows {
		work <- i
	}
	close(work)
	var workers sync.WaitGroup
	for range r.jobs {
		workers.Go(func() {
			t, err := newTree(r.checkout)
			if err != nil {
				r.fail(err)
				return
			}
			defer t.remove()
			for i := range work {
				row, err := m.row(ctx, t, r.mutants[i])
				if err != nil {
					r.fail(fmt.Errorf("%s: %w", r.mutants[i].name, err))
				}
				rows[i] = row
				fmt.Fprintln(os.Stderr, row)
			}
		})
	}
	workers.Wait()
	if err := errors.Join(r.errs...); err != nil {
		return err
	}
	return m.print(r, rows)
}

// needsOf lists the packages that have tests.
func needsOf(checkout string) (map[string][]string, error) {
	list, err := output(checkout, "go", "list", "-test", "-f", `{{.ImportPath}}|{{join .Deps ","}}`, "./...")
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	for line := range strings.Lines(list) {
		name, deps, _ := strings.Cut(strings.TrimSpace(line), "|")
		tested, isTest := strings.CutSuffix(name, ".test")
		if !isTest {
			continue
		}
		for dep := range strings.SplitSeq(deps, ",") {
			dep, _, _ = strings.Cut(dep, " [")
			if rel, ours := strings.CutPrefix(dep, module); ours {
				needs[strings.TrimPrefix(tested, module)] = append(needs[strings.TrimPrefix(tested, module)], rel)
			}
		}
	}
	return needs, nil
}

// couldNotice lists the packages whose tests could notice some mutants: those that are
// built of what they change, and those that judge the program from outside.
func (m *table) couldNotice(mutants ...*mutant) []string {
	var pkgs []string
	for pkg, needs := range m.needs {
		concerns := func(one *mutant) bool {
			if m.own {
				return "./"+pkg == one.pkg || slices.ContainsFunc(one.touches, func(file string) bool { return path.Dir(file) == pkg })
			}
			return fromOutside("./"+pkg) || slices.ContainsFunc(one.touches, func(file string) bool { return slices.Contains(needs, path.Dir(file)) })
		}
		if m.scope.MatchString(pkg) && slices.ContainsFunc(mutants, concerns) {
			pkgs = append(pkgs, "./"+pkg)
		}
	}
	slices.Sort(pkgs)
	return pkgs
}

// fromOutside reports whether the tests of a package may start the program.
func fromOutside(pkg string) bool {
	return pkg != "./test/mutants" && (strings.HasPrefix(pkg, "./test/") || strings.HasPrefix(pkg, "./cmd/") || strings.HasPrefix(pkg, "./scripts/"))
}

// soundTests runs every test that any mutant concerns without a fault.
func (r *runner) soundTests(ctx context.Context, m *table) error {
	t, err := newTree(r.checkout)
	if err != nil {
		return err
	}
	defer t.remove()
	failing, err := t.failing(ctx, m.couldNotice(r.mutants...), m.limit)
	for _, test := range failing {
		m.sound[test] = true
		fmt.Fprintln(os.Stderr, "fails without a fault:", test)
	}
	return err
}

// failing runs the tests of packages and returns those that fail, each as its package, a
// space, and its name; for a package that fails as a whole the name is "all of it".
func (t *tree) failing(ctx context.Context, pkgs []string, limit time.Duration) ([]string, error) {
	if len(pkgs) == 0 {
		return nil, errors.New("no package is in the scope")
	}
	bin := filepath.Join(t.base, "spectrum")
	if slices.ContainsFunc(pkgs, fromOutside) {
		if _, err := output(t.dir, "go", "build", "-trimpath", "-buildvcs=false", "-o", bin, "./cmd/spectrum"); err != nil {
			return nil, err
		}
	}
	cmd := together(ctx, "go", append([]string{"test", "-json", "-count=1", "-trimpath", "-vet=off", "-p=1", "-timeout=" + limit.String()}, pkgs...)...)
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), "SPECTRUM_BIN="+bin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return failuresIn(out.Bytes())
}

// failuresIn reads what go test -json prints.
func failuresIn(events []byte) ([]string, error) {
	var failures []string
	for in := json.NewDecoder(bytes.NewReader(events)); in.More(); {
		var e struct{ Action, Package, Test string }
		if err := in.Decode(&e); err != nil {
			return nil, err
		}
		if e.Action != "fail" || strings.Contains(e.Test, "/") || e.Package == "" {
			continue
		}
		pkg := strings.TrimPrefix(e.Package, module)
		of := func(failure string) bool { return strings.HasPrefix(failure, pkg+" ") }
		if e.Test != "" {
			failures = append(failures, pkg+" "+e.Test)
		} else if !slices.ContainsFunc(failures, of) {
			failures = append(failures, pkg+" all of it")
		}
	}
	return failures, nil
}

// row tries one mutant.
func (m *table) row(ctx context.Context, t *tree, one *mutant) (row string, err error) {
	if err := t.apply(one); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.revert(one)) }()
	pkgs := m.couldNotice(one)
	if len(pkgs) == 0 {
		return one.row("not tried"), nil
	}
	failing, err := t.failing(ctx, pkgs, m.limit)
	if err != nil {
		return "", err
	}
	counts := map[string]int{}
	for _, failure := range failing {
		if !m.sound[failure] {
			pkg, _, _ := strings.Cut(failure, " ")
			counts[pkg]++
		}
	}
	var cells []string
	for pkg, n := range counts {
		cells = append(cells, fmt.Sprintf("`%s` %d", pkg, n))
	}
	slices.Sort(cells)
	if len(cells) == 0 {
		cells = []string{"none"}
	}
	return one.row(strings.Join(cells, ", ")), nil
}

func (m *mutant) row(noticed string) string {
	return fmt.Sprintf("| %s | `%s` of `%s` | %s |", m.name, m.test, strings.TrimPrefix(m.pkg, "./"), noticed)
}

const intro = `# Mutants

Generated by "make test-long". A mutant is the program with one seeded fault. The patches in
[test/mutants](../test/mutants) describe the fault, the promise that it breaks and the test that
must fail ("go doc ./test/mutants" has the form). "make mutants" tries them all.
`

// print prints the document. What it covers stands in it.
func (m *table) print(r *runner, rows []string) error {
	tier := os.Getenv("SPECTRUM_TESTS")
	if tier == "" {
		tier = "sample"
	}
	scope := "all that are built of the changed code, and all below test"
	if m.own {
		scope = "the one that is changed, and that of the named test"
	}
	if m.scope.String() != "" {
		scope += ", as far as their paths match `" + strings.ReplaceAll(m.scope.String(), "|", "\\|") + "`"
	}
	_, err := fmt.Fprintf(r.out, `%s
The last column has the number of failing tests by package, without subtests; a package that
fails as a whole counts as 1. "not tried": no package that could notice it is among these.

- Packages: %s.
- Tier: %s.
- Tests that fail without a fault, and are not counted: %d.

| mutant | required test | failing tests |
|---|---|---|
%s
`, intro, scope, tier, len(m.sound), strings.Join(rows, "\n"))
	return err
}
