package staging

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

var must = harness.Must

func mustParse(t testing.TB, s string) pathsafe.Path {
	t.Helper()
	p, err := pathsafe.Parse(s)
	must(t, err)
	return p
}

func openRoot(t testing.TB, path string) *pathsafe.Dir {
	t.Helper()
	d, err := pathsafe.OpenRoot(path)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// plant makes "a/b/" as a directory, "l -> x" as a link, all else as a file
// that holds its own name.
func plant(t testing.TB, root string, entries ...string) {
	t.Helper()
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		full := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case link:
			must(t, os.Symlink(target, full))
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o755))
		default:
			must(t, os.WriteFile(full, []byte("foreign "+name), 0o604))
			old := time.Unix(1_000_000_000, 5)
			must(t, os.Chtimes(full, old, old))
		}
	}
}

func mountTmpfs(t testing.TB, options string) string {
	t.Helper()
	dir := t.TempDir()
	harness.Mount(t, "tmpfs", dir, "tmpfs", 0, options)
	return dir
}

// A picture of a tree: what each path is, down to the inode. Of directories
// only those named foreign have a time, because we make and remove names in
// the others.
type picture map[string]string

func take(t testing.TB, root string) picture {
	t.Helper()
	p := picture{}
	must(t, tree.Walk(root, func(path string, n *tree.Node, err error) error {
		must(t, err)
		if !strings.HasPrefix(path, LockName) { // it has tests of its own
			p[path] = describeNode(t, n, path)
		}
		return nil
	}))
	return p
}

func describe(t testing.TB, path, rel string) string {
	t.Helper()
	n, err := tree.Look(path)
	must(t, err)
	return describeNode(t, n, rel)
}

func describeNode(t testing.TB, n *tree.Node, rel string) string {
	t.Helper()
	text := fmt.Sprintf("%o ino %d", n.Mode, n.Ino)
	if !n.IsDir() || strings.HasPrefix(rel, "foreign") {
		text += fmt.Sprintf(" links %d mtime %v", n.Nlink, n.Mtim)
	}
	content, err := n.Content()
	must(t, err)
	return fmt.Sprintf("%s %q", text, content)
}

