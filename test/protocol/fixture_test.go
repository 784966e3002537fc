package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// TestMain has the temporary directories in memory: a commit waits for the disk, and what
// that promises is tested elsewhere.
func TestMain(m *testing.M) {
	os.Exit(harness.Main(harness.RunFunc(func() int {
		return harness.WithMemoryDir(func(dir string) int {
			if err := os.Setenv("TMPDIR", dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			return m.Run()
		})
	})))
}

// exactly approves a preview as it is.
const exactly = harness.Statement

// A fixture is a project, a state directory, and a restore root.
type fixture struct {
	*harness.Project
	root string
	runs []string // run directories of the candidate
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return fixtureIn(t, t.TempDir())
}

// fixtureIn is a fixture in a directory that exists.
func fixtureIn(t testing.TB, top string) *fixture {
	t.Helper()
	p := &harness.Project{Dir: filepath.Join(top, "project"), State: filepath.Join(top, "state")}
	w := &fixture{Project: p, root: filepath.Join(top, "root")}
	harness.Must(t, errors.Join(os.Mkdir(p.Dir, 0o755), os.Mkdir(p.State, 0o700), os.Mkdir(w.root, 0o755)))
	t.Cleanup(func() { p.CheckAudit(t) })
	return w
}

// runDir is where a run is.
func (w *fixture) runDir(id string) string { return filepath.Join(w.Dir, "CONTRACTS/_runs", id) }

// day is when every source was written.
var day = time.Unix(1_700_000_000, 0)

// write writes sources.
func (w *fixture) write(t testing.TB, files harness.Files) {
	t.Helper()
	for _, name := range files.Names() {
		put(t, w.Source(name), files[name])
	}
}

// put writes a file with the time of every source.
func put(t testing.TB, path, content string) {
	t.Helper()
	harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	harness.Must(t, os.WriteFile(path, []byte(content), 0o644))
	harness.Must(t, os.Chmod(path, 0o644))
	harness.Must(t, os.Chtimes(path, day, day))
}

// seal has the program seal these files, and takes the run into the candidate.
func (w *fixture) seal(t testing.TB, id string, files harness.Files, flags ...string) *fixture {
	t.Helper()
	key := filepath.Join(filepath.Dir(w.Dir), "key.pem")
	if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
		w.Must(t, "keygen", "--out", key)
	}
	w.write(t, files)
	args := append([]string{"seal", "-q", "--key", key, "--run-dir", w.runDir(id)}, flags...)
	for _, name := range files.Names() {
		args = append(args, w.Source(name))
	}
	w.Must(t, args...)
	w.runs = append(w.runs, w.runDir(id))
	return w
}

// A forgery is a run that is signed by hand.
type forgery struct {
	files       harness.Files
	constraints any    // nil: none
	completed   string // ""; the forge's own
	inputs      []string
	semver      string
	key         byte // 0: 1
}

// forge signs a run, and takes it into the candidate.
func (w *fixture) forge(t testing.TB, id string, f forgery) *fixture {
	t.Helper()
	w.write(t, f.files)
	run := forge.New(forge.Outputs(f.files))
	run.Edit(forge.TaskSpec, func(spec forge.Fields) {
		spec["task_id"] = id
		if f.constraints != nil {
			spec["constraints"] = f.constraints
		}
		if f.inputs != nil {
			spec["inputs"] = f.inputs
		}
	})
	if f.completed != "" {
		run.Edit(forge.Status, func(status forge.Fields) { status["completed_at"] = f.completed })
	}
	if f.semver != "" {
		run.Edit(forge.OutputHashes, func(hashes forge.Fields) { hashes["validator_semver"] = f.semver })
	}
	run.Sign(forge.Key(max(f.key, 1)))
	harness.Must(t, run.Write(w.runDir(id)))
	w.runs = append(w.runs, w.runDir(id))
	return w
}

// validator is the validator_id of a key of the forge.
func validator(key byte) string {
	run := forge.New(forge.Outputs{})
	run.Sign(forge.Key(key))
	return run.Fields(forge.Identity)["validator_id"].(string)
}

// pin trusts a key of the forge.
func (w *fixture) pin(t testing.TB, key byte) *fixture {
	t.Helper()
	w.Must(t, "trust", "add", validator(key))
	return w
}

// A block is the decision block of a preview.
type block struct {
	Type       string          `json:"artifact_type"`
	Version    string          `json:"protocol_version"`
	Source     string          `json:"source_savepoint_id"`
	Current    string          `json:"current_active_savepoint_id"`
	Scope      []string        `json:"restore_scope"`
	Proposed   []item          `json:"proposed_restorations"`
	Reference  []item          `json:"reference_only_items"`
	Unwanted   []item          `json:"do_not_restore_items"`
	Conflicts  []conflict      `json:"conflicts"`
	Privacy    map[string]any  `json:"privacy_review"`
	Identity   map[string]any  `json:"identity_review"`
	Approval   pendingApproval `json:"approval"`
	Quarantine []struct {
		Rule   string `json:"rule"`
		Detail string `json:"detail"`
	} `json:"quarantine"`
	Checks []struct {
		Question string `json:"question"`
		Answer   string `json:"answer"`
	} `json:"state_protection"`
	ID string `json:"preview_id"`

	raw map[string]json.RawMessage
}

