package preview_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
)

// mallory is the other user; the test machine has no account for the number.
const mallory = 4241

// needRoot skips a test that gives files to another user.
func needRoot(t *testing.T) {
	t.Helper()
	if !machine.IsSuper() {
		t.Skip("only root can give a file to another user")
	}
}

// foreignOf returns the conflicts of a preview that have places, each as its items and its places.
func foreignOf(t *testing.T, p *preview.Preview) (found []string) {
	t.Helper()
	var shown struct {
		Conflicts []struct {
			Type   string   `json:"type"`
			Items  []string `json:"restore_ids"`
			Places []struct {
				Path  string `json:"path"`
				Kind  string `json:"kind"`
				By    string `json:"changed_by"`
				Owner uint32 `json:"owner"`
				Mode  string `json:"mode"`
			} `json:"places"`
		} `json:"conflicts"`
	}
	must(t, json.Unmarshal(jsonOf(t, p), &shown))
	for _, c := range shown.Conflicts {
		if len(c.Places) == 0 {
			continue
		}
		text := c.Type + " " + strings.Join(c.Items, ",")
		for _, p := range c.Places { // that of a parent has its own test
			text += fmt.Sprintf("; %s %s by %s, owner %d, mode %s", p.Kind, p.Path, p.By, p.Owner, p.Mode)
		}
		found = append(found, text)
	}
	return found
}

// TestPlacesOfOthers checks that a preview has an authority conflict for each output that goes through,
// or replaces, something that another user controls beneath the restore root.
func TestPlacesOfOthers(t *testing.T) {
	needRoot(t)
	theirs := func(t *testing.T, path string) { t.Helper(); must(t, os.Lchown(path, mallory, mallory)) }
	for name, test := range map[string]struct {
		prepare func(t *testing.T, s *scene)
		want    []string
	}{
		"nothing of others": {func(*testing.T, *scene) {}, nil},
		"a directory of another user": {func(t *testing.T, s *scene) {
			theirs(t, s.At("out"))
		}, []string{"authority_conflict R-001,R-002; directory out by user 4241, owner 4241, mode 0755"}},
		"nested directories of one user": {func(t *testing.T, s *scene) {
			theirs(t, s.At("out"))
			theirs(t, s.At("out/deep"))
			theirs(t, s.At("out/a"))
		}, []string{"authority_conflict R-001,R-002; directory out by user 4241, owner 4241, mode 0755; file out/a by user 4241, owner 4241, mode 0644"}},
		"the root itself": {func(t *testing.T, s *scene) {
			theirs(t, s.RestoreRoot)
		}, []string{"authority_conflict R-001,R-002,R-003; directory . by user 4241, owner 4241, mode 0755"}},
		"a directory that every user can write": {func(t *testing.T, s *scene) {
			must(t, os.Chmod(s.At("out/deep"), 0o777))
		}, []string{"authority_conflict R-002; directory out/deep by every user, owner 0, mode 0777"}},
		"a directory that a group can write": {func(t *testing.T, s *scene) {
			must(t, os.Lchown(s.At("out/deep"), 0, mallory))
			must(t, os.Chmod(s.At("out/deep"), 0o775))
		}, []string{"authority_conflict R-002; directory out/deep by group 4241, owner 0, mode 0775"}},
		"a shared directory with the sticky bit": {func(t *testing.T, s *scene) {
			must(t, os.Chmod(s.At("out"), 0o777|os.ModeSticky))
		}, nil},
		"a directory of another user in a shared one": {func(t *testing.T, s *scene) {
			must(t, os.Chmod(s.At("out"), 0o777|os.ModeSticky))
			theirs(t, s.At("out/deep"))
		}, []string{"authority_conflict R-002; name out/deep by user 4241, owner 4241, mode 0755; directory out/deep by user 4241, owner 4241, mode 0755"}},
		"a link of another user": {func(t *testing.T, s *scene) {
			must(t, os.Rename(s.At("out/deep"), s.At("out/real")))
			must(t, os.Symlink("real", s.At("out/deep")))
			theirs(t, s.At("out/deep"))
		}, []string{"authority_conflict R-002; link out/deep by user 4241, owner 4241, mode 0777"}},
		"a link through a directory of another user": {func(t *testing.T, s *scene) {
			must(t, os.Mkdir(s.At("between"), 0o755))
			must(t, os.Rename(s.At("out/deep"), s.At("between/real")))
			must(t, os.Symlink("../between/real", s.At("out/deep")))
			theirs(t, s.At("between"))
		}, []string{"authority_conflict R-002; directory between by user 4241, owner 4241, mode 0755"}},
		"a file of another user": {func(t *testing.T, s *scene) {
			theirs(t, s.At("out/a"))
		}, []string{"authority_conflict R-001; file out/a by user 4241, owner 4241, mode 0644"}},
		"two users": {func(t *testing.T, s *scene) {
			theirs(t, s.At("out/a"))
			must(t, os.Lchown(s.At("out/deep"), mallory+1, mallory+1))
		}, []string{
			"authority_conflict R-001; file out/a by user 4241, owner 4241, mode 0644",
			"authority_conflict R-002; directory out/deep by user 4242, owner 4242, mode 0755",
		}},
		"a missing directory": {func(t *testing.T, s *scene) {
			must(t, os.Remove(s.At("out/deep")))
			theirs(t, s.At("out"))
		}, []string{"authority_conflict R-001,R-002; directory out by user 4241, owner 4241, mode 0755"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"out/a": "new", "out/deep/b": "new", "top": "new"})
			s.Policy = restoretest.PolicyOf(t, []string{restoretest.ValidatorOf(s.Runs[0])}, nil)
			s.Asked.Replace = true
			must(t, os.MkdirAll(s.At("out/deep"), 0o755))
			must(t, os.WriteFile(s.At("out/a"), []byte("old"), 0o644))
			test.prepare(t, s)
			p := s.Preview()
			if found := foreignOf(t, p); !slices.Equal(found, test.want) {
				t.Errorf("got\n%s, want\n%s", strings.Join(found, "\n"), strings.Join(test.want, "\n"))
			}
			if _, err := approve(kept(t, p), s.Preview(), preview.Exactly); err != nil {
				t.Errorf("the preview cannot be approved as proposed: %v", err)
			}
		})
	}
}

