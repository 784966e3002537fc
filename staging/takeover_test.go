package staging

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// A veteran is a file that is replaced, and what is to be left out of it, as root and as a member
// of two groups who owns the directory.
type veteran struct {
	uid, gid                 int // 0: those of the directory
	perm                     uint32
	xattrs                   map[string]string
	outOfRoot, outOfMember   []string
	plainUID, plainGID, bare bool // what the member does not get; none of its user attributes
}

const strangeGID = 61009 // of which the member is none

// capability lets a program bind to low ports, as the kernel takes it.
var capability = func() string {
	raw := binary.LittleEndian.AppendUint32(nil, 0x02000000)
	raw = binary.LittleEndian.AppendUint32(raw, 1<<10)
	return string(append(raw, make([]byte, 12)...))
}()

var veterans = map[string]veteran{
	"plain":     {perm: 0o640},
	"noted":     {perm: 0o600, xattrs: map[string]string{"user.note": "a", "user.other": ""}},
	"listed":    {perm: 0o664, xattrs: map[string]string{accessList: generous, "user.note": "b"}},
	"in/listed": {perm: 0o664, xattrs: map[string]string{accessList: closed}},
	"in/group":  {gid: otherGID, perm: 0o664},
	"set-id":    {perm: 0o6755, outOfRoot: []string{ofSetID}, outOfMember: []string{ofSetID}},
	"capable": {
		perm: 0o755, xattrs: map[string]string{"security.capability": capability},
		outOfRoot: []string{"security.capability"}, outOfMember: []string{"security.capability"},
	},
	"labelled": {perm: 0o644, xattrs: map[string]string{"security.note": "l"}, outOfMember: []string{"security.note"}},
	"theirs": {
		uid: namedUID, gid: otherGID, perm: 0o644, xattrs: map[string]string{"user.note": "c", accessList: generous},
		outOfMember: []string{ofOwner}, plainUID: true,
	},
	"in/secret": {
		uid: namedUID, gid: strangeGID, perm: 0o600, xattrs: map[string]string{"user.note": "d"},
		outOfMember: []string{"user.note", ofGroup, ofOwner}, plainUID: true, plainGID: true, bare: true,
	},
}

// enlist makes a root with all veterans in it, that belongs to a user.
func enlist(t testing.TB, root string, uid int, g garb) {
	t.Helper()
	for _, dir := range []string{root, filepath.Join(root, "in")} {
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.Chown(dir, uid, max(g.setGID, uid)))
		perm := uint32(0o775)
		if g.setGID != 0 {
			perm |= unix.S_ISGID
		}
		must(t, unix.Chmod(dir, perm))
		if g.forMore != "" {
			must(t, unix.Setxattr(dir, "system.posix_acl_default", []byte(g.forMore), 0))
		}
	}
	plant(t, root, slices.Sorted(maps.Keys(veterans))...)
	for name, v := range veterans {
		path := filepath.Join(root, name)
		if err := unix.Removexattr(path, accessList); err != nil && err != unix.ENODATA {
			t.Fatal(err)
		}
		owner, group := uid, uid
		if v.uid != 0 {
			owner = v.uid
		}
		if v.gid != 0 {
			group = v.gid
		}
		must(t, os.Chown(path, owner, group))
		must(t, unix.Chmod(path, v.perm))
		for _, name := range slices.Sorted(maps.Keys(v.xattrs)) {
			must(t, unix.Setxattr(path, name, []byte(v.xattrs[name]), 0))
		}
	}
}

// rollCall is what each veteran, or what has taken its place, has beside its content.
func rollCall(t testing.TB, root string, inodes bool) map[string]string {
	t.Helper()
	d := openRoot(t, root)
	all := map[string]string{}
	for name := range veterans {
		p := mustParse(t, name)
		in, err := d.OpenParent(p, depth(p)-1)
		must(t, err)
		m, denied, err := (on(in, &sysHook{})).metadataOf(p.Base())
		must(t, err)
		st, err := in.Lstat(p.Base())
		must(t, err)
		must(t, in.Close())
		m.Xattrs = slices.DeleteFunc(m.Xattrs, func(x pathsafe.Xattr) bool { return x.Name == accessListOfXFS })
		text := fmt.Sprintf("%04o %d:%d %v %v", m.Mode, m.UID, m.GID, m.Xattrs, denied)
		if inodes {
			text += fmt.Sprintf(" ino %d %v", st.ID.Ino, m.ModTime)
		}
		all[name] = text
	}
	return all
}

