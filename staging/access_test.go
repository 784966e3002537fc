package staging

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// Who a member is: an ordinary user, and two groups of his.
const (
	memberUID = 61001
	firstGID  = 61002
	otherGID  = 61003
	namedUID  = 61004 // has an entry in access lists
)

// list is an access list as the kernel takes it: the owner, a named user, the group,
// the mask and all others.
func list(owner, named, group, mask, other uint16) string {
	raw := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, owner, ^uint32(0)}, {2, named, namedUID}, {4, group, ^uint32(0)}, {16, mask, ^uint32(0)}, {32, other, ^uint32(0)}} {
		raw = binary.LittleEndian.AppendUint16(raw, e.tag)
		raw = binary.LittleEndian.AppendUint16(raw, e.perm)
		raw = binary.LittleEndian.AppendUint32(raw, e.id)
	}
	return string(raw)
}

// A garb is what a directory has that something made in it inherits.
type garb struct {
	setGID  int    // its group, and the bit; 0: neither
	forMore string // its default access list
}

// A wardrobe has the garbs of the root, of two directories beside each other in it, and
// of one below the second.
type wardrobe struct {
	root, plain, other, deep garb
	umask                    int
}

var (
	generous = list(7, 7, 7, 7, 5) // grants a user more than any mode
	closed   = list(7, 5, 0, 5, 0)
	readOnly = list(5, 5, 5, 5, 0) // takes writing from the owner
)

var wardrobes = map[string]wardrobe{
	"plain, umask 022":             {umask: 0o022},
	"plain, umask 077":             {umask: 0o077},
	"plain, umask takes the owner": {umask: 0o277},
	"setgid root":                  {root: garb{setGID: firstGID}, umask: 0o022},
	"setgid, another below":        {root: garb{setGID: firstGID}, plain: garb{setGID: firstGID}, other: garb{setGID: otherGID}, umask: 0o077},
	"setgid below only":            {other: garb{setGID: otherGID}, deep: garb{setGID: firstGID}, umask: 0o022},
	"default list":                 {root: garb{forMore: generous}, umask: 0o077},
	"default lists that differ":    {root: garb{forMore: generous}, other: garb{forMore: closed}, umask: 0o022},
	"default list below only":      {other: garb{forMore: generous}, deep: garb{forMore: closed}, umask: 0o022},
	"list that takes the owner":    {root: garb{forMore: readOnly}, other: garb{forMore: generous}, umask: 0o022},
	"both": {
		root: garb{firstGID, generous}, other: garb{otherGID, closed}, deep: garb{otherGID, generous}, umask: 0o077,
	},
}

// dressed makes a root with the directories of a wardrobe.
func (w wardrobe) dressed(t testing.TB, root string) {
	t.Helper()
	for _, d := range []struct {
		name string
		garb garb
	}{{"", w.root}, {"plain", w.plain}, {"other", w.other}, {"other/deep", w.deep}} {
		path := filepath.Join(root, d.name)
		must(t, os.MkdirAll(path, 0o755))
		for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
			if err := unix.Removexattr(path, name); err != nil && err != unix.ENODATA && err != unix.ENOTSUP {
				t.Fatal(err)
			}
		}
		must(t, os.Chown(path, os.Geteuid(), max(d.garb.setGID, os.Getegid())))
		perm := uint32(0o775)
		if d.garb.setGID != 0 {
			perm |= unix.S_ISGID
		}
		must(t, unix.Chmod(path, perm))
		if d.garb.forMore != "" {
			must(t, unix.Setxattr(path, "system.posix_acl_default", []byte(d.garb.forMore), 0))
		}
	}
}

// The files that are put into such a root, some of which make directories, and the
// artifacts. All directories that are made grant what their names say.
var (
	dressedFiles = []string{
		"top", "d700/a", "d700/d755/b", "d750/c", "plain/p", "plain/d755/q",
		"other/o", "other/d755/d750/r", "other/deep/s", "other/deep/d700/u",
	}
	dressedArtifacts = []string{"report", "other/report", "d750/report", "other/deep/report"}
)

