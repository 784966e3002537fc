package restoretest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// A Scene is a candidate and a restore root, of which previews are made.
type Scene struct {
	*bundletest.Project
	T           testing.TB
	Runs        []*bundletest.Run
	RestoreRoot string
	Origin      preview.Origin
	Asked       preview.Requested
	Policy      trust.Policy
	Current     preview.Savepoint
	Begun       int64
}

// NewScene makes a run, and a root where something stands already.
func NewScene(t testing.TB) *Scene {
	t.Helper()
	s := BareScene(t)
	s.Add("run-1", map[string]string{"out/a.txt": "alpha\n", "out/b.txt": "beta\n"})
	for path, content := range map[string]string{"deep/er/still/file": "was here", "top": "top"} {
		harness.Must(t, os.MkdirAll(filepath.Dir(s.At(path)), 0o755))
		harness.Must(t, os.WriteFile(s.At(path), []byte(content), 0o644))
	}
	harness.Must(t, os.Symlink("top", s.At("deep/link")))
	return s
}

// BareScene has no run, and an empty root.
func BareScene(t testing.TB) *Scene {
	s := &Scene{Project: bundletest.New(t), T: t, RestoreRoot: t.TempDir()}
	s.Origin = preview.Origin{ProjectRoot: "/project", RunDirs: []string{"/project/run-1"}}
	return s
}

// Add makes a run of the candidate.
func (s *Scene) Add(id string, outputs map[string]string) *bundletest.Run {
	s.T.Helper()
	r := s.Run(id, outputs)
	s.Runs = append(s.Runs, r)
	return r
}

// Claim has the signer of the last run say something of it.
func (s *Scene) Claim(constraints any) {
	r := s.Runs[len(s.Runs)-1]
	r.Edit(bundle.TaskSpec, func(f map[string]any) { f["constraints"] = constraints })
	r.Sign()
}

// At returns a name beneath the restore root.
func (s *Scene) At(path string) string { return filepath.Join(s.RestoreRoot, path) }

// Named moves the restore root to a name of the test's choice.
func (s *Scene) Named(name string) {
	s.T.Helper()
	s.RestoreRoot = filepath.Join(s.RestoreRoot, "named-"+name)
	harness.Must(s.T, os.MkdirAll(s.RestoreRoot, 0o755))
}

// Anywhere returns a text without what differs from one test to the next: the place and the
// owner of the root, and the identity.
func (s *Scene) Anywhere(p *preview.Preview, text string) string {
	s.T.Helper()
	uid := strconv.Itoa(os.Geteuid())
	return strings.NewReplacer(p.ID(), "ID", s.RestoreRoot, "/restore", `"owner":`+uid, `"owner":"UID"`, OwnerShown(uint32(os.Geteuid())), "user UID |").Replace(text)
}

// Preview verifies and plans anew, and makes a preview of the result.
func (s *Scene) Preview() *preview.Preview {
	s.T.Helper()
	p, err := preview.New(context.Background(), s.Restore(), s.Request())
	harness.Must(s.T, err)
	return p
}

// Request returns what a preview of the scene is made of.
func (s *Scene) Request() preview.Request {
	origin := s.Origin
	if origin.RestoreRoot == "" {
		origin.RestoreRoot = s.RestoreRoot
	}
	return preview.Request{Origin: origin, Asked: s.Asked, Trust: s.Policy, Privacy: privacy.Builtin(), Automatic: privacy.BuiltinKind(privacy.Automatic), Followed: privacy.BuiltinKind(privacy.Identity), Current: s.Current, Attempts: s.Begun}
}

// Restore opens, verifies and plans the candidate.
func (s *Scene) Restore() *restore.Restore {
	s.T.Helper()
	var dirs []string
	for _, r := range s.Runs {
		dirs = append(dirs, r.Dir)
	}
	c := restore.Candidate{Runs: OpenRuns(s.T, s.Root, dirs...)}
	if !s.Asked.Replace {
		return Plan(s.T, c, s.RestoreRoot)
	}
	r, err := restore.ForRootReplacing(s.T.Context(), c, s.RestoreRoot, func(*pathsafe.Dir) (map[string][sha256.Size]byte, error) { return nil, nil })
	harness.Must(s.T, err)
	s.T.Cleanup(func() { r.Close() })
	return r
}

