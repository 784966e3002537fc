package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"
)

// side is a file of one of two trees.
type side struct {
	content    string
	executable bool
}

func (s *side) mode() fs.FileMode {
	if s.executable {
		return 0o755
	}
	return 0o644
}

// pair is a restore root, and a change set for it; nil is that there is no file.
type pair struct {
	dir        string // of the root
	links      map[string]string
	old, young map[string]*side
}

// plant writes the old side.
func (p *pair) plant(t testing.TB) {
	t.Helper()
	for link, target := range p.links {
		harness.Must(t, os.MkdirAll(filepath.Join(p.dir, target), 0o755))
		harness.Must(t, os.Symlink(target, filepath.Join(p.dir, link)))
	}
	for path, s := range p.old {
		if s == nil {
			continue
		}
		at := filepath.Join(p.dir, path)
		harness.Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		harness.Must(t, os.WriteFile(at, []byte(s.content), 0o600))
		harness.Must(t, os.Chmod(at, s.mode()))
	}
}

// diff seals the young side as a change set and compares it with the root.
func (p *pair) diff(t testing.TB) *rootDiff {
	t.Helper()
	outputs, base := map[string]string{}, map[string]any{}
	executable, removes := []string{}, []string{}
	for path, young := range p.young {
		old := p.old[path]
		if base[path] = nil; old != nil {
			base[path] = bundletest.Hash(old.content)
		}
		switch {
		case young != nil:
			outputs[path] = young.content
			if young.executable {
				executable = append(executable, path)
			}
		case old != nil:
			removes = append(removes, path)
		default:
			delete(base, path)
		}
	}
	slices.Sort(executable)
	slices.Sort(removes)
	project := bundletest.New(t)
	run := project.Run("r", outputs)
	var changes bytes.Buffer
	encoder := json.NewEncoder(&changes)
	encoder.SetEscapeHTML(false)
	harness.Must(t, encoder.Encode(map[string]any{"base": base, "executable": executable, "form": 1, "removes": removes}))
	canonical := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(changes.String(), "\n"))
	run.SetChanges(canonical)
	plan, err := restore.ForView(t.Context(), restore.Candidate{Runs: restoretest.OpenRuns(t, project.Root, run.Dir)})
	harness.Must(t, err)
	if !plan.IsChangeSet() {
		t.Fatalf("it is not a change set: %s", canonical)
	}
	root, err := pathsafe.OpenRoot(p.dir)
	harness.Must(t, err)
	t.Cleanup(func() { root.Close() })
	d := &rootDiff{plan: view.SceneOf(plan), candidate: slices.SortedFunc(view.Files(plan), byPath), root: root, rootPath: p.dir}
	harness.Must(t, d.compare(t.Context(), nil))
	return d
}

// appliers are the programs that must accept a patch: first tried, then carried out.
var appliers = map[string][][]string{
	"git":   {{"git", "apply", "--check", "-"}, {"git", "apply", "-"}},
	"patch": {{"patch", "-s", "-p1", "--dry-run"}, {"patch", "-s", "-p1"}},
}

// apply has one of them apply a patch in a directory.
func apply(t testing.TB, argv []string, dir string, made []byte) error {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(made)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w\n%s", argv, err, out)
	}
	return nil
}

// demand requires that a copy of the root is what the candidate makes of it, but for what is not text.
func (p *pair) demand(t testing.TB, dir string, isText func(path string) bool) {
	t.Helper()
	for path, want := range p.young {
		if !isText(path) {
			want = p.old[path]
		}
		got, err := os.ReadFile(filepath.Join(dir, path))
		if want == nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: it is there: %v", path, err)
			}
			continue
		}
		if err != nil || string(got) != want.content {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want.content)
			continue
		}
		info, err := os.Stat(filepath.Join(dir, path))
		harness.Must(t, err)
		if info.Mode()&0o100 != want.mode()&0o100 {
			t.Errorf("%q: mode %v, want %v", path, info.Mode(), want.mode())
		}
	}
}