func dressedPerm(path string) uint32 {
	var perm uint32
	if _, err := fmt.Sscanf(filepath.Base(path), "d%o", &perm); err != nil {
		return 0o755
	}
	return perm
}

// asTheKernelDoes makes the same in a twin, by plain calls at the final names: what is
// there then is what a restore should have made.
func asTheKernelDoes(t testing.TB, root string, files, artifacts []string) {
	t.Helper()
	slices.Sort(files)
	for i, name := range files {
		for _, up := range parents(mustParse(t, name)) {
			path := filepath.Join(root, up.String())
			if err := os.Mkdir(path, os.FileMode(dressedPerm(path))); err == nil {
				openToOwner(t, path, 0o700)
			} else if !os.IsExist(err) {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		must(t, err)
		must(t, f.Chmod(os.FileMode(permOf(i))))
		must(t, f.Close())
	}
	for _, name := range artifacts {
		f, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
		must(t, err)
		must(t, f.Close())
		openToOwner(t, filepath.Join(root, name), 0o400)
	}
}

func openToOwner(t testing.TB, path string, least uint32) {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	if st.Mode&least != least {
		must(t, unix.Chmod(path, st.Mode&0o7777|least))
	}
}

// accesses are who may do what with all that is beneath a root, the root too.
func accesses(t testing.TB, root string) map[string]pathsafe.Access {
	t.Helper()
	all := map[string]pathsafe.Access{}
	must(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		must(t, unix.Stat(path, &st))
		a := pathsafe.Access{Perm: st.Mode & 0o7777, GID: st.Gid}
		for name, into := range map[string]*string{"system.posix_acl_access": &a.ACL, "system.posix_acl_default": &a.Default} {
			buf := make([]byte, 1024)
			if n, err := unix.Getxattr(path, name, buf); err == nil {
				*into = string(buf[:n])
			}
		}
		all[strings.TrimPrefix(strings.TrimPrefix(path, root), "/")] = a
		return nil
	}))
	return all
}

func sameAccess(t testing.TB, want, got map[string]pathsafe.Access) {
	t.Helper()
	for path, a := range want {
		if b, ok := got[path]; !ok || a != b {
			t.Errorf("%q: %o %d %x %x, want %o %d %x %x", path, b.Perm, b.GID, b.ACL, b.Default, a.Perm, a.GID, a.ACL, a.Default)
		}
	}
	for path := range got {
		if _, ok := want[path]; !ok {
			t.Errorf("%q should not be there", path)
		}
	}
}

// dressedCommit is a restore into a root of a wardrobe, and what it has to look like.
func dressedCommit(t testing.TB, base string, w wardrobe) (sc *commitFixture, want map[string]pathsafe.Access) {
	t.Helper()
	root, twin := filepath.Join(base, "root"), filepath.Join(base, "twin")
	defer syscall.Umask(syscall.Umask(0))
	w.dressed(t, root)
	w.dressed(t, twin)
	syscall.Umask(w.umask)
	asTheKernelDoes(t, twin, slices.Clone(dressedFiles), dressedArtifacts)
	want = accesses(t, twin)
	must(t, os.RemoveAll(twin))
	syscall.Umask(0)
	sc = newCommitFixture(t, root, nil, slices.Clone(dressedFiles), dressedArtifacts)
	sc.spec.dirPerm = func(path pathsafe.Path) uint32 { return dressedPerm(path.String()) }
	for i := range sc.spec.artifacts {
		sc.spec.artifacts[i].Perm = 0o640
	}
	return sc, want
}

