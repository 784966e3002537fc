package harness

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/sysfault"
	"github.com/spectrumfs/spectrum/test/tree"
)

const (
	manifest = "RESTORE_MANIFEST.json"
	report   = "RESTORE_REPORT.json"
	// Lock is the name of the lock of a root.
	Lock = ".spectrum06_lock"
	// ForeignStaging is a directory that looks like one of an attempt.
	ForeignStaging = ".spectrum06_staging_00000000-1111-4222-8333-444444444444"
)

// A Site is a restore root with foreign things in it.
type Site struct {
	Project       *Project
	Root          string
	Before, After Tree
}

// Site makes a restore root at this path, which must not exist yet or be an
// empty directory.
func (p *Project) Site(t testing.TB, root string) *Site {
	t.Helper()
	Must(t, os.MkdirAll(root, 0o755))
	Must(t, p.furnish(root))
	before, err := Take(root)
	Must(t, err)
	return &Site{p, root, before, p.after(before)}
}

// furnish puts foreign things into a root.
func (p *Project) furnish(root string) error {
	at := func(name string) string { return filepath.Join(root, name) }
	dirs := []string{ForeignStaging, ForeignStaging + "/sub", "beside", "beside/empty"}
	dirs = append(dirs, p.Places...)
	files := []string{"foreign.txt", "beside/deep.txt", ForeignStaging + "/content", ForeignStaging + "/sub/.spectrum06_intent"}
	if !p.Chain {
		dirs = append(dirs, "out", "out/deep")
		files = append(files, "out/foreign.txt", "out/deep/foreign.txt")
	}
	var err error
	for _, dir := range dirs {
		err = errors.Join(err, os.Mkdir(at(dir), 0o750))
	}
	for _, file := range files {
		err = errors.Join(err, os.WriteFile(at(file), []byte("not yours: "+file), 0o640))
	}
	for i, name := range append(slices.Clone(p.Replaces), p.Removes...) {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at(name)), 0o755),
			os.WriteFile(at(name), []byte(old(name)), 0o640), os.Chtimes(at(name), time.Time{}, time.Unix(1_400_000_000+int64(i), 7)))
	}
	for _, name := range p.Identical {
		content, readErr := os.ReadFile(p.Source(name))
		st, statErr := os.Stat(p.Source(name))
		if readErr != nil || statErr != nil {
			return errors.Join(err, readErr, statErr)
		}
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), content, 0o600), os.Chmod(at(name), st.Mode()&0o777|0o200))
	}
	return errors.Join(err,
		os.Link(at("foreign.txt"), at("beside/hard link")),
		os.Symlink("nowhere", at("beside/dangling")),
		syscall.Mkfifo(at("beside/fifo"), 0o600))
}

// after is what a commit makes of a tree.
func (p *Project) after(before Tree) Tree {
	after := maps.Clone(before)
	for name, thing := range p.made {
		if slices.Contains(p.Identical, name) {
			continue
		}
		if _, ok := after[name]; !ok || !thing.Mode.IsDir() {
			after[name] = thing
		}
	}
	for _, name := range p.Removes {
		delete(after, name)
	}
	return after
}

// makes is what a commit makes in an empty root: computed from the sources.
func (p *Project) makes() (Tree, error) {
	made := Tree{}
	umask := umask()
	uid, gid := p.owner()
	for _, run := range p.Runs {
		put := func(name string, thing Thing) {
			name = filepath.Join(p.ResultRoot(run), name)
			thing.UID, thing.GID = uid, gid
			made[name] = thing
			for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
				made[dir] = Thing{Mode: os.ModeDir | 0o755&^umask, UID: uid, GID: gid}
			}
		}
		strictest := os.FileMode(0o644) &^ umask
		for name := range run.Files {
			n, err := tree.Look(p.Source(name))
			if err != nil {
				return nil, err
			}
			thing, err := thingOf(n)
			if err != nil {
				return nil, err
			}
			thing.Inode = 0
			strictest &= thing.Mode
			put(name, thing)
		}
		put(manifest, Thing{Mode: strictest | 0o400, Links: 1, Content: digest(run.manifest())})
		put(report, Thing{Mode: strictest | 0o400, Links: 1, Content: digest(p.report(run))})
	}
	return made, nil
}