// TestPatchMakesTheCandidate: git and patch make of any root what a change set says.
func TestPatchMakesTheCandidate(t *testing.T) {
	names := []string{
		"a", "with space", " lead ", "t\tab", `q"uote`, "new\nline", "grün/été", "d\u202e", "dev/null", "d/e/f", "d/e/g", "-dash", "it's", "#x",
		"linked/file", "linked/deep/file", "to root/at top", "--- a", "\x1b[2J", ".git/config", "a.git",
	}
	line := rapid.SampledFrom([]string{"a\n", "b\n", "-a\n", "--- x\n", "+b\n", "\n", "\\ d\n", "@@ -1 +1 @@\n", "é\r\n", "diff --git a/x b/x\n", "# c\n", "\u202e\n", "1,2d\n", "Index: x\n"})
	ends := rapid.SampledFrom([]string{"", "", "", "end", "\x00", "\xff"})
	file := rapid.Custom(func(t *rapid.T) *side {
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			return nil
		}
		lines := rapid.SliceOfN(line, 0, 8).Draw(t, "lines")
		return &side{strings.Join(lines, "") + ends.Draw(t, "end"), rapid.Bool().Draw(t, "executable")}
	})
	harness.Checks(t, 12)
	rapid.Check(t, func(rt *rapid.T) {
		p := pair{links: map[string]string{"linked": "real \xff\n dir", "to root": "."}, old: map[string]*side{}, young: map[string]*side{"kept": {"kept", false}}}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 8, rapid.ID).Draw(rt, "names") {
			p.old[name], p.young[name] = file.Draw(rt, "old"), file.Draw(rt, "young")
			if same := rapid.IntRange(0, 5).Draw(rt, "same"); same == 0 && p.old[name] != nil {
				p.young[name] = &side{p.old[name].content, rapid.Bool().Draw(rt, "new mode")}
			}
		}
		isText := func(path string) bool {
			mode := p.old[path] != nil && p.young[path] != nil && p.old[path].content == p.young[path].content
			for _, s := range []*side{p.old[path], p.young[path]} {
				if s != nil && !patch.IsText([]byte(s.content)) && !mode || strings.HasPrefix(path, ".git/") {
					return false
				}
			}
			return true
		}
		p.dir = t.TempDir()
		p.plant(t)
		made, err := p.diff(t).boundedPatch(t.Context(), math.MaxInt, math.MaxInt)
		harness.Must(t, err)
		for _, steps := range appliers {
			copied := p
			copied.dir = t.TempDir()
			copied.plant(t)
			for _, argv := range steps {
				if !bytes.Contains(made, []byte("\ndiff --git ")) {
					break // nothing but comments
				}
				if err := apply(t, argv, copied.dir, made); err != nil {
					t.Errorf("%v\n%s", err, made)
				}
			}
			p.demand(t, copied.dir, isText)
		}
		if t.Failed() {
			rt.Fatalf("%s", made)
		}
	})
}

// TestPatchOfSharedPlaces: what links lead to one place is named, and the rest is a patch.
func TestPatchOfSharedPlaces(t *testing.T) {
	p := pair{
		dir: t.TempDir(), links: map[string]string{"one": "real"},
		young: map[string]*side{"one/a": {"1\n", false}, "real/a": {"2\n", false}, "one/b": {"3\n", false}, "real/b/c": {"4\n", false}, "d": {"5\n", false}},
	}
	p.plant(t)
	made, err := p.diff(t).boundedPatch(t.Context(), math.MaxInt, math.MaxInt)
	harness.Must(t, err)
	if n := strings.Count(string(made), "; no lines: a symbolic link resolves another file of the candidate to the same path"); n != 4 {
		t.Errorf("%d: %s", n, made)
	}
	if err := apply(t, appliers["git"][0], p.dir, made); err != nil {
		t.Errorf("%v\n%s", err, made)
	}
}