type pendingApproval struct {
	Status    string   `json:"status"`
	Required  []string `json:"required_items"`
	Statement string   `json:"statement"`
}

type item struct {
	ID     string `json:"restore_id"`
	Path   string `json:"item"`
	Scope  string `json:"scope"`
	Label  string `json:"label"`
	Class  string `json:"class"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

type conflict struct {
	ID         string   `json:"conflict_id"`
	Type       string   `json:"type"`
	Item       string   `json:"item"`
	Items      []string `json:"restore_ids"`
	Current    string   `json:"current_state"`
	Claim      string   `json:"savepoint_claim"`
	Authority  string   `json:"authority_comparison"`
	Risk       string   `json:"risk"`
	Resolution string   `json:"recommended_resolution"`
	Decision   string   `json:"operator_decision"`
}

// A shown is a preview, as JSON and as the report for people.
type shown struct {
	block
	report string
	stderr string // of the JSON: what is said beside it
}

// previewArgs are the arguments of a preview of the candidate.
func (w *fixture) previewArgs(flags ...string) []string {
	args := append([]string{"preview", "--restore-root", w.root}, flags...)
	return append(args, w.runs...)
}

// ask makes a preview, or is rejected.
func (w *fixture) ask(t testing.TB, flags ...string) harness.Reply {
	t.Helper()
	return w.Run(t, nil, w.previewArgs(append([]string{"--json"}, flags...)...)...)
}

// preview makes a preview.
func (w *fixture) preview(t testing.TB, flags ...string) block {
	t.Helper()
	r := w.ask(t, flags...)
	if r.Status != 0 {
		t.Fatal(r)
	}
	return parse(t, r.Stdout)
}

func parse(t testing.TB, raw string) block {
	t.Helper()
	var b block
	harness.Must(t, json.Unmarshal([]byte(raw), &b))
	harness.Must(t, json.Unmarshal([]byte(raw), &b.raw))
	return b
}

// show makes a preview twice: for machines and for people.
func (w *fixture) show(t testing.TB, flags ...string) shown {
	t.Helper()
	r := w.ask(t, flags...)
	people := w.Run(t, nil, w.previewArgs(flags...)...)
	if r.Status != 0 || people.Status != 0 {
		t.Fatal(r, people)
	}
	s := shown{parse(t, r.Stdout), people.Stderr, r.Stderr}
	if got := strings.TrimSpace(people.Stdout); got != s.ID {
		t.Errorf("for people the preview is %s, for machines %s", got, s.ID)
	}
	return s
}

// commit answers a preview with a statement.
func (w *fixture) commit(t testing.TB, id, statement string) harness.Reply {
	t.Helper()
	return w.Run(t, nil, "commit", "--json", "--preview", id, "--approve", statement)
}

// committed makes a preview and commits it.
func (w *fixture) committed(t testing.TB, statement string, flags ...string) block {
	t.Helper()
	b := w.preview(t, flags...)
	if r := w.commit(t, b.ID, statement); r.Status != 0 {
		t.Fatal(r)
	}
	return b
}

// refused is a commit that must end so, and change nothing.
func (w *fixture) refused(t testing.TB, id, statement string, status int, code string) harness.Reply {
	t.Helper()
	before := w.tree(t)
	r := w.commit(t, id, statement)
	if r.Status != status || r.Answer.Code != code {
		t.Errorf("want exit %d, %s: %v", status, code, r)
	}
	if diff := harness.Diff(before, w.tree(t)); diff != "" {
		t.Errorf("%v: the root has changed:\n%s", r, diff)
	}
	return r
}

func (w *fixture) tree(t testing.TB) harness.Tree {
	t.Helper()
	return harness.MustTake(t, w.root)
}

// files are the regular files beneath the root, and what is in them.
func (w *fixture) files(t testing.TB) harness.Files {
	t.Helper()
	return harness.FilesIn(t, w.root)
}

// clear empties the root.
func (w *fixture) clear(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(w.root)
	harness.Must(t, err)
	for _, e := range entries {
		harness.Must(t, os.RemoveAll(filepath.Join(w.root, e.Name())))
	}
}

// all are the items of every list, in order of their numbers.
func (b *block) all() []item {
	all := slices.Concat(b.Proposed, b.Reference, b.Unwanted)
	slices.SortFunc(all, func(x, y item) int { return strings.Compare(x.ID, y.ID) })
	return all
}

// item is the item at a path.
func (b *block) item(t testing.TB, path string) item {
	t.Helper()
	for _, i := range b.all() {
		if i.Path == path {
			return i
		}
	}
	t.Fatalf("there is no item %q", path)
	return item{}
}

// has reports whether a list has an item at a path.
func has(items []item, path string) bool {
	return slices.ContainsFunc(items, func(i item) bool { return i.Path == path })
}

// conflict is the first conflict of a type.
func (b *block) conflict(t testing.TB, kind string) conflict {
	t.Helper()
	for _, c := range b.Conflicts {
		if c.Type == kind {
			return c
		}
	}
	t.Fatalf("there is no %s: %+v", kind, b.Conflicts)
	return conflict{}
}

// rules are the rules of quarantine that have something against a candidate.
func (b *block) rules() (rules []string) {
	for _, f := range b.Quarantine {
		rules = append(rules, f.Rule)
	}
	return rules
}
