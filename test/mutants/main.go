package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What is promised of the mutants.
const (
	leastMutants = 30
	leastInTest  = 28 // of their tests, or more, are part of make test
)

func main() {
	dir := flag.String("dir", "test/mutants", "the directory of the patches")
	only := flag.String("run", "", "only the mutants whose name matches this regular expression")
	jobs := flag.Int("jobs", 2, "how many mutants are tried at once")
	seeds := flag.String("seeds", "", "try each test with these values of SEED, separated by commas, instead of 0")
	table := flag.Bool("matrix", false, "run all tests that could notice a mutant, and print a table")
	scope := flag.String("scope", "", "with -matrix: only packages whose path matches this regular expression")
	own := flag.Bool("own", false, "with -matrix: only the package that is changed, and that of the named test")
	limit := flag.Duration("timeout", time.Hour, "with -matrix: when the tests of one package are given up")
	checkout := flag.String("checkout", ".", "the checkout that is copied")
	flag.Parse()
	r := &runner{checkout: *checkout, jobs: *jobs, out: os.Stdout, envs: envsOf(*seeds)}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := r.load(*dir, *only)
	switch {
	case err != nil:
	case *table:
		err = r.matrix(ctx, *scope, *own, *limit)
	default:
		err = r.all(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// envsOf returns one environment for each seed.
func envsOf(seeds string) [][]string {
	if seeds == "" {
		return [][]string{nil}
	}
	var envs [][]string
	for seed := range strings.SplitSeq(seeds, ",") {
		envs = append(envs, []string{"SEED=" + seed})
	}
	return envs
}

// A runner tries mutants.
type runner struct {
	checkout string
	jobs     int
	out      io.Writer
	envs     [][]string
	mutants  []*mutant

	mu sync.Mutex // of out and of what follows
	// controls are the tests that have been run without a fault.
	controls map[string]bool
	caught   int
	cpu      time.Duration
	errs     []error
}

// load reads the patches. All of them have to keep what is promised of them, also when
// only some are wanted.
func (r *runner) load(dir, only string) error {
	all, err := load(dir)
	if err != nil {
		return err
	}
	inTest := 0
	for _, m := range all {
		if m.inTest {
			inTest++
		}
	}
	if len(all) < leastMutants || inTest < leastInTest {
		return fmt.Errorf("there are %d mutants, %d of them for tests of make test; at least %d and %d are wanted", len(all), inTest, leastMutants, leastInTest)
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	r.mutants = slices.DeleteFunc(all, func(m *mutant) bool { return !wanted.MatchString(m.name) })
	if len(r.mutants) == 0 {
		return fmt.Errorf("no mutant is called %q", only)
	}
	return nil
}

// all tries the mutants, those of one package one after the other in one copy.
func (r *runner) all(ctx context.Context) error {
	begin := time.Now()
	r.controls = map[string]bool{}
	groups := groupsOf(r.mutants, r.jobs)
	work := make(chan []*mutant, len(groups))
	for _, group := range groups {
		work <- group
	}
	close(work)
	var workers sync.WaitGroup
	for range min(r.jobs, len(groups)) {
		workers.Go(func() { r.work(ctx, work) })
	}
	workers.Wait()
	_, _ = fmt.Fprintf(r.out, "%d of %d mutants caught; %d tests ran without a fault before; %.0fs, of which the tests used %.0fs of processor time\n",
		r.caught, len(r.mutants), len(r.controls), time.Since(begin).Seconds(), r.cpu.Seconds())
	return errors.Join(r.errs...)
}

// groupsOf puts those of one package together, as far as all workers get something to
// do, the largest group first.
func groupsOf(mutants []*mutant, jobs int) [][]*mutant {
	byPkg := map[string][]*mutant{}
	for _, m := range mutants {
		byPkg[m.pkg] = append(byPkg[m.pkg], m)
	}
	most := max(1, len(mutants)/(2*max(1, jobs)))
	var groups [][]*mutant
	for _, group := range byPkg {
		for part := range slices.Chunk(group, most) {
			groups = append(groups, part)
		}
	}
	slices.SortFunc(groups, func(a, b []*mutant) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a[0].name, b[0].name)
	})
	return groups
}

// work tries groups of mutants in a copy of its own.
func (r *runner) work(ctx context.Context, groups <-chan []*mutant) {
	t, err := newTree(r.checkout)
	if err != nil {
		r.fail(err)
		return
	}
	defer t.remove()
	for group := range groups {
		for _, m := range group {
			if ctx.Err() != nil {
				r.fail(ctx.Err())
				return
			}
			r.one(ctx, t, m)
		}
	}
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

// one tries a mutant, and its test without it unless that was done before.
func (r *runner) one(ctx context.Context, t *tree, m *mutant) {
	begin := time.Now()
	r.mu.Lock()
	key := strings.Join(append([]string{m.pkg, m.test}, m.env...), " ")
	known := r.controls[key]
	r.controls[key] = true
	r.mu.Unlock()
	var alone, cpu time.Duration
	var err error
	for _, env := range r.envs {
		if err == nil && !known {
			var took time.Duration
			took, err = t.control(ctx, m, env)
			alone += took
		}
	}
	if err == nil {
		cpu, err = t.catch(ctx, m, r.envs)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cpu += alone + cpu
	word := "caught"
	if err != nil {
		word = "NOT CAUGHT"
		r.errs = append(r.errs, fmt.Errorf("%s: %w", m.name, err))
	} else {
		r.caught++
	}
	_, _ = fmt.Fprintf(r.out, "%-34s %s by %s of %s: %.1fs, the test %.1fs of processor time\n",
		m.name, word, m.test, m.pkg, time.Since(begin).Seconds(), cpu.Seconds()/float64(len(r.envs)))
}