// diff lists how two pictures differ; foreignOnly ignores what is only in b.
func diff(a, b picture, foreignOnly bool) string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(a)) {
		if a[path] != b[path] {
			fmt.Fprintf(&out, "%q was %s\n\tis %s\n", path, a[path], b[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[path]; !ok && !foreignOnly {
			fmt.Fprintf(&out, "%q is new: %s\n", path, b[path])
		}
	}
	return out.String()
}

func sameTree(t testing.TB, before picture, root string) {
	t.Helper()
	if d := diff(before, take(t, root), false); d != "" {
		t.Errorf("the tree is not as it was:\n%s", d)
	}
}

func foreignKept(t testing.TB, before picture, root string) {
	t.Helper()
	if d := diff(before, take(t, root), true); d != "" {
		t.Errorf("something foreign changed:\n%s", d)
	}
}

// A commitFixture is a root with foreign things in it, and a spec for it.
type commitFixture struct {
	t       testing.TB
	root    string
	source  string            // the directory of the sources
	sources map[string]string // by target
	content map[string]string // by target
	dir     *pathsafe.Dir
	spec    spec
	lazy    bool // nothing is synced
	umask   uint32
	takes   bool // two files take over what they replace has, see replaceCommit
	removes bool // existing/goes is removed, and artifacts are replaced, see replaceCommit

	mu     sync.Mutex
	checks map[string]int                                // how often each target was checked
	hook   func(path string, n int, f io.ReaderAt) error // asked at the end of check n of path, from 1
}

// usualUmask is that of the process.
var usualUmask = func() uint32 {
	umask := syscall.Umask(0o077)
	syscall.Umask(umask)
	return uint32(umask)
}()

var modTime = time.Unix(1_234_567_890, 987_654_321)

// newCommitFixture plants the foreign entries in root, unless they stand there already,
// and makes files and artifacts as the targets.
func newCommitFixture(t testing.TB, root string, foreign, files, artifacts []string) *commitFixture {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(root, foreignThings[0])); err != nil {
		plant(t, root, foreign...)
	}
	s := &commitFixture{t: t, root: root, sources: map[string]string{}, content: map[string]string{}, checks: map[string]int{}, umask: usualUmask}
	s.source = filepath.Join(filepath.Dir(root), sourcesName)
	if _, err := os.Lstat(s.source); err != nil {
		s.source = t.TempDir()
	}
	s.dir = openRoot(t, root)
	s.spec.workers = 1
	slices.Sort(files)
	for i, name := range files {
		s.addFile(i, name)
	}
	for _, name := range artifacts {
		s.content[name] = "artifact " + name
		s.spec.artifacts = append(s.spec.artifacts, artifactAt{Path: mustParse(t, name), Artifact: Artifact{[]byte(s.content[name]), 0o644}})
	}
	return s
}

func (s *commitFixture) addFile(i int, name string) {
	content := strings.Repeat("content of "+name+"\n", i*7)
	s.content[name] = content
	flat := fmt.Sprintf("%d-%x", i, name)
	source := filepath.Join(s.source, flat[:min(200, len(flat))])
	s.sources[name] = source
	if st, err := os.Lstat(source); err != nil || st.Size() != int64(len(content)) {
		must(s.t, os.WriteFile(source, []byte(content), 0o600))
	}
	s.spec.files = append(s.spec.files, fileAt{Path: mustParse(s.t, name), File: File{
		Size: int64(len(content)), Perm: permOf(i), ModTime: modTime,
		SHA256: sha256.Sum256([]byte(content)),
		Open:   func(*pathsafe.Opener) (Source, error) { return os.Open(source) },
		Check: func(ctx context.Context, f io.ReaderAt) error {
			return errors.Join(ctx.Err(), s.check(name, content, f))
		},
	}})
}

func permOf(i int) uint32 { return []uint32{0o644, 0o755, 0o400, 0o600, 0o777}[i%5] }

func (s *commitFixture) check(name, content string, f io.ReaderAt) error {
	buf := make([]byte, len(content)+1)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.mu.Lock()
	s.checks[name]++
	count, hook := s.checks[name], s.hook
	s.mu.Unlock()
	if hook != nil {
		if err := hook(name, count, f); err != nil {
			return err
		}
	}
	if !bytes.Equal(buf[:n], []byte(content)) {
		return fmt.Errorf("%q has the wrong content", name)
	}
	return nil
}

// run runs the spec with a hook, and forgets earlier checks.
func (s *commitFixture) run(hook func(op, path string, f func() error) error) error {
	clear(s.checks)
	return run(context.Background(), s.dir, s.spec, &runner{testKey, hookedBy(hook)})
}

// commit runs the spec.
func (s *commitFixture) commit() error {
	return run(context.Background(), s.dir, s.spec, &runner{testKey, &sysHook{}})
}

var testKey = []byte("the key of these tests, not secret")

// recover ends what a commit left, as a session of its own does.
func (s *commitFixture) recover(mode Mode) ([]Outcome, error) {
	s.t.Helper()
	l, err := enter(context.Background(), s.dir, testKey, hookedBy(s.lazily))
	must(s.t, err)
	defer l.Close()
	return l.recover(context.Background(), mode)
}

// mustRecover requires a person's recovery to end what a failed rollback left, and a command's to
// be rejected.
func (s *commitFixture) mustRecover() {
	s.t.Helper()
	var halt *HaltError
	if _, err := s.recover(Automatic); !errors.As(err, &halt) || !errors.Is(err, ErrHalted) {
		s.t.Errorf("the root is not halted: %v", err)
	}
	out, err := s.recover(Person)
	if err != nil || len(out) != 1 || out[0].Result != RolledBack {
		s.t.Errorf("recovered with %v, %v", out, err)
	}
}

// done sees that everything is in place as the spec says, and nothing else is
// new but the directories on the way.
func (s *commitFixture) done(before picture) {
	s.t.Helper()
	foreignKept(s.t, s.staying(before), s.root)
	for i, f := range s.spec.files {
		full := filepath.Join(s.root, f.Path.String())
		fi, err := os.Stat(full)
		must(s.t, err)
		b, err := os.ReadFile(full)
		must(s.t, err)
		if string(b) != s.content[f.Path.String()] || fi.Mode() != fs.FileMode(permOf(i)) || !fi.ModTime().Equal(modTime) {
			s.t.Errorf("%q: %v, %v, %.40q", f.Path, fi.Mode(), fi.ModTime(), b)
		}
	}
	for _, a := range s.spec.artifacts {
		full := filepath.Join(s.root, a.Path.String())
		fi, err := os.Stat(full)
		must(s.t, err)
		b, err := os.ReadFile(full)
		must(s.t, err)
		if string(b) != string(a.Data) || uint32(fi.Mode()) != a.Perm&^s.umask {
			s.t.Errorf("%q: %v, %.40q", a.Path, fi.Mode(), b)
		}
	}
	if s.takes {
		s.tookOver()
	}
	if s.removes {
		if _, err := os.Lstat(s.at("existing/goes")); !errors.Is(err, fs.ErrNotExist) {
			s.t.Errorf("existing/goes was to go: %v", err)
		}
	}
	s.nothingElse(before)
}

// tookOver sees that the files of replaceCommit have what the replaced ones had.
func (s *commitFixture) tookOver() {
	s.t.Helper()
	keep := metadataText(s.t, s.at("existing/keep"))
	if want := fmt.Sprintf("%d %d [{user.note old}]", namedUID, otherGID); !strings.Contains(keep, want) {
		s.t.Errorf("existing/keep has %s, not %s", keep, want)
	}
	if a := accesses(s.t, s.at("existing"))["other"]; !strings.Contains(a.ACL, string(binary.LittleEndian.AppendUint32([]byte{2, 0, 7, 0}, namedUID))) {
		s.t.Errorf("existing/other has the access list %x", a.ACL)
	}
}

// staying is what is foreign and is not to be replaced.
func (s *commitFixture) staying(before picture) picture {
	stays := maps.Clone(before)
	for _, f := range s.spec.files {
		if f.old != nil {
			delete(stays, strings.Replace(f.Path.String(), "inlink/", "existing/", 1))
		}
	}
	if s.removes {
		delete(stays, "existing/goes")
	}
	for _, a := range s.spec.artifacts {
		if a.old != nil || s.removes { // a killed commit has moved the old one aside
			delete(stays, a.Path.String())
		}
	}
	return stays
}

// nothingElse sees that all that is new is a target or on the way to one.
func (s *commitFixture) nothingElse(before picture) {
	s.t.Helper()
	wanted := map[string]bool{}
	for name := range s.content {
		real, err := filepath.EvalSymlinks(filepath.Join(s.root, filepath.Dir(name)))
		must(s.t, err)
		rel, err := filepath.Rel(s.root, filepath.Join(real, filepath.Base(name)))
		must(s.t, err)
		for ; rel != "."; rel = filepath.Dir(rel) {
			wanted[rel] = true
		}
	}
	for path := range take(s.t, s.root) {
		if _, ok := before[path]; !ok && !wanted[path] {
			s.t.Errorf("%q is left over", path)
		}
	}
}

// failure takes an error of Run apart.
func failure(t testing.TB, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("not a staging error: %v", err)
	}
	return e
}