// TestPatchIsBounded: what there is no room for is named, and then counted; what is there is applied.
func TestPatchIsBounded(t *testing.T) {
	p := pair{dir: t.TempDir(), young: map[string]*side{}}
	for i := range 300 {
		p.young[fmt.Sprintf("f%03d", i)] = &side{fmt.Sprintf("%d\n", i), false}
	}
	d := p.diff(t)
	whole, err := d.boundedPatch(t.Context(), math.MaxInt, math.MaxInt)
	harness.Must(t, err)
	made, err := d.boundedPatch(t.Context(), 10_000, 20_000)
	harness.Must(t, err)
	named, made2, _ := strings.Cut(string(made), "; no lines: the patch of a view has reached its limit")
	if shared := named[:strings.LastIndexByte(named, '\n')+1]; !bytes.HasPrefix(whole, []byte(shared)) || len(shared) < 9_000 || strings.Contains(made2, "diff --git") {
		t.Errorf("%s", made)
	}
	if len(made) > 21_000 || !strings.Contains(made2, " more files with differences") {
		t.Errorf("%d bytes: %s", len(made), made)
	}
	for _, steps := range appliers {
		if err := apply(t, steps[0], p.dir, made); err != nil {
			t.Error(err)
		}
	}
}

// TestPatchThatIsCutShort: one that was made by a diff that has failed is applied by no program as if
// it were whole.
func TestPatchThatIsCutShort(t *testing.T) {
	p := pair{dir: t.TempDir(), young: map[string]*side{"a": {"1\n", false}, "b": {"2\n", false}}}
	d := p.diff(t)
	for i := range d.files {
		if f := &d.files[i]; f.Path == "b" {
			f.Source = fusefs.SourceFunc(func() (fusefs.Content, error) { return nil, errors.New("it has changed") })
		}
	}
	var out bytes.Buffer
	w := &diffWriter{out: bufio.NewWriter(&out), exact: true}
	if err := d.print(t.Context(), w); err == nil || !strings.Contains(err.Error(), "it has changed") {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "+1\n") || strings.Contains(out.String(), "DIFFERS") {
		t.Errorf("%s", out.String())
	}
	for _, steps := range appliers {
		if err := apply(t, steps[0], p.dir, out.Bytes()); err == nil {
			t.Errorf("%q accepts it", steps[0])
		}
	}
	if made, err := d.boundedPatch(t.Context(), math.MaxInt, math.MaxInt); err == nil || made != nil {
		t.Errorf("%q, %v", made, err)
	}
}

// TestDiffOfPreview: "preview --diff" shows the candidate that the preview is of, also where another
// one is at its path by then.
func TestDiffOfPreview(t *testing.T) {
	first, second := bundletest.New(t), bundletest.New(t)
	run := first.Run("run-1", map[string]string{"a": "first\n"})
	second.Run("run-1", map[string]string{"a": "second\n"})
	var stderr bytes.Buffer
	a := &app{stdout: &bytes.Buffer{}, stderr: &stderr, stateDir: filepath.Join(t.TempDir(), "state"), noProgress: true}
	state, err := a.openState()
	check(t, err)
	defer state.Close()
	cmd := &cobra.Command{Use: "preview"}
	cmd.SetContext(t.Context())
	made, err := a.propose(cmd, state, previewOptions{restoreRoot: t.TempDir()}, []string{run.Dir})
	check(t, err)
	defer made.close()
	check(t, os.Rename(first.Root, first.Root+".kept"))
	check(t, os.Rename(second.Root, first.Root))
	check(t, a.showDiff(cmd, paged{}, &made))
	if said := stderr.String(); !strings.Contains(said, "+first\n") || strings.Contains(said, "second") {
		t.Errorf("%s", said)
	}
}