// Accept carries an approval of everything to its end.
func (s *Scene) Accept(record *preview.Record, text string, ledger preview.Ledger) (*preview.Approved, error) {
	r := s.Restore()
	again, err := preview.New(context.Background(), r, s.Request())
	harness.Must(s.T, err)
	a, err := ApproveRecord(record, again, text)
	if err != nil {
		return nil, err
	}
	return a.Accept(r, ledger)
}

// ApproveRecord has a statement approve the record of a preview that was made again.
func ApproveRecord(record *preview.Record, again *preview.Preview, text string) (*preview.Approval, error) {
	said, err := statement.Parse(text)
	if err != nil {
		return nil, err
	}
	return record.Approve(again, said)
}

// Kept returns the record of a preview.
func Kept(t testing.TB, p *preview.Preview) *preview.Record {
	t.Helper()
	r, err := preview.ParseRecord(KeepOf(t, p), p.ID())
	harness.Must(t, err)
	return r
}

// KeepOf returns the bytes of that record.
func KeepOf(t testing.TB, p *preview.Preview) []byte {
	t.Helper()
	raw, err := p.Keep()
	harness.Must(t, err)
	return raw
}

// JSONOf returns the decision block of a preview.
func JSONOf(t testing.TB, p *preview.Preview) []byte {
	t.Helper()
	raw, err := p.JSON()
	harness.Must(t, err)
	return raw
}

// OwnerShown returns how the report shows the owner of a root.
func OwnerShown(uid uint32) string {
	if known, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		return fmt.Sprintf("user %s (%d) |", known.Username, uid)
	}
	return fmt.Sprintf("user %d |", uid)
}

// Golden compares with a file of testdata, or writes it.
func Golden(t testing.TB, name, got string, update bool) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if update {
		harness.Must(t, os.WriteFile(name, []byte(got), 0o644))
	}
	want, err := os.ReadFile(name)
	harness.Must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// PolicyOf pins and revokes these validators.
func PolicyOf(t testing.TB, pinned, revoked []string) trust.Policy {
	t.Helper()
	dir := t.TempDir()
	for _, id := range pinned {
		harness.Must(t, trust.Pin(dir, id, ""))
	}
	for _, id := range revoked {
		harness.Must(t, trust.Revoke(dir, id, ""))
	}
	p, err := trust.Load(dir)
	harness.Must(t, err)
	return p
}

// ValidatorOf returns the validator that signed a run.
func ValidatorOf(r *bundletest.Run) string {
	_, rest, _ := strings.Cut(string(r.Read("VALIDATOR_IDENTITY.json")), `"validator_id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// ChangeScene has a change set that makes app of "old", and more, and removes gone, and .env. What the
// producer started from is there.
func ChangeScene(t testing.TB) *Scene {
	t.Helper()
	s := BareScene(t)
	run := s.Add("run-1", map[string]string{"app": "new\n", "more": "more\n"})
	run.SetChanges(fmt.Sprintf(`{"base":{".env":%q,"app":%q,"gone":%q,"more":null},"executable":[],"form":1,"removes":[".env","gone"]}`,
		bundletest.Hash("KEY=1\n"), bundletest.Hash("old\n"), bundletest.Hash("bye\n")))
	for path, content := range map[string]string{".env": "KEY=1\n", "app": "old\n", "gone": "bye\n"} {
		harness.Must(t, os.WriteFile(s.At(path), []byte(content), 0o644))
	}
	return s
}

// Mixed is a preview with all kinds of items: free, in the way, of several scopes, restricted, not
// proposed.
func Mixed(t testing.TB) *preview.Preview {
	s := BareScene(t)
	files := map[string]string{".env": "SECRET=1", "z/.env": "SECRET=2", "taken": "new", "assumed": "x"}
	for n := range 12 {
		files[fmt.Sprintf("notes/n%02d", n)] = "note"
		files[fmt.Sprintf("src/f%02d", n)] = "source"
	}
	s.Add("run-1", files)
	s.Claim(map[string]any{"restore_scopes": map[string]any{"notes/": "decisions", "assumed": "assumptions"}})
	s.Asked.Scopes = []scope.Scope{scope.ProjectState, scope.Decisions, scope.OpenQuestions, scope.RestrictedContext}
	harness.Must(t, os.WriteFile(filepath.Join(s.RestoreRoot, "taken"), []byte("old"), 0o644))
	return s.Preview()
}
