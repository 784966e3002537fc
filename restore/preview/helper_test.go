package preview_test

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

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// A scene is a candidate and a restore root, of which previews are made.
type scene struct {
	*bundletest.Project
	t      testing.TB
	runs   []*bundletest.Run
	root   string
	origin preview.Origin
	asked  preview.Asked
	policy trust.Policy
	now    preview.Savepoint
	begun  int64
}

// newScene makes a run, and a root where something stands already.
func newScene(t testing.TB) *scene {
	t.Helper()
	s := bareScene(t)
	s.add("run-1", map[string]string{"out/a.txt": "alpha\n", "out/b.txt": "beta\n"})
	for path, content := range map[string]string{"deep/er/still/file": "was here", "top": "top"} {
		must(t, os.MkdirAll(filepath.Dir(s.at(path)), 0o755))
		must(t, os.WriteFile(s.at(path), []byte(content), 0o644))
	}
	must(t, os.Symlink("top", s.at("deep/link")))
	return s
}

func bareScene(t testing.TB) *scene {
	s := &scene{Project: bundletest.New(t), t: t, root: t.TempDir()}
	s.origin = preview.Origin{ProjectRoot: "/project", RunDirs: []string{"/project/run-1"}}
	return s
}

func (s *scene) add(id string, outputs map[string]string) *bundletest.Run {
	s.t.Helper()
	r := s.Run(id, outputs)
	s.runs = append(s.runs, r)
	return r
}

func (s *scene) at(path string) string { return filepath.Join(s.root, path) }

// named moves the restore root to a name of the test's choice.
func (s *scene) named(name string) {
	s.t.Helper()
	s.root = filepath.Join(s.root, "named-"+name)
	must(s.t, os.MkdirAll(s.root, 0o755))
}

// anywhere is a text without what differs from one test to the next: the place and the
// owner of the root, and the identity.
func (s *scene) anywhere(p *preview.Preview, text string) string {
	s.t.Helper()
	uid := strconv.Itoa(os.Geteuid())
	return strings.NewReplacer(p.ID(), "ID", s.root, "/restore", `"owner":`+uid, `"owner":"UID"`, ownerShown(uint32(os.Geteuid())), "user UID |").Replace(text)
}

// preview verifies and plans anew, and makes a preview of what comes out.
func (s *scene) preview() *preview.Preview {
	s.t.Helper()
	p, err := preview.New(context.Background(), s.restore(), s.request())
	must(s.t, err)
	return p
}

func (s *scene) request() preview.Request {
	origin := s.origin
	if origin.RestoreRoot == "" {
		origin.RestoreRoot = s.root
	}
	return preview.Request{Origin: origin, Asked: s.asked, Trust: s.policy, Privacy: privacy.Builtin(), Automatic: privacy.BuiltinKind(privacy.Automatic), Followed: privacy.BuiltinKind(privacy.Identity), Current: s.now, Attempts: s.begun}
}

// approve has a statement approve the record of a preview, that was made again.
func approve(record *preview.Record, again *preview.Preview, text string) (*preview.Approval, error) {
	said, err := statement.Parse(text)
	if err != nil {
		return nil, err
	}
	return record.Approve(again, said)
}

// accept carries an approval of everything to its end.
func (s *scene) accept(record *preview.Record, text string, ledger preview.Ledger) (*preview.Approved, error) {
	r := s.restore()
	again, err := preview.New(context.Background(), r, s.request())
	must(s.t, err)
	a, err := approve(record, again, text)
	if err != nil {
		return nil, err
	}
	return a.Accept(r, ledger)
}

func (s *scene) restore() *restore.Restore {
	s.t.Helper()
	var dirs []string
	for _, r := range s.runs {
		dirs = append(dirs, r.Dir)
	}
	c := restore.Candidate{Runs: restoretest.OpenRuns(s.t, s.Root, dirs...)}
	if !s.asked.Replace {
		return restoretest.Plan(s.t, c, s.root)
	}
	r, err := restore.ForRootReplacing(s.t.Context(), c, s.root, func(*pathsafe.Dir) (map[string][sha256.Size]byte, error) { return nil, nil })
	must(s.t, err)
	s.t.Cleanup(func() { r.Close() })
	return r
}

// kept is the record of a preview.
func kept(t testing.TB, p *preview.Preview) *preview.Record {
	t.Helper()
	r, err := preview.ParseRecord(keepOf(t, p), p.ID())
	must(t, err)
	return r
}

func keepOf(t testing.TB, p *preview.Preview) []byte {
	t.Helper()
	raw, err := p.Keep()
	must(t, err)
	return raw
}

func jsonOf(t testing.TB, p *preview.Preview) []byte {
	t.Helper()
	raw, err := p.JSON()
	must(t, err)
	return raw
}

func reportOf(t testing.TB, p *preview.Preview) string {
	t.Helper()
	var b strings.Builder
	must(t, p.WriteReport(&b))
	return b.String()
}

// state is a ledger that is a real one.
func state(t testing.TB) *statedir.Dir {
	t.Helper()
	d, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// wantUnused wants that a preview is still good for an approval: it uses it.
func wantUnused(t testing.TB, d *statedir.Dir, id string) {
	t.Helper()
	if err := d.Use(id); err != nil {
		t.Errorf("the preview is used up: %v", err)
	}
}

// ownerShown is how the report shows who owns something.
func ownerShown(uid uint32) string {
	if known, err := user.LookupId(fmt.Sprint(uid)); err == nil {
		return fmt.Sprintf("user %s (%d) |", known.Username, uid)
	}
	return fmt.Sprintf("user %d |", uid)
}