// owner is who owns what a commit makes.
func (p *Project) owner() (uid, gid uint32) {
	if p.User != 0 {
		return uint32(p.User), uint32(p.User)
	}
	return uint32(os.Geteuid()), uint32(os.Getegid())
}

func umask() os.FileMode {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	var mask os.FileMode
	_, rest, _ := strings.Cut(string(status), "Umask:")
	if _, err := fmt.Sscanf(rest, "%o", &mask); err != nil {
		panic(err)
	}
	return mask
}

func (r Run) manifest() []byte {
	var entries []string
	for _, name := range r.Files.Names() {
		content := []byte(r.Files[name])
		entries = append(entries, fmt.Sprintf(`{"bytes":%d,"relative_path":%q,"sha256":"sha256:%s"}`, len(content), name, digest(content)))
	}
	return []byte(`{"entries":[` + strings.Join(entries, ",") + `]}`)
}

func (p *Project) report(r Run) []byte {
	chain := "null"
	if p.Chain {
		chain = fmt.Sprintf("%q", p.chainRoot)
	}
	size := 0
	for _, content := range r.Files {
		size += len(content)
	}
	return fmt.Appendf(nil, `{"bundle_roots":[%q],"chain_root":%s,"ok":true,"restored_bytes":%d,"restored_files_count":%d}`,
		r.Root, chain, size, len(r.Files))
}

// ReportSeen reports whether there is a report of a commit in the root.
func (s *Site) ReportSeen() bool {
	for _, run := range s.Project.Runs {
		if _, err := os.Lstat(filepath.Join(s.Root, s.Project.ResultRoot(run), report)); err == nil {
			return true
		}
	}
	return false
}

// PreviewReply makes a preview, or is rejected.
func (s *Site) PreviewReply(t testing.TB, plan *sysfault.Plan) Reply {
	t.Helper()
	args := []string{"preview", "-q", "--restore-root", s.Root}
	if len(s.Project.Replaces) > 0 && !s.Project.changes {
		args = append(args, "--replace")
	}
	for _, run := range s.Project.Runs {
		args = append(args, run.Dir)
	}
	return s.Project.Run(t, plan, args...)
}

// Preview makes a preview and returns its id.
func (s *Site) Preview(t testing.TB) string {
	t.Helper()
	r := s.PreviewReply(t, nil)
	if r.Status != 0 {
		t.Fatal(r)
	}
	return strings.TrimSpace(r.Stdout)
}

// CommitArgs are the arguments of the commit of a preview.
func CommitArgs(id string) []string {
	return []string{"commit", "--json", "--preview", id, "--approve", Statement}
}

// Commit makes a preview and commits it, under a plan if there is one.
func (s *Site) Commit(t testing.TB, plan *sysfault.Plan) Reply {
	t.Helper()
	return s.Project.Run(t, plan, CommitArgs(s.Preview(t))...)
}

// Recover runs recover, under a plan if there is one.
func (s *Site) Recover(t testing.TB, plan *sysfault.Plan, flags ...string) Reply {
	t.Helper()
	return s.Project.Run(t, plan, append(append([]string{"recover", "--json"}, flags...), s.Root)...)
}

// Acknowledge runs recover --acknowledge, and answers with the statement that it
// asks for.
func (s *Site) Acknowledge(t testing.TB) Reply {
	t.Helper()
	r := s.Recover(t, nil, "--acknowledge")
	if r.Status != 4 || r.Answer.Details.Statement == "" {
		return r
	}
	return s.Recover(t, nil, "--acknowledge", "--statement", r.Answer.Details.Statement)
}

// Remove removes the root, so that a sweep does not pile up trees.
func (s *Site) Remove(t testing.TB) {
	t.Helper()
	Must(t, os.RemoveAll(s.Root))
}
