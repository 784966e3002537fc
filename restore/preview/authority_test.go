package preview_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// TestTrust checks which trust policies allow a preview of a chain of two validators.
func TestTrust(t *testing.T) {
	s := bareScene(t)
	one := s.Add("run-1", map[string]string{"a": "1"})
	two := s.Add("run-2", map[string]string{"a": "1"})
	two.Seed[0]++
	two.Edit("STATUS.json", func(f map[string]any) { f["completed_at"] = "2027-01-02T03:04:05Z" })
	two.Sign()
	a, b, c := restoretest.ValidatorOf(one), restoretest.ValidatorOf(two), strings.Repeat("c", 64)
	if a == b || len(a) != 64 || len(b) != 64 {
		t.Fatalf("validators %q, %q", a, b)
	}
	for name, test := range map[string]struct {
		pinned, revoked []string
		err             error
		names           string // in the error
		conflicts       int    // authority conflicts
	}{
		"none":                 {conflicts: 2},
		"both":                 {pinned: []string{a, b, c}},
		"the first":            {pinned: []string{a}, err: preview.ErrQuarantined, names: b},
		"the second":           {pinned: []string{b}, err: preview.ErrQuarantined, names: a},
		"another":              {pinned: []string{c}, err: preview.ErrQuarantined, names: a},
		"revoked":              {revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"revoked and pinned":   {pinned: []string{a, b}, revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"revoked and unpinned": {pinned: []string{c}, revoked: []string{b}, err: preview.ErrRevoked, names: b},
		"another is revoked":   {revoked: []string{c}, conflicts: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s.Policy = restoretest.PolicyOf(t, test.pinned, test.revoked)
			p, err := preview.New(context.Background(), s.Restore(), s.Request())
			if !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.names) {
				t.Fatalf("%v, want %v of %s", err, test.err, test.names)
			}
			if err != nil {
				if p != nil {
					t.Error("there is a preview with the error")
				}
				return
			}
			if n := strings.Count(string(jsonOf(t, p)), `"type":"authority_conflict"`); n != test.conflicts {
				t.Errorf("%d conflicts", n)
			}
			if none := strings.Contains(reportOf(t, p), "## 6. Conflict Register\n\nNone.\n"); none != (test.conflicts == 0) {
				t.Errorf("the report says that there is no conflict: %v", none)
			}
		})
	}
}

// TestTrustIsBound: whatever changes in whom the operator trusts, the approval
// no longer fits.
func TestTrustIsBound(t *testing.T) {
	s := bareScene(t)
	a, c := restoretest.ValidatorOf(s.Add("run-1", map[string]string{"a": "1"})), strings.Repeat("c", 64)
	ids := map[string]bool{}
	policies := []trust.Policy{{}, restoretest.PolicyOf(t, []string{a}, nil), restoretest.PolicyOf(t, []string{a, c}, nil), restoretest.PolicyOf(t, []string{a}, []string{c}), restoretest.PolicyOf(t, nil, []string{c})}
	for _, policy := range policies {
		s.Policy = policy
		ids[s.Preview().ID()] = true
	}
	if len(ids) != len(policies) {
		t.Errorf("%d identities of %d policies", len(ids), len(policies))
	}
}

