package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// made makes directories with these owners and modes, one in the other, beneath a directory
// that no other user can rename, and returns the paths.
func made(t *testing.T, all ...holder) []string {
	t.Helper()
	path, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(path, 0o755))
	paths := []string{path}
	for n, h := range all {
		path = filepath.Join(path, fmt.Sprint(n))
		must(t, os.Mkdir(path, 0o700))
		must(t, os.Chown(path, h.uid, h.gid))
		must(t, unix.Chmod(path, h.mode))
		paths = append(paths, path)
	}
	return paths[1:]
}

type holder struct {
	uid, gid int
	mode     uint32
}

// looseOf returns the loose names on the path that are beneath the directory of the test.
func looseOf(t *testing.T, path string) []string {
	t.Helper()
	w, err := WayTo(path)
	must(t, err)
	var names []string
	for _, l := range w.Loose {
		names = append(names, fmt.Sprintf("%s by %s", filepath.Base(l.Path), l.By))
	}
	return names
}

const alice = 4241 // is in no table of accounts

// TestWayHolders: which users can rename a name, by the directory that contains it.
func TestWayHolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	root := holder{0, 0, 0o755}
	for name, test := range map[string]struct {
		holders []holder
		want    []string
	}{
		"own":                          {[]holder{root, root}, nil},
		"private to root":              {[]holder{{0, 0, 0o700}, {0, 0, 0o700}}, nil},
		"of another":                   {[]holder{{alice, alice, 0o755}, root}, []string{"1 by user 4241"}},
		"of another, who lacks bits":   {[]holder{{alice, alice, 0o500}, root}, []string{"1 by user 4241"}},
		"two of another":               {[]holder{{alice, alice, 0o755}, {alice, alice, 0o700}, root}, []string{"1 by user 4241", "2 by user 4241"}},
		"the root of another":          {[]holder{root, {alice, alice, 0o755}}, nil},
		"all may write":                {[]holder{{0, 0, 0o777}, root}, []string{"1 by every user"}},
		"others, not the group":        {[]holder{{0, 0, 0o757}, root}, []string{"1 by every user"}},
		"of another, all may write":    {[]holder{{alice, alice, 0o777}, root}, []string{"1 by every user"}},
		"sticky, own":                  {[]holder{{0, 0, 0o1777}, root}, nil},
		"sticky, of another":           {[]holder{{0, 0, 0o1777}, {alice, alice, 0o755}}, []string{"1 by user 4241"}},
		"sticky, and its owner":        {[]holder{{alice, 0, 0o1777}, root}, []string{"1 by user 4241"}},
		"sticky for the group":         {[]holder{{0, alice, 0o1775}, {alice, alice, 0o755}}, []string{"1 by user 4241"}},
		"a group with no known member": {[]holder{{0, alice, 0o775}, root}, []string{"1 by group 4241"}},
		"the group of root alone":      {[]holder{{0, 0, 0o775}, root}, nil},
		"setgid":                       {[]holder{{0, alice, 0o2775}, root}, []string{"1 by group 4241"}},
		"setgid, group may not write":  {[]holder{{0, alice, 0o2755}, root}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			paths := made(t, test.holders...)
			if got := looseOf(t, paths[len(paths)-1]); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestWayLinks: a link counts as much as what it leads through, wherever it leads.
func TestWayLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	safe := made(t, holder{0, 0, 0o755}, holder{0, 0, 0o755})
	theirs := made(t, holder{alice, alice, 0o755}, holder{0, 0, 0o755})
	shared := made(t, holder{0, 0, 0o1777})[0]
	link := func(target, name string, uid int) string {
		t.Helper()
		must(t, os.Symlink(target, name))
		must(t, os.Lchown(name, uid, uid))
		return name
	}
	in := func(dir, name string) string { return dir + "/" + name } // not cleaned
	link(safe[0], in(theirs[0], "out"), alice)
	for path, want := range map[string][]string{
		in(theirs[0], "out/1"):                                            {"out by user 4241"},
		link(safe[1], in(theirs[0], "roots"), 0):                          {"roots by user 4241"},
		link(safe[1], in(shared, "sticky"), alice):                        {"sticky by user 4241"},
		link(safe[1], in(shared, "own"), 0):                               nil,
		link(theirs[1], in(safe[0], "into"), 0):                           {"1 by user 4241"},
		link(in(theirs[0], "out/1"), in(safe[0], "through"), 0):           {"out by user 4241"},
		link(safe[1], in(safe[0], "odd"), alice):                          nil,
		in(theirs[1], "../out/1"):                                         {"1 by user 4241", "out by user 4241"},
		link(strings.Repeat("../", 30)+"."+safe[1], in(safe[0], "up"), 0): nil,
		in(theirs[0], "out/./1//"):                                        {"out by user 4241"},
		link(in(theirs[0], "out/../0/1"), in(safe[0], "there"), 0):        {"out by user 4241"},
		link(in(safe[0], "through/../1/."), in(theirs[0], "twice"), 0):    {"twice by user 4241", "out by user 4241"},
	} {
		if got := looseOf(t, path); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
		w, err := WayTo(path)
		must(t, err)
		d, err := OpenRoot(path)
		must(t, err)
		real, err := d.RealPath()
		if err != nil || w.Real != real || w.Missing || w.LeadsTo(d) != nil {
			t.Errorf("%q led to %q, %v, the kernel says %q, %v", path, w.Real, w.LeadsTo(d), real, err)
		}
		other, err := OpenRoot(shared)
		must(t, err)
		if err := w.LeadsTo(other); !errors.Is(err, ErrMoved) {
			t.Errorf("%q leads to another directory: %v", path, err)
		}
		must(t, errors.Join(d.Close(), other.Close()))
	}
}

// TestWayForeignLinks: a link that another user made, or can replace, is named; and what has
// come into the place of a directory is not opened.
func TestWayForeignLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	safe := made(t, holder{0, 0, 0o755}, holder{0, 0, 0o755})
	theirs, shared, all := made(t, holder{alice, alice, 0o755})[0], made(t, holder{0, 0, 0o1777})[0], made(t, holder{0, 0, 0o777})[0]
	link := func(target, dir, name string, uid int) string {
		t.Helper()
		must(t, os.Symlink(target, filepath.Join(dir, name)))
		must(t, os.Lchown(filepath.Join(dir, name), uid, uid))
		return filepath.Join(dir, name)
	}
	outer := link(safe[0], theirs, "outer", alice)
	for path, want := range map[string][]string{
		safe[1]:                               nil,
		link(safe[1], safe[0], "own", 0):      nil,
		link(safe[1], shared, "own", 0):       nil,
		link(safe[1], theirs, "roots", 0):     {"that user 4241 can replace"},
		link(safe[1], all, "roots", 0):        {"that every user can replace"},
		link(safe[1], safe[0], "odd", alice):  {"of user 4241"},
		link(safe[1], shared, "odd", alice):   {"of user 4241"},
		link(safe[1], all, "odd", alice):      {"of user 4241"},
		outer + "/1":                          {"of user 4241"},
		outer + "/missing":                    {"of user 4241"},
		link(outer, shared, "two", 0) + "/1":  {"of user 4241"},
		link(outer, all, "two", 0) + "/1":     {"that every user can replace", "of user 4241"},
		link("nowhere", theirs, "end", alice): {"of user 4241"},
	} {
		w, err := WayTo(path)
		must(t, err)
		var got []string
		for _, l := range w.Links {
			_, what, _ := strings.Cut(l.String(), "is a symbolic link ")
			got = append(got, what)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	w, err := WayTo(safe[1])
	must(t, err)
	d, err := w.Open()
	must(t, err)
	must(t, d.Close())
	must(t, os.Rename(safe[1], safe[1]+".away"))
	for what, replace := range map[string]func() error{
		"the same by a link": func() error { return os.Symlink(safe[1]+".away", safe[1]) },
		"another directory":  func() error { return os.Mkdir(safe[1], 0o700) },
	} {
		must(t, replace())
		if d, err := w.Open(); d != nil || !errors.Is(err, ErrMoved) {
			t.Errorf("%s: %v, %v", what, d, err)
		}
		must(t, os.Remove(safe[1]))
	}
}

// TestWayACL: the group bits of a directory with an access control list are its mask, so
// that they are not those of a private group.
func TestWayACL(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	paths := made(t, holder{0, 0, 0o775}, holder{0, 0, 0o755})
	// user::rwx user:4241:rwx group::r-x mask::rwx other::r-x
	acl := []byte("\x02\x00\x00\x00" + "\x01\x00\x07\x00\xff\xff\xff\xff" + "\x02\x00\x07\x00\x91\x10\x00\x00" +
		"\x04\x00\x05\x00\xff\xff\xff\xff" + "\x10\x00\x07\x00\xff\xff\xff\xff" + "\x20\x00\x05\x00\xff\xff\xff\xff")
	if got := looseOf(t, paths[1]); got != nil {
		t.Fatalf("%q without a list", got)
	}
	if err := unix.Setxattr(paths[0], "system.posix_acl_access", acl, 0); errors.Is(err, unix.ENOTSUP) {
		t.Skip("no access control lists here")
	} else if err != nil {
		t.Fatal(err)
	}
	if got := looseOf(t, paths[1]); !slices.Equal(got, []string{"1 by the users named in its access control list"}) {
		t.Errorf("%q", got)
	}
}

// TestWayMissing: what is not there yet counts as made by this user, in the directory that
// would hold it.
func TestWayMissing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	own, sticky, theirs := made(t, holder{0, 0, 0o755})[0], made(t, holder{0, 0, 0o1777})[0], made(t, holder{alice, alice, 0o755})[0]
	for dir, want := range map[string][]string{own: nil, sticky: nil, theirs: {"a by user 4241"}} {
		for _, rest := range []string{"a", "a/b/c"} {
			path := filepath.Join(dir, rest)
			w, err := WayTo(path)
			must(t, err)
			if got := looseOf(t, path); !slices.Equal(got, want) || !w.Missing || w.Real != path {
				t.Errorf("%q: %q, %+v", path, got, w)
			}
			d, err := OpenRoot(dir)
			must(t, err)
			if err := w.LeadsTo(d); !errors.Is(err, ErrMoved) {
				t.Errorf("what is missing leads somewhere: %v", err)
			}
			must(t, d.Close())
		}
	}
}

// TestWayRejects: no way is a wrong one.
func TestWayRejects(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	for path, want := range map[string]error{
		"":                                nil,
		"a":                               nil,
		filepath.Join(dir, "file/x"):      unix.ENOTDIR,
		filepath.Join(dir, "loop"):        unix.ELOOP,
		filepath.Join(dir, "loop", "x"):   unix.ELOOP,
		dir + "/" + string(longName(256)): ErrTooLong,
	} {
		w, err := WayTo(path)
		if err == nil || want != nil && !errors.Is(err, want) || w.Real != "" || w.Loose != nil || w.Links != nil {
			t.Errorf("%.80q: %+v, %v, want %v", path, w, err, want)
		}
	}
	if w, err := WayTo("/"); err != nil || w.Real != "/" || w.Loose != nil {
		t.Errorf("/: %+v, %v", w, err)
	}
}

func longName(n int) []byte {
	name := make([]byte, n)
	for i := range name {
		name[i] = 'x'
	}
	return name
}

// TestMembers: a group is private when its only members are known and trusted.
func TestMembers(t *testing.T) {
	passwd := "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n" +
		"carol:x:1002:100::/:\nbroken\nodd:x:one:two\n"
	group := "root:x:0:\nalice:x:1000:\nbob:x:1001:alice\nusers:x:100:alice,root\nempty:x:7:\nghost:x:8:nosuch\nself:x:9:alice\nbroken\n" +
		"twice:x:10:alice\ntwo:x:10:bob\n"
	for gid, want := range map[uint32][]uint32{
		0: {0}, 1000: {1000}, 1001: {1001, 1000}, 100: {1002, 1000, 0}, 7: nil, 9: {1000}, 10: {1000, 1001}, 4711: nil,
	} {
		if got, known := membersOf(gid, passwd, group); !slices.Equal(got, want) || !known {
			t.Errorf("group %d: %v, %v, want %v", gid, got, known, want)
		}
	}
	if got, known := membersOf(8, passwd, group); known || got != nil {
		t.Errorf("a member without a line of his own: %v, %v", got, known)
	}
	for p, want := range map[people]bool{
		{self: 4711, group: 4711}: true, {self: 4711, group: 100}: false, {self: 1000, group: 1000}: false, {self: 4712, group: 4711}: false,
	} {
		if got := p.isOwnGroup(4711, passwd); got != want {
			t.Errorf("%+v: %v", p, got)
		}
	}
	if p := (people{self: 1003, group: 1003}); p.isOwnGroup(1003, passwd+"dave:x:1003:100::/:\n") {
		t.Error("a user whose group the table knows to be another one")
	}
}

// TestUserNamespaceTable: the table of a user namespace, and that of the first one.
func TestUserNamespaceTable(t *testing.T) {
	for table, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"0 1000 1\n":                         false,
		"0 1000 1\n1 100000 65536\n":         true,
		"0 1000 1\n1 100000 65533\n":         false,
		"":                                   false,
	} {
		if got := isMapped(65534, table); got != want {
			t.Errorf("%q: %v", table, got)
		}
	}
	for p, want := range map[people]bool{{self: 1000, top: 1000}: false, {self: 1000, top: 65534}: true, {self: 65534, top: 65534}: true} {
		if p.trusts(65534) != want || !p.trusts(0) || !p.trusts(p.self) || p.trusts(4711) {
			t.Errorf("%+v", p)
		}
	}
}