// TestPlacesOfOthersAreShown checks that the report names the users and the places, and that a file
// which is replaced keeps its owner.
func TestPlacesOfOthersAreShown(t *testing.T) {
	needRoot(t)
	const account = 65534 // the user nobody has an account on most machines
	s := bareScene(t)
	s.Add("run-1", map[string]string{"out/a": "new", "out/deep/b": "new"})
	s.Asked.Replace = true
	must(t, os.MkdirAll(s.At("out/deep"), 0o755))
	must(t, os.WriteFile(s.At("out/a"), []byte("old"), 0o644))
	must(t, os.Lchown(s.At("out/a"), account, account))
	must(t, os.Lchown(s.At("out/deep"), account, account))
	who := machine.UserText(account)
	text := reportOf(t, s.Preview())
	for _, want := range []string{
		`"out/a" belongs to ` + who + ", before and after the commit",
		who + ` can rename or replace the entries of "out/deep", which belongs to ` + who,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not have %q:\n%s", want, text)
		}
	}
}

// TestPlaceChangesHands checks that a preview is stale once a directory on the way to an output has
// another owner, or another directory is in its place.
func TestPlaceChangesHands(t *testing.T) {
	needRoot(t)
	for name, change := range map[string]func(s *scene) error{
		"owner": func(s *scene) error { return os.Lchown(s.At("out"), mallory, mallory) },
		"exchanged": func(s *scene) error {
			if err := os.Rename(s.At("out"), s.At("away")); err != nil {
				return err
			}
			return os.Mkdir(s.At("out"), 0o755)
		},
		"link": func(s *scene) error {
			if err := os.Rename(s.At("out"), s.At("away")); err != nil {
				return err
			}
			return os.Symlink("away", s.At("out"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bareScene(t)
			s.Add("run-1", map[string]string{"out/a": "new"})
			must(t, os.MkdirAll(filepath.Dir(s.At("out/a")), 0o755))
			record := kept(t, s.Preview())
			must(t, change(s))
			if _, err := approve(record, s.Preview(), preview.Exactly); err == nil || !strings.Contains(err.Error(), `, "out" `) {
				t.Errorf("got %v, want an error that names \"out\"", err)
			}
		})
	}
}
