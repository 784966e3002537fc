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
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// policyOf pins and revokes these validators.
func policyOf(t *testing.T, pinned, revoked []string) trust.Policy {
	t.Helper()
	place := t.TempDir()
	for _, id := range pinned {
		must(t, trust.Pin(place, id, ""))
	}
	for _, id := range revoked {
		must(t, trust.Revoke(place, id, ""))
	}
	p, err := trust.Load(place)
	must(t, err)
	return p
}

// validatorOf is who has signed a run.
func validatorOf(r *bundletest.Run) string {
	_, rest, _ := strings.Cut(string(r.Read("VALIDATOR_IDENTITY.json")), `"validator_id": "`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// TestTrust: who decides what, for a chain that two validators have signed.
func TestTrust(t *testing.T) {
	s := bareScene(t)
	one := s.add("run-1", map[string]string{"a": "1"})
	two := s.add("run-2", map[string]string{"a": "1"})
	two.Seed[0]++
	two.Edit("STATUS.json", func(f map[string]any) { f["completed_at"] = "2027-01-02T03:04:05Z" })
	two.Sign()
	a, b, c := validatorOf(one), validatorOf(two), strings.Repeat("c", 64)
	if a == b || len(a) != 64 || len(b) != 64 {
		t.Fatalf("validators %q, %q", a, b)
	}
	for name, test := range map[string]struct {
		pinned, revoked []string
		err             error
		names           string // in the error
		conflicts       int    // authority conflicts
	}{
		"nobody":               {conflicts: 2},
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
			s.policy = policyOf(t, test.pinned, test.revoked)
			p, err := preview.New(context.Background(), s.restore(), s.request())
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
	a, c := validatorOf(s.add("run-1", map[string]string{"a": "1"})), strings.Repeat("c", 64)
	ids := map[string]bool{}
	policies := []trust.Policy{{}, policyOf(t, []string{a}, nil), policyOf(t, []string{a, c}, nil), policyOf(t, []string{a}, []string{c}), policyOf(t, nil, []string{c})}
	for _, policy := range policies {
		s.policy = policy
		ids[s.preview().ID()] = true
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
		"own": {func(_ *testing.T, s *scene) string { return s.root }, nil},
		"the root of another, in a directory of root": {func(t *testing.T, s *scene) string { chown(t, s.root); return s.root }, nil},
		"in a directory of another": {func(t *testing.T, s *scene) string {
			s.named("x/y")
			chown(t, filepath.Dir(s.root))
			return s.root
		}, []string{"y"}},
		"higher": {func(t *testing.T, s *scene) string {
			s.named("x/y/z")
			chown(t, filepath.Dir(filepath.Dir(s.root)))
			chown(t, s.root)
			return s.root
		}, []string{"y"}},
		"a link of another": {func(t *testing.T, s *scene) string {
			theirs := t.TempDir()
			must(t, os.Symlink(s.root, filepath.Join(theirs, "link")))
			chown(t, theirs)
			return filepath.Join(theirs, "link")
		}, []string{"link"}},
		"a link of another in a shared directory": {func(t *testing.T, s *scene) string {
			shared := t.TempDir()
			must(t, os.Chmod(shared, 0o777|os.ModeSticky))
			must(t, os.Symlink(filepath.Dir(s.root), filepath.Join(shared, "link")))
			chown(t, filepath.Join(shared, "link"))
			return filepath.Join(shared, "link", filepath.Base(s.root))
		}, []string{"link"}},
		"several": {func(t *testing.T, s *scene) string {
			s.named("x/y/z")
			chown(t, filepath.Dir(s.root))
			chown(t, filepath.Dir(filepath.Dir(s.root)))
			return s.root
		}, []string{"y", "z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.add("run-1", map[string]string{"a": "1", "b": "2"})
			s.policy = policyOf(t, []string{validatorOf(s.runs[0])}, nil)
			s.origin.RestoreRoot = test.place(t, s)
			p := s.preview()
			s.checkForeign(t, p, test.items)
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
				if _, err := approve(kept(t, p), s.preview(), text); !errors.Is(err, want) {
					t.Errorf("%q: %v, want %v", text, err, want)
				}
			}
			for _, verdict := range statement.Verdicts() {
				s.asked.Decisions = map[string]statement.Verdict{"C-001": verdict}
				if _, err := preview.New(t.Context(), s.restore(), s.request()); !errors.Is(err, preview.ErrDecision) {
					t.Errorf("%s before the statement: %v", verdict, err)
				}
			}
		})
	}
}

// checkForeign requires the root and its way to be shown as they are.
func (s *scene) checkForeign(t *testing.T, p *preview.Preview, items []string) {
	t.Helper()
	var shown struct {
		Root struct {
			Path  string `json:"path"`
			Real  string `json:"real_path"`
			Owner uint32 `json:"owner"`
		} `json:"restore_root"`
		Conflicts []struct {
			Type, Item string
			Current    string `json:"current_state"`
		} `json:"conflicts"`
	}
	must(t, json.Unmarshal(jsonOf(t, p), &shown))
	info, err := os.Stat(s.root)
	must(t, err)
	owner := info.Sys().(*syscall.Stat_t).Uid
	if r := shown.Root; r.Path != s.origin.RestoreRoot || r.Real != s.root || r.Owner != owner {
		t.Errorf("%+v, want %q, %q, %d", r, s.origin.RestoreRoot, s.root, owner)
	}
	var found []string
	for _, c := range shown.Conflicts {
		for _, m := range regexp.MustCompile(`can rename or replace "([^"]*)"`).FindAllStringSubmatch(c.Current, -1) {
			found = append(found, filepath.Base(m[1]))
		}
		if c.Type != "authority_conflict" || !strings.Contains(c.Current, "user 4241 can rename or replace ") {
			t.Errorf("%+v", c)
		}
	}
	report := strings.ReplaceAll(reportOf(t, p), `\`, "") // paths have names with escapes
	for _, want := range append(slices.Clone(items), s.origin.RestoreRoot, s.root, ownerShown(owner)) {
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

// TestForeignRootMoves: a path that leads elsewhere while a preview is made is not a preview.
func TestForeignRootMoves(t *testing.T) {
	s := newScene(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), link))
	for _, given := range []string{link, filepath.Join(s.root, "gone"), filepath.Dir(s.root)} {
		s.origin.RestoreRoot = given
		if p, err := preview.New(t.Context(), s.restore(), s.request()); !errors.Is(err, preview.ErrUnsettled) || p != nil {
			t.Errorf("%q: %v, %v", given, p, err)
		}
	}
}
