package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// strangeUID is a user who is neither root nor the member.
const strangeUID = 61005

// The ends of names of staging directories.
const (
	oursID      = "aaaaaaaa-2222-4333-8444-555555555550"
	damagedID   = "aaaaaaaa-2222-4333-8444-555555555551"
	ofRootID    = "aaaaaaaa-2222-4333-8444-555555555552"
	secretID    = "aaaaaaaa-2222-4333-8444-555555555553"
	strangersID = "bbbbbbbb-2222-4333-8444-55555555555"
)

// settle makes what a stranger may put into a root under the names of staging directories, and
// returns those that have a record of a journal.
func settle(t *testing.T, root string) (recorded []string) {
	t.Helper()
	plant(t, root, stagePrefix+strangersID+"0", stagePrefix+"x/")
	for i, perm := range []os.FileMode{0o700, 0o711, 0o755, 0o000} {
		for k, what := range []string{"nothing", "record", "unreadable", "FIFO", "halt"} {
			name := fmt.Sprintf("%s%d%s%d", resetPrefix, i, strangersID[1:], k)
			dir := filepath.Join(root, name)
			must(t, os.Mkdir(dir, 0o700))
			switch what {
			case "record":
				plant(t, dir, intentName)
			case "unreadable":
				must(t, os.WriteFile(filepath.Join(dir, intentName), nil, 0))
			case "FIFO":
				must(t, unix.Mkfifo(filepath.Join(dir, committedName), 0))
			case "halt":
				plant(t, dir, HaltedName)
			}
			if what != "nothing" {
				recorded = append(recorded, name)
			}
			must(t, os.Chmod(dir, perm))
		}
	}
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, strangeUID, strangeUID))
	}))
	return recorded
}

// TestForeignStaging: what a stranger puts into a root under the names of staging directories is
// nothing to an ordinary user, whatever its mode and whatever is in it. To root it is what its
// records make of it. What the user has made, or root, halts as before; Leftovers lists the same.
func TestForeignStaging(t *testing.T) {
	if dir := os.Getenv(asMember); dir != "" {
		plant(t, dir, stagePrefix+oursID+"/", stagePrefix+damagedID+"/"+intentName)
		must(t, os.Chmod(filepath.Join(dir, stagePrefix+oursID), 0o700))
		findsOnly(t, dir, stagePrefix+oursID, stagePrefix+damagedID, stagePrefix+ofRootID, stagePrefix+secretID)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as others")
	}
	dir := t.TempDir()
	recorded := settle(t, dir)
	findsOnly(t, dir, recorded...)
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chown(dir, memberUID, memberUID))
	plant(t, dir, stagePrefix+ofRootID+"/"+intentName, stagePrefix+secretID+"/")
	must(t, os.Chmod(filepath.Join(dir, stagePrefix+secretID), 0o700))
	must(t, os.Chmod(filepath.Join(dir, stagePrefix+ofRootID), 0o755))
	asMemberIn(t, "TestForeignStaging", dir)
}

// findsOnly requires that exactly these attempts stand in a root, in whatever order.
func findsOnly(t *testing.T, path string, want ...string) {
	t.Helper()
	slices.Sort(want)
	root := openRoot(t, path)
	l, err := enter(t.Context(), root, testKey, &sysHook{})
	must(t, err)
	defer l.Close()
	all, err := l.Unfinished()
	must(t, err)
	var got []string
	for _, u := range all {
		got = append(got, u.Staging)
	}
	slices.Sort(got)
	left, err := Leftovers(root)
	must(t, err)
	slices.Sort(left)
	if !slices.Equal(got, want) || !slices.Equal(left, want) {
		t.Errorf("unfinished are %q, left over are %q, not %q", got, left, want)
	}
}

// TestForeignJournalCannotBeVoided: the maker of a journal that cannot be believed has seen to it
// that its records cannot be renamed. A person releases the root nevertheless.
func TestForeignJournalCannotBeVoided(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	for _, name := range []string{"directory", "permission"} {
		t.Run(name, func(t *testing.T) {
			sc, _ := abandoned(t, allMoved)
			if name == "directory" {
				plant(t, sc.stage(), intentName+voidSuffix+"/in the way")
			}
			must(t, os.Chown(sc.stage(), strangeUID, -1))
			id, _ := attemptOf(filepath.Base(sc.stage()))
			recovers := func(mode Mode) ([]Outcome, error) {
				l, err := enter(t.Context(), sc.dir, testKey, hookedBy(func(op, path string, do func() error) error {
					if name == "permission" && op == "rename" && strings.HasSuffix(path, intentName) {
						return unix.EACCES
					}
					return do()
				}))
				must(t, err)
				defer l.Close()
				return l.recover(t.Context(), mode)
			}
			var halt *HaltError
			if _, err := recovers(Person); !errors.As(err, &halt) {
				t.Errorf("%v", err)
			}
			out, err := recovers(Acknowledged)
			must(t, err)
			if len(out) != 1 || out[0].Result != Released || !strings.Contains(out[0].Left.Error(), keptPrefix+id) {
				t.Errorf("%+v", out)
			}
			if _, err := os.Lstat(sc.at(keptPrefix + id + "/" + intentName)); err != nil {
				t.Error(err)
			}
			if again, err := recovers(Automatic); err != nil || len(again) > 0 {
				t.Errorf("then %v, %v", again, err)
			}
		})
	}
}
