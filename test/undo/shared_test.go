package undo

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A member is an ordinary user who shares a directory with the group team; another user
// has an entry in its access list.
const (
	memberUser = 61001
	team       = 61002
	guest      = 61004
)

// defaultList is a default access list that grants the guest all that the group has.
func defaultList() string {
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{1, 7, ^uint32(0)}, {2, 7, guest}, {4, 7, ^uint32(0)}, {16, 7, ^uint32(0)}, {32, 0, ^uint32(0)}} {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(e[0]))
		raw = binary.LittleEndian.AppendUint16(raw, uint16(e[1]))
		raw = binary.LittleEndian.AppendUint32(raw, e[2])
	}
	return string(raw)
}

// A sharedRoot is a restore root that several people use, and who runs the program there.
type sharedRoot struct {
	*harness.Project
	root   string
	asUser bool
	umask  int
}

// newShared makes a root in a directory of a file system: root's and the team's, with the
// set-group-id bit, or a default access list, or both. One directory in it differs. Of an
// ordinary user all but the root itself is his.
func newShared(t *testing.T, dir string, setGID, list, asUser bool, umask int) *sharedRoot {
	t.Helper()
	top := filepath.Join(dir, "top")
	harness.Must(t, os.Mkdir(top, 0o755))
	s := &sharedRoot{harness.NewIn(t, top, files()), filepath.Join(dir, "root"), asUser, umask}
	defer syscall.Umask(syscall.Umask(0))
	for _, name := range []string{"", "out", "out/deep", "beside"} {
		path := filepath.Join(s.root, name)
		harness.Must(t, os.Mkdir(path, 0o775))
		owner := 0
		if asUser && name != "" { // he cannot make anew what is another one's
			owner = memberUser
		}
		harness.Must(t, os.Chown(path, owner, team))
		if setGID && name != "out/deep" {
			harness.Must(t, unix.Chmod(path, 0o2775))
		}
		if list && name != "out/deep" {
			harness.Must(t, unix.Setxattr(path, "system.posix_acl_default", []byte(defaultList()), 0))
		}
	}
	for _, name := range []string{"foreign.txt", "out/foreign.txt", "beside/private.txt"} {
		path := filepath.Join(s.root, name)
		harness.Must(t, os.WriteFile(path, []byte("not yours"), 0o640))
		if asUser {
			harness.Must(t, os.Chown(path, memberUser, team))
		}
	}
	if asUser {
		harness.Must(t, filepath.WalkDir(top, func(path string, _ os.DirEntry, err error) error {
			harness.Must(t, err)
			return os.Lchown(path, memberUser, memberUser)
		}))
	}
	return s
}

// run runs a command of the program that must succeed.
func (s *sharedRoot) run(t *testing.T, into any, args ...string) {
	t.Helper()
	argv := s.Argv(args...)
	script := fmt.Sprintf(`umask %03o; exec "$@"`, s.umask)
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, argv...)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &stdout, &stderr
	cmd.Env = append(os.Environ(), "HOME=/")
	if s.asUser {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: memberUser, Gid: memberUser, Groups: []uint32{team}}}
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v: %s%s", args, err, &stdout, &stderr)
	}
	if into != nil {
		harness.Must(t, json.Unmarshal(stdout.Bytes(), into))
	}
}

// sight is all that is beneath the root, with owners and access lists. Directories have
// no time in it.
func (s *sharedRoot) sight(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	tree := harness.MustTake(t, s.root)
	for name, thing := range tree {
		thing.Inode, thing.Links = 0, 0
		if strings.HasPrefix(name, "RESTORE_") {
			thing.Modified = 0
		}
		seen[name] = fmt.Sprintf("%+v", thing)
		for _, list := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
			buf := make([]byte, 512)
			if n, err := unix.Lgetxattr(filepath.Join(s.root, name), list, buf); err == nil {
				seen[name] += fmt.Sprintf(" %s %x", list, buf[:n])
			}
		}
	}
	return seen
}