func sameRoll(t testing.TB, want, got map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] != got[name] {
			t.Errorf("%q has\n\t%q, want\n\t%q", name, got[name], want[name])
		}
	}
}

// discharge is what is to be there after all veterans were replaced, and what is left out.
func discharge(t testing.TB, sc *commitFixture) (want map[string]string, out []string) {
	t.Helper()
	want, root := map[string]string{}, os.Geteuid() == 0
	for i, f := range sc.spec.files {
		name, perm := f.Path.String(), permOf(i)
		v := veterans[name]
		uid, gid := int(f.old.UID), int(f.old.GID)
		var dir unix.Stat_t
		must(t, unix.Stat(filepath.Dir(filepath.Join(sc.root, name)), &dir))
		left := v.outOfRoot
		if !root {
			left = v.outOfMember
			if v.plainUID {
				uid = os.Geteuid()
			}
			if v.plainGID {
				gid = os.Getegid()
				if dir.Mode&unix.S_ISGID != 0 {
					gid = int(dir.Gid)
				}
			}
		}
		var xattrs []pathsafe.Xattr
		for _, x := range slices.Sorted(maps.Keys(v.xattrs)) {
			value := []byte(v.xattrs[x])
			if slices.Contains(left, x) {
				continue
			}
			if x == accessList { // the bits of its owner, of the mask and of all others are those of the mode
				value = bytes.Clone(value)
				value[4+2], value[4+3*8+2], value[4+4*8+2] = byte(perm>>6&7), byte(perm>>3&7), byte(perm&7)
			}
			xattrs = append(xattrs, pathsafe.Xattr{Name: x, Value: string(value)})
		}
		want[name] = fmt.Sprintf("%04o %d:%d %v %v", perm, uid, gid, xattrs, []LeftOut(nil))
		for _, what := range left {
			out = append(out, name+": "+what)
		}
	}
	return want, out
}

// recruit is a commitFixture in which all veterans are replaced.
func recruit(t testing.TB, root string) *commitFixture {
	t.Helper()
	sc := newCommitFixture(t, root, nil, slices.Collect(maps.Keys(veterans)), []string{"RESTORE_REPORT.json"})
	for i := range sc.spec.files {
		st, err := sc.dir.StatPath(sc.spec.files[i].Path, pathsafe.LinksBeneath)
		must(t, err)
		sc.spec.files[i].old = &st
	}
	return sc
}

// replaceVeterans replaces the veterans in a root: first it fails late, and all is as it was; then
// it succeeds, by itself or, if it is killed when it is committed, by a recovery.
func replaceVeterans(t *testing.T, root string, killed bool) {
	t.Helper()
	ctx := t.Context()
	sc := recruit(t, root)
	sc.spec.workers = 4
	before := rollCall(t, root, true)
	sc.hook = failCheck("theirs", 2)
	if e := wantStep(t, sc.commit(), StepVerify, "theirs"); e.Rollback != nil {
		t.Fatal(e)
	}
	sameRoll(t, before, rollCall(t, root, true))
	sc.hook = nil

	want, out := discharge(t, sc)
	in := func(do func(l *session)) {
		l, err := enter(ctx, sc.dir, testKey, &sysHook{})
		must(t, err)
		defer l.Close()
		do(l)
	}
	in(func(l *session) {
		tx, err := l.PlanLocked(ctx, sc.spec.change())
		must(t, err)
		defer tx.a.close()
		must(t, errors.Join(tx.Begin(), tx.Stage(ctx, nil), tx.Move(ctx)))
		sameLeftOut(t, out, tx.LeftOut())
		if killed {
			must(t, errors.Join(tx.a.run(tx.a.makeArtifacts), tx.a.enterCommitted()))
		} else {
			must(t, errors.Join(tx.Commit(), tx.Close()))
		}
	})
	in(func(l *session) {
		all, err := l.Unfinished()
		if err != nil || (len(all) == 1) != killed {
			t.Fatal(all, err)
		}
		for _, u := range all {
			defer u.Close()
			if end, err := u.Resolve(ctx, Automatic); err != nil || end.Result != Completed {
				t.Fatal(end, err)
			}
			sameLeftOut(t, out, u.LeftOut())
			_, err = u.Forget()
			must(t, err)
		}
	})
	sameRoll(t, want, rollCall(t, root, false))
}

