package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Files are the outputs of a run: their content, by path below the project.
type Files map[string]string

// A Run is a signed run.
type Run struct {
	ID    string
	Dir   string
	Files Files
	Root  string // the bundle root
}

// A Project is a directory with signed runs, and a state directory beside it.
// It serves any number of restore roots.
type Project struct {
	Dir, State string
	Runs       []Run
	Chain      bool
	User       int      // who runs the program; 0: the one who runs the tests
	Program    string   // the binary, where that user can run it; "" for the one under test
	Places     []string // directories that stand in each root before, beside the usual ones
	Replaces   []string // outputs at whose targets other files stand in each root before; previews are made with --replace then
	Identical  []string // and those at whose targets the same stands
	Removes    []string // paths at which files stand in each root before, which a commit of a change set removes
	changes    bool     // it is a change set
	chainRoot  string   // of all runs
	made       Tree     // what a commit makes, computed when it was signed
}

// stateTop is where the state directory goes: into memory, where there is some, so
// that its syncs, which are many and are tried elsewhere, cost the sweeps no time.
func stateTop(t testing.TB, top string) string {
	const memory = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(memory, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return top
	}
	dir, err := os.MkdirTemp(memory, "spectrum-test-")
	if err != nil {
		return top
	}
	t.Cleanup(func() { Must(t, os.RemoveAll(dir)) })
	Must(t, os.Chmod(dir, 0o755)) // some tests run as another user
	return dir
}

// New signs a project. More than one run is a chain.
func New(t testing.TB, runs ...Files) *Project {
	t.Helper()
	top := t.TempDir()
	return newIn(t, top, stateTop(t, top), runs)
}

// NewIn is New in this directory.
func NewIn(t testing.TB, top string, runs ...Files) *Project {
	t.Helper()
	return newIn(t, top, top, runs)
}

// newIn signs a project, with its state directory in another place.
func newIn(t testing.TB, top, kept string, runs []Files) *Project {
	t.Helper()
	p := &Project{Dir: filepath.Join(top, "project"), State: filepath.Join(kept, "state"), Chain: len(runs) > 1}
	key := filepath.Join(kept, "key.pem")
	Must(t, os.Mkdir(p.State, 0o700))
	p.Must(t, "keygen", "--out", key)
	args := []string{"verify", "--json"}
	for i, files := range runs {
		run := Run{ID: fmt.Sprintf("run-%03d", i+1), Files: files}
		run.Dir = filepath.Join(p.Dir, "CONTRACTS/_runs", run.ID)
		seal := []string{"seal", "-q", "--key", key, "--run-dir", run.Dir}
		for _, name := range files.Names() {
			p.write(t, name, files[name])
			seal = append(seal, p.Source(name))
		}
		p.Must(t, seal...)
		p.Runs = append(p.Runs, run)
		args = append(args, run.Dir)
	}
	t.Cleanup(func() { p.CheckAudit(t) })
	p.roots(t, args)
	made, err := p.makes()
	Must(t, err)
	p.made = made
	return p
}

// write makes a source. Modes and times are not all the same.
func (p *Project) write(t testing.TB, name, content string) {
	t.Helper()
	path := p.Source(name)
	Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	Must(t, os.WriteFile(path, []byte(content), 0o600))
	Must(t, os.Chmod(path, ModeOf(name)))
	when := time.Unix(1_600_000_000+int64(sum(name)), 0)
	Must(t, os.Chtimes(path, when, when))
}

// ModeOf returns the mode of a source, which depends on its name.
func ModeOf(name string) os.FileMode { return []os.FileMode{0o600, 0o644, 0o755}[sum(name)%3] }

func sum(name string) (sum int) {
	for _, b := range []byte(name) {
		sum += int(b)
	}
	return sum
}

// roots asks the program for the roots that the reports must name. How they
// are computed is tested with the vectors of the law.
func (p *Project) roots(t testing.TB, args []string) {
	t.Helper()
	var answer struct {
		Bundle  string   `json:"bundle_root"`
		Bundles []string `json:"bundle_roots"`
		Chain   string   `json:"chain_root"`
	}
	Must(t, json.Unmarshal([]byte(p.Must(t, args...).Stdout), &answer))
	if answer.Bundle != "" {
		answer.Bundles = []string{answer.Bundle}
	}
	p.chainRoot = answer.Chain
	for i := range p.Runs {
		p.Runs[i].Root = answer.Bundles[i]
	}
}

// Source is the path of an output in the project.
func (p *Project) Source(name string) string { return filepath.Join(p.Dir, name) }

// ResultRoot is the directory below a restore root that a run is restored to.
func (p *Project) ResultRoot(run Run) string {
	if p.Chain {
		return run.ID
	}
	return "."
}

// Targets are the paths below a restore root of all that a commit makes there,
// without directories, sorted.
func (p *Project) Targets() []string {
	var all []string
	for _, run := range p.Runs {
		for _, name := range append(run.Files.Names(), manifest, report) {
			all = append(all, filepath.Join(p.ResultRoot(run), name))
		}
	}
	slices.Sort(all)
	return all
}

// Names are the paths, sorted.
func (f Files) Names() []string { return slices.Sorted(maps.Keys(f)) }

// Single is a run of 20 files over 3 depths. Two of its directories exist in
// the restore root already.
func Single() Files {
	f := Files{"top.txt": "a file of the root itself\n", "empty": ""}
	for i := range 6 {
		f[fmt.Sprintf("out/%d.txt", i)] = fmt.Sprintf("out %d\n", i)
		f[fmt.Sprintf("out/deep/%d.bin", i)] = strings.Repeat(fmt.Sprint(i), 1<<(2*i))
		f[fmt.Sprintf("new/sub/%d", i)] = fmt.Sprintf("new %d\n", i)
	}
	return f
}

// Small is a run with one target of each kind: in the root, in a directory that
// exists already, and in a new one.
func Small() Files {
	return Files{"top.txt": "top\n", "out/a.txt": "alpha\n", "new/sub/b.txt": "beta\n", "new/c.txt": "gamma\n"}
}

// Chain is a chain of so many runs with so many files each.
func Chain(runs, files int) []Files {
	var chain []Files
	for i := range runs {
		f := Files{}
		for j := range files {
			dir := []string{"out", "out/deep", fmt.Sprintf("run%d", i)}[j%3]
			f[fmt.Sprintf("%s/%d-%d", dir, i, j)] = fmt.Sprintf("run %d, file %d\n", i, j)
		}
		chain = append(chain, f)
	}
	return chain
}