// TestWayToMount: the path to a dead mount is returned without a request to its server, also at the
// end of a link and of a path with more slashes; another user's link is one of its links.
func TestWayToMount(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dead := filepath.Join(base, "dead")
	harness.DeadMount(t, dead)
	must(t, os.Symlink("dead/.", filepath.Join(base, "link")))
	must(t, os.Lchown(filepath.Join(base, "link"), 4241, 4241))
	t.Chdir(base)
	for _, path := range []string{dead, dead + "/", dead + "/.", "dead", "./dead//", "link", "link/"} {
		way, err := WayToMount(path)
		if err != nil || way.Real != dead || (len(way.Links) > 0) != strings.HasPrefix(path, "link") {
			t.Errorf("%q: %+v, %v", path, way, err)
		}
	}
	for _, path := range []string{dead, "link"} {
		if _, err := WayFrom(path); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if way, err := WayToMount(""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", way, err)
	}
}

// TestIsWithin: a path is within itself and what it is beneath, and not within what only begins as it does.
func TestIsWithin(t *testing.T) {
	for _, test := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b", "/", true}, {"/", "/", true}, {"/ab", "/a", false}, {"/a", "/a/b", false}, {"/", "/a", false},
	} {
		if got := IsWithin(test.path, test.dir); got != test.want {
			t.Errorf("%q in %q: %v", test.path, test.dir, got)
		}
	}
}