func sameLeftOut(t testing.TB, want []string, left []LeftOut) {
	t.Helper()
	var got []string
	for _, l := range left {
		got = append(got, l.Path.String()+": "+l.What)
		if l.Why == nil || l.Why.Error() == "" {
			t.Errorf("%v has no reason", l)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("left out: %q, want %q", got, want)
	}
}

// The roots with veterans, and whether the commit in them is killed.
var barracks = map[string]struct {
	garb   garb
	killed bool
}{
	"plain":  {garb{}, false},
	"killed": {garb{setGID: firstGID}, true},
	"both":   {garb{otherGID, readOnly}, false},
	"listed": {garb{forMore: generous}, true},
}

// replaceInBarracks does it in all of them, which stand in a directory.
func replaceInBarracks(t *testing.T, dir string) {
	t.Helper()
	defer syscall.Umask(syscall.Umask(0o077))
	for _, name := range slices.Sorted(maps.Keys(barracks)) {
		t.Run(name, func(t *testing.T) { replaceVeterans(t, filepath.Join(dir, name), barracks[name].killed) })
	}
}

// TestReplaceTakesOver: a file that takes the place of another one has its owner, group, access
// list and extended attributes, with its own permission bits, and no set-id bits and capabilities.
// What the user may not give is left out, and named. As root and as a member of the groups, on
// every file system.
func TestReplaceTakesOver(t *testing.T) {
	if dir := os.Getenv(asMember); dir != "" {
		t.Setenv("TMPDIR", dir)
		replaceInBarracks(t, dir)
		return
	}
	for _, format := range []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, {Name: "overlay"}} {
		t.Run(format.Name, func(t *testing.T) {
			dir := volumeOf(t, format)
			for who, uid := range map[string]int{"as-root": 0, "as-member": memberUID} {
				at := filepath.Join(dir, who)
				must(t, os.Mkdir(at, 0o755))
				must(t, os.Chown(at, uid, uid))
				for name, b := range barracks {
					enlist(t, filepath.Join(at, name), uid, b.garb)
				}
			}
			replaceInBarracks(t, filepath.Join(dir, "as-root"))
			asMemberIn(t, "TestReplaceTakesOver", filepath.Join(dir, "as-member"))
		})
	}
}

// asMemberIn runs a test as a member of the groups, in a directory that is his.
func asMemberIn(t *testing.T, name, dir string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+name+"$")
	cmd.Dir, cmd.Env = "/", []string{asMember + "=" + dir, "TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{
		Uid: memberUID, Gid: memberUID, Groups: []uint32{firstGID, otherGID},
	}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as a member: %v\n%s", err, out)
	}
}