func wantStep(t testing.TB, err error, step Step, path string) *Error {
	t.Helper()
	e := failure(t, err)
	if e.Step != step || e.Path != path {
		t.Errorf("failed at %v %q, want %v %q (%v)", e.Step, e.Path, step, path, err)
	}
	return e
}

// descriptors returns how many files are open.
func descriptors(t testing.TB) int { t.Helper(); return len(harness.OpenFiles(t, os.Getpid())) }

// commitCases are the fixtures that the sweeps go through.

var foreignThings = []string{
	"foreign/file", "foreign/link -> file", "foreign/deep/er", "foreign-out -> /etc", "existing/keep",
	"existing/empty/", "empty/", "inlink -> existing", ".spectrum06_staging_other/x", "fres", "fresh0",
}

func singleCommit(t testing.TB, root string) *commitFixture {
	t.Helper()
	return newCommitFixture(t, root, foreignThings,
		[]string{"a.txt", "existing/new", "existing/empty/x", "fresh/deep/f1", "fresh/deep/f2", "fresh/g", "inlink/via", "zero"},
		[]string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"})
}

func chainCommit(t testing.TB, root string) *commitFixture {
	t.Helper()
	s := newCommitFixture(t, root, foreignThings,
		[]string{"run1/out/a", "run1/out/b", "run1/c", "run2/a"},
		[]string{"run1/RESTORE_MANIFEST.json", "run1/RESTORE_REPORT.json", "run2/RESTORE_MANIFEST.json", "run2/RESTORE_REPORT.json"})
	s.spec.manifest = []byte(`{"runs":["run1","run2"]}`)
	return s
}

// manyCommit is above the limit at which another way is taken: syncfs.
func manyCommit(t testing.TB, root string) *commitFixture {
	t.Helper()
	var files, artifacts []string
	for i := range few + 1 {
		files = append(files, fmt.Sprintf("r%02d/f", i))
		artifacts = append(artifacts, fmt.Sprintf("r%02d/REPORT.json", i))
	}
	return newCommitFixture(t, root, foreignThings, files, artifacts)
}

// replaceCommit has files, and an artifact, that take the place of others, also through a link.
func replaceCommit(t testing.TB, root string) *commitFixture {
	t.Helper()
	_, made := os.Lstat(root + "/" + foreignThings[0])
	s := newCommitFixture(t, root, append(slices.Clone(foreignThings), "existing/goes", "existing/other", "theirs/file", "RESTORE_REPORT.json"),
		[]string{"existing/keep", "existing/new", "fresh/deep/f1", "fresh0", "inlink/other", "theirs/file"},
		[]string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"})
	if old, err := s.dir.Lstat("RESTORE_REPORT.json"); err == nil { // else a killed commit has moved it aside
		s.spec.artifacts[1].old = &old
	}
	if old, err := s.dir.StatPath(mustParse(t, "existing/goes"), pathsafe.LinksBeneath); err == nil {
		s.spec.removals = []removalAt{{mustParse(t, "existing/goes"), &old}}
	}
	s.takes, s.removes = true, true
	if made != nil {
		must(t, os.Chown(s.at("existing/keep"), namedUID, otherGID))
		must(t, unix.Setxattr(s.at("existing/keep"), "user.note", []byte("old"), 0))
		must(t, unix.Setxattr(s.at("existing/other"), accessList, []byte(generous), 0))
	}
	for i := range s.spec.files {
		f := &s.spec.files[i]
		if st, err := s.dir.StatPath(f.Path, pathsafe.LinksBeneath); err == nil {
			f.old = &st
		}
	}
	return s
}

var commitCases = []struct {
	name string
	make func(t testing.TB, root string) *commitFixture
}{{"single", singleCommit}, {"chain", chainCommit}, {"replace", replaceCommit}, {"many", manyCommit}}

// hookedBy returns a sysHook whose calls go through f.
func hookedBy(f func(op, path string, f func() error) error) *sysHook {
	return &sysHook{sys.Hook{Call: f}}
}