func differ(was, is map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if was[name] != is[name] {
			all = append(all, fmt.Sprintf("%q\n\twas %s\n\tis  %s", name, was[name], is[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[name]; !ok {
			all = append(all, fmt.Sprintf("%q is new: %s", name, is[name]))
		}
	}
	return strings.Join(all, "\n")
}

func (s *sharedRoot) is(t *testing.T, what string, want map[string]string) {
	t.Helper()
	if d := differ(want, s.sight(t)); d != "" {
		t.Errorf("%s: not as it was:\n%s", what, d)
	}
}

func (s *sharedRoot) commit(t *testing.T) {
	t.Helper()
	var shown struct {
		ID string `json:"preview_id"`
	}
	s.run(t, &shown, "preview", "--json", "--restore-root", s.root, s.Runs[0].Dir)
	s.run(t, nil, "commit", "--preview", shown.ID, "--approve", harness.Statement)
}

// newest is the savepoint and the id of the commit that was made last.
func (s *sharedRoot) newest(t *testing.T) (savepoint, commit string) {
	t.Helper()
	var list struct {
		Savepoints []struct{ ID, Attempt string } `json:"savepoints"`
	}
	s.run(t, &list, "savepoint", "list", "--json", s.root)
	if len(list.Savepoints) == 0 {
		t.Fatal("there is no savepoint")
	}
	return list.Savepoints[0].ID, list.Savepoints[0].Attempt
}

func (s *sharedRoot) rollBack(t *testing.T) {
	t.Helper()
	_, commit := s.newest(t)
	s.run(t, nil, "rollback", commit)
}

func (s *sharedRoot) verify(t *testing.T) {
	t.Helper()
	savepoint, _ := s.newest(t)
	s.run(t, nil, "savepoint", "verify", savepoint)
}

// everyWay goes every way there and back.
func (s *sharedRoot) everyWay(t *testing.T) {
	before := s.sight(t)
	s.commit(t)
	after := s.sight(t)
	if len(after) <= len(before) {
		t.Fatal("nothing was restored")
	}
	s.verify(t)
	s.rollBack(t)
	s.is(t, "rollback", before)
	s.commit(t)
	s.is(t, "commit again", after)
	var taken struct{ ID string }
	s.run(t, &taken, "snapshot", "take", "--json", s.root)
	s.rollBack(t)
	s.run(t, nil, "snapshot", "restore", taken.ID)
	s.is(t, "snapshot restored", after)
	s.run(t, nil, "recover", s.root)
	s.run(t, nil, "rollback", "--emergency", s.root)
	s.is(t, "rollback --emergency", after)
	s.verify(t)
	s.run(t, nil, "audit", "verify")
}

// TestSharedRoots: in a root with the set-group-id bit or a default access list a commit
// and every rollback and snapshot restore work, as root and as a member of the group who does not own the
// root, also with a umask of 077; what was there is there again with its owners and lists.
func TestSharedRoots(t *testing.T) {
	type how struct {
		format       harness.Format
		setGID, list bool
		asUser       bool
		umask        int
	}
	var all []how
	for _, format := range []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, {Name: "overlay"}} {
		all = append(all, how{format, true, false, false, 0o022}, how{format, false, true, false, 0o077}, how{format, true, true, false, 0o077},
			how{format, true, false, true, 0o077}, how{format, false, true, true, 0o022}, how{format, true, true, true, 0o077})
	}
	for _, h := range sample.Pick(t, 3, all) {
		t.Run(fmt.Sprintf("%s-setgid-%v-list-%v-user-%v-umask-%03o", h.format.Name, h.setGID, h.list, h.asUser, h.umask), func(t *testing.T) {
			t.Parallel()
			newShared(t, sharedVolume(t, h.format), h.setGID, h.list, h.asUser, h.umask).everyWay(t)
		})
	}
}

func sharedVolume(t *testing.T, format harness.Format) string {
	t.Helper()
	var dir string
	if format.Name == "overlay" {
		dir = harness.MountedOverlay(t)
	} else {
		dir = harness.MountedVolume(t, format).Path
	}
	for up := dir; up != filepath.Clean(os.TempDir()); up = filepath.Dir(up) {
		harness.Must(t, os.Chmod(up, 0o755))
	}
	harness.Must(t, os.Chmod(os.TempDir(), 0o755))
	return dir
}

// TestSharedRootKilled kills a commit and a rollback in such a root at their calls: after
// recover all is as it was, or as it should be, with owners and lists.
func TestSharedRootKilled(t *testing.T) {
	dir := sharedVolume(t, harness.Tmpfs)
	s := newShared(t, dir, true, true, false, 0o022)
	before := s.sight(t)
	s.commit(t)
	after := s.sight(t)
	s.rollBack(t)
	stride := sample.Thin(t, 40, 3)
	for _, what := range []string{"commit", "rollback"} {
		for i := 0; ; i++ {
			n := stride.At(i)
			var args []string
			if what == "commit" {
				var shown struct {
					ID string `json:"preview_id"`
				}
				s.run(t, &shown, "preview", "--json", "--restore-root", s.root, s.Runs[0].Dir)
				args = harness.CommitArgs(shown.ID)
			} else {
				if differ(after, s.sight(t)) != "" {
					s.commit(t)
				}
				_, commit := s.newest(t)
				args = []string{"rollback", "--json", commit}
			}
			r := s.Run(t, harness.Killing(n, func(c sysfault.Call) bool {
				return harness.Changing(c) && harness.Inside(c.Path, s.root)
			}), args...)
			s.run(t, nil, "recover", s.root)
			is := s.sight(t)
			if differ(before, is) != "" && differ(after, is) != "" {
				t.Fatalf("%s killed at call %d:\n%s\nor\n%s", what, n, differ(before, is), differ(after, is))
			}
			if what == "commit" && differ(after, is) == "" {
				s.rollBack(t)
				s.is(t, "rollback after a kill", before)
			}
			if !r.Killed() {
				break
			}
		}
	}
}