// commitDressed commits into every kind of root in a directory.
func commitDressed(t *testing.T, base string) {
	for name, w := range wardrobes {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(base, strings.ReplaceAll(name, " ", "-"))
			must(t, os.Mkdir(dir, 0o755))
			sc, want := dressedCommit(t, dir, w)
			defer syscall.Umask(syscall.Umask(w.umask))
			must(t, sc.commit())
			sameAccess(t, want, accesses(t, sc.root))
		})
	}
}

const asMember = "SPECTRUM_TEST_AS_MEMBER"

// TestAccess: what a commit makes has the mode, the group and the access lists that the
// kernel gives to what is made in the same directories: as root and as a member of the
// groups, on every file system.
func TestAccess(t *testing.T) {
	if dir := os.Getenv(asMember); dir != "" {
		t.Setenv("TMPDIR", dir)
		commitDressed(t, dir)
		return
	}
	for _, format := range []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, {Name: "overlay"}} {
		t.Run(format.Name, func(t *testing.T) {
			dir := volumeOf(t, format)
			must(t, os.Mkdir(filepath.Join(dir, "as-root"), 0o755))
			commitDressed(t, filepath.Join(dir, "as-root"))
			member := filepath.Join(dir, "as-member")
			must(t, os.Mkdir(member, 0o755))
			must(t, os.Chown(member, memberUID, memberUID))
			asMemberIn(t, "TestAccess", member)
		})
	}
}

// volumeOf mounts a file system that all users may look into.
func volumeOf(t *testing.T, format harness.Format) string {
	t.Helper()
	if format.Name != "overlay" {
		v := harness.MountedVolume(t, format)
		lookIn(t, v.Path)
		return v.Path
	}
	below := harness.MountedVolume(t, harness.Tmpfs).Path
	var options []string
	for _, part := range []string{"lowerdir", "upperdir", "workdir"} {
		must(t, os.Mkdir(filepath.Join(below, part), 0o755))
		options = append(options, part+"="+filepath.Join(below, part))
	}
	dir := t.TempDir()
	must(t, unix.Mount("overlay", dir, "overlay", 0, strings.Join(options, ",")))
	lookIn(t, dir)
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// lookIn opens a directory of this test to all users.
func lookIn(t *testing.T, dir string) {
	t.Helper()
	for ; filepath.Dir(dir) != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	must(t, os.Chmod(dir, 0o755))
}

// TestAccessSweep: a commit into a root with groups and access lists fails, or is killed,
// at every call: what is there then is as it was, or as it should be.
func TestAccessSweep(t *testing.T) {
	w := wardrobes["both"]
	base := scratch(t)
	n := 0
	fresh := func() (*commitFixture, map[string]pathsafe.Access, map[string]pathsafe.Access) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		must(t, os.Mkdir(dir, 0o755))
		sc, want := dressedCommit(t, dir, w)
		sc.lazy = true
		return sc, accesses(t, sc.root), want
	}
	defer syscall.Umask(syscall.Umask(w.umask))
	total := 0
	sc, _, _ := fresh()
	must(t, sc.run(func(op, path string, f func() error) error {
		total++
		return sc.lazily(op, path, f)
	}))
	for _, kill := range []bool{false, true} {
		for _, at := range tries(t, 40, total) {
			sc, before, after := fresh()
			calls := 0
			err := sc.run(func(op, path string, f func() error) error {
				calls++
				if calls == at || kill && calls > at {
					return syscall.EIO
				}
				return sc.lazily(op, path, f)
			})
			if _, err := sc.recover(Person); err != nil {
				t.Fatalf("call %d: %v", at, err)
			}
			want := before
			if _, seen := os.Lstat(filepath.Join(sc.root, "report")); seen == nil {
				want = after
			}
			sameAccess(t, want, accesses(t, sc.root))
			if t.Failed() {
				t.Fatalf("call %d of %d, kill %v: %v", at, total, kill, err)
			}
			must(t, os.RemoveAll(filepath.Dir(sc.root)))
		}
	}
	if sample.Now() == sample.Sweep && total < 100 {
		t.Errorf("%d calls are too few", total)
	}
}