// TestForeignRoot: whatever another user can rename on the way to the root is a conflict,
// which only a statement that names it acknowledges.
func TestForeignRoot(t *testing.T) {
	const alice = 4241
	chown := func(t *testing.T, path string) { t.Helper(); must(t, os.Lchown(path, alice, alice)) }
	for name, test := range map[string]struct {
		place func(t *testing.T, s *scene) (given string)
		items []string // by their last name
	}{
		"own": {func(_ *testing.T, s *scene) string { return s.RestoreRoot }, nil},
		"the root of another, in a directory of root": {func(t *testing.T, s *scene) string { chown(t, s.RestoreRoot); return s.RestoreRoot }, nil},
		"in a directory of another": {func(t *testing.T, s *scene) string {
			s.Named("x/y")
			chown(t, filepath.Dir(s.RestoreRoot))
			return s.RestoreRoot
		}, []string{"y"}},
		"higher": {func(t *testing.T, s *scene) string {
			s.Named("x/y/z")
			chown(t, filepath.Dir(filepath.Dir(s.RestoreRoot)))
			return s.RestoreRoot
		}, []string{"y"}},
		"a link of another": {func(t *testing.T, s *scene) string {
			theirs := t.TempDir()
			must(t, os.Symlink(s.RestoreRoot, filepath.Join(theirs, "link")))
			chown(t, theirs)
			return filepath.Join(theirs, "link")
		}, []string{"link"}},
		"a link of another in a shared directory": {func(t *testing.T, s *scene) string {
			shared := t.TempDir()
			must(t, os.Chmod(shared, 0o777|os.ModeSticky))
			must(t, os.Symlink(filepath.Dir(s.RestoreRoot), filepath.Join(shared, "link")))
			chown(t, filepath.Join(shared, "link"))
			return filepath.Join(shared, "link", filepath.Base(s.RestoreRoot))
		}, []string{"link"}},
		"several": {func(t *testing.T, s *scene) string {
			s.Named("x/y/z")
			chown(t, filepath.Dir(s.RestoreRoot))
			chown(t, filepath.Dir(filepath.Dir(s.RestoreRoot)))
			return s.RestoreRoot
		}, []string{"y", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"a": "1", "b": "2"})
			s.Policy = restoretest.PolicyOf(t, []string{restoretest.ValidatorOf(s.Runs[0])}, nil)
			s.Origin.RestoreRoot = test.place(t, s)
			p := s.Preview()
			checkForeign(s, t, p, test.items)
			if len(test.items) == 0 {
				return
			}
			ids := statement.FormatConflicts([]int{1})
			part := "Approved: restore items R-001 only."
			for text, want := range map[string]error{
				preview.Exactly: preview.ErrUndecided, part: preview.ErrUndecided,
				preview.Exactly + " Resolve " + ids + ".": preview.ErrUnfit, preview.Exactly + " Reject " + ids + ".": preview.ErrUnfit,
				preview.Exactly + " Acknowledge " + ids + ".": nil, part + " Acknowledge " + ids + ".": nil, p.Recommended(): nil,
			} {
				if _, err := approve(kept(t, p), s.Preview(), text); !errors.Is(err, want) {
					t.Errorf("%q: %v, want %v", text, err, want)
				}
			}
			for _, verdict := range statement.Verdicts() {
				s.Asked.Decisions = map[string]statement.Verdict{"C-001": verdict}
				if _, err := preview.New(t.Context(), s.Restore(), s.Request()); !errors.Is(err, preview.ErrDecision) {
					t.Errorf("%s before the statement: %v", verdict, err)
				}
			}
		})
	}
}

// checkForeign requires the root and its way to be shown as they are.
func checkForeign(s *scene, t *testing.T, p *preview.Preview, items []string) {
	t.Helper()
	type conflict struct {
		Type, Item string
		Current    string `json:"current_state"`
		Places     []preview.Place
	}
	var shown struct {
		Root struct {
			Path  string `json:"path"`
			Real  string `json:"real_path"`
			Owner uint32 `json:"owner"`
		} `json:"restore_root"`
		Conflicts []conflict `json:"conflicts"`
	}
	must(t, json.Unmarshal(jsonOf(t, p), &shown))
	info, err := os.Stat(s.RestoreRoot)
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t).Uid
	if r := shown.Root; r.Path != s.Origin.RestoreRoot || r.Real != s.RestoreRoot || r.Owner != owner {
		t.Errorf("%+v, want %q, %q, %d", r, s.Origin.RestoreRoot, s.RestoreRoot, owner)
	}
	var found []string
	shown.Conflicts = slices.DeleteFunc(shown.Conflicts, func(c conflict) bool { return c.Places[0].Kind == preview.DirectoryPlace })
	for _, c := range shown.Conflicts {
		for _, m := range regexp.MustCompile(`can rename or replace "([^"]*)"`).FindAllStringSubmatch(c.Current, -1) {
			found = append(found, filepath.Base(m[1]))
		}
		if c.Type != "authority_conflict" || !strings.Contains(c.Current, "user 4241 can rename or replace ") {
			t.Errorf("%+v", c)
		}
	}
	report := strings.ReplaceAll(reportOf(t, p), `\`, "") // paths have names with escapes
	for _, want := range append(slices.Clone(items), s.Origin.RestoreRoot, s.RestoreRoot, restoretest.OwnerShown(owner)) {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not show %q:\n%s", want, report)
		}
	}
	if len(shown.Conflicts) != min(1, len(items)) { // all of them are his
		t.Errorf("%d conflicts: %+v", len(shown.Conflicts), shown.Conflicts)
	}
	if !slices.Equal(found, items) || (p.Recommended() != preview.Exactly) != (len(items) > 0) {
		t.Errorf("conflicts on %q, want %q; recommended %q", found, items, p.Recommended())
	}
}

// TestForeignRootMoves checks that there is no preview if the path leads elsewhere while it is made.
func TestForeignRootMoves(t *testing.T) {
	s := newScene(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), link))
	for _, given := range []string{link, filepath.Join(s.RestoreRoot, "gone"), filepath.Dir(s.RestoreRoot)} {
		s.Origin.RestoreRoot = given
		if p, err := preview.New(t.Context(), s.Restore(), s.Request()); !errors.Is(err, preview.ErrUnsettled) || p != nil {
			t.Errorf("%q: %v, %v", given, p, err)
		}
	}
}