// TestReplaceInLowerLayer: the same of files in the lower layer of an overlay, which are copied up
// before they are looked at.
func TestReplaceInLowerLayer(t *testing.T) {
	below := harness.MountedVolume(t, harness.Tmpfs).Path
	enlist(t, filepath.Join(below, "lower"), 0, garb{forMore: generous})
	plant(t, below, "up/", "work/")
	root := filepath.Join(t.TempDir(), "root")
	must(t, os.Mkdir(root, 0o755))
	must(t, unix.Mount("overlay", root, "overlay", 0, "lowerdir="+below+"/lower,upperdir="+below+"/up,workdir="+below+"/work"))
	t.Cleanup(func() { must(t, unix.Unmount(root, unix.MNT_DETACH)) })
	sc := recruit(t, root)
	l, err := enter(t.Context(), sc.dir, testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	must(t, l.CopyUp(sc.spec.change().Swaps))
	l.Close()
	replaceVeterans(t, root, true)
}

// TestReplacedMetadataChanges: what another process changes of a file's owner, mode or attributes
// before it is replaced undoes the commit, and stays.
func TestReplacedMetadataChanges(t *testing.T) {
	const note = "user.note"
	for name, change := range map[string]func(at string) error{
		"mode":              func(at string) error { return os.Chmod(at, 0o640) },
		"owner":             func(at string) error { return os.Chown(at, namedUID, 0) },
		"group":             func(at string) error { return os.Chown(at, 0, otherGID) },
		"access list":       func(at string) error { return unix.Setxattr(at, accessList, []byte(generous), 0) },
		"attribute":         func(at string) error { return unix.Setxattr(at, note, []byte("new"), 0) },
		"another attribute": func(at string) error { return unix.Setxattr(at, note+"s", nil, 0) },
		"none":              func(at string) error { return unix.Removexattr(at, note) },
	} {
		for _, call := range []string{"make directory new", "exchange keep"} {
			t.Run(name+", before "+call, func(t *testing.T) {
				sc := replaceCommit(t, filepath.Join(scratch(t), "root"))
				at := sc.at("existing/keep")
				must(t, unix.Setxattr(at, note, []byte("old"), 0))
				want, changed := "", take(t, sc.root)
				err := sc.run(before(call, func() {
					must(t, change(at))
					want, changed = metadataText(t, at), take(t, sc.root)
				}))
				if e := wantStep(t, err, StepFinalize, "existing/keep"); e.Rollback != nil || want == "" {
					t.Error(e)
				}
				if got := metadataText(t, at); got != want {
					t.Errorf("it has %s, want %s", got, want)
				}
				foreignKept(t, picture{"existing/keep": changed["existing/keep"]}, sc.root)
			})
		}
	}
}

// TestTakenOverIsChecked: what another process takes away of what a file has taken over, before all
// names are looked up afresh, undoes the commit; what it adds does not.
func TestTakenOverIsChecked(t *testing.T) {
	const note = "user.note"
	for name, c := range map[string]struct {
		do func(at string) error
		ok bool
	}{
		"owner":             {func(at string) error { return os.Chown(at, memberUID, otherGID) }, false},
		"attribute":         {func(at string) error { return unix.Setxattr(at, note, []byte("new"), 0) }, false},
		"none":              {func(at string) error { return unix.Removexattr(at, note) }, false},
		"another attribute": {func(at string) error { return unix.Setxattr(at, note+"s", nil, 0) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := replaceCommit(t, filepath.Join(scratch(t), "root"))
			at := sc.at("existing/keep")
			must(t, os.Chown(at, namedUID, otherGID))
			must(t, unix.Setxattr(at, note, []byte("old"), 0))
			st, err := sc.dir.StatPath(mustParse(t, "existing/keep"), pathsafe.LinksBeneath)
			must(t, err)
			sc.spec.files[0].old = &st
			was := take(t, sc.root)
			err = sc.run(before("open existing/keep", func() { must(t, c.do(at)) }))
			if c.ok {
				must(t, err)
				return
			}
			if e := wantStep(t, err, StepVerify, "existing/keep"); e.Rollback != nil {
				t.Error(e)
			}
			sameTree(t, was, sc.root)
		})
	}
}

// metadataText is what a file has beside its content.
func metadataText(t testing.TB, at string) string {
	t.Helper()
	m, denied, err := (on(openRoot(t, filepath.Dir(at)), &sysHook{})).metadataOf(filepath.Base(at))
	must(t, err)
	return fmt.Sprint(m, denied)
}
