package fusemount

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/fusefs"
	"golang.org/x/sys/unix"
)

func TestMountpointRejected(t *testing.T) {
	dir := mountDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.WriteFile(at("file"), nil, 0o644),
		unix.Mkfifo(at("fifo"), 0o644),
		os.Mkdir(at("full"), 0o755),
		os.WriteFile(at("full/.hidden"), nil, 0o644),
		os.Mkdir(at("tmpfs"), 0o755),
		os.Mkdir(at("empty"), 0o755),
		os.Symlink("full", at("to-full")),
		os.Symlink("nowhere", at("dangling")),
		os.Symlink("loop", at("loop")))
	if err != nil {
		t.Fatal(err)
	}
	mountOther(t, "tmpfs", at("tmpfs"))
	c := serveView(t, orders{Source: source(t), Mountpoint: at("empty")})
	tree := oneFile(t)
	for _, test := range []struct {
		path string
		want error
	}{
		{at("file"), ErrNotDirectory},
		{at("file/x"), ErrNotDirectory},
		{at("fifo"), ErrNotDirectory},
		{at("nothing"), fs.ErrNotExist},
		{"", fs.ErrNotExist},
		{at("dangling"), fs.ErrNotExist},
		{at("loop"), unix.ELOOP},
		{at("full"), ErrNotEmpty},
		{at("to-full"), ErrNotEmpty},
		{at("tmpfs"), ErrAlreadyMounted},
		{c.mount, ErrAlreadyMounted},
		{c.mount + "/a", ErrNotEmpty},
		{"/", ErrAlreadyMounted},
		{"/proc/self", ErrNotEmpty},
	} {
		before := spectrumMounts("")
		for what, err := range map[string]error{
			"CheckMountpoint": CheckMountpoint(test.path),
			"Mount":           mountFails(tree, test.path),
		} {
			var e *MountpointError
			if !errors.Is(err, test.want) || !errors.As(err, &e) {
				t.Errorf("%s(%q): %v, want %v", what, test.path, err, test.want)
			}
		}
		if after := spectrumMounts(""); len(after) > len(before) {
			t.Errorf("%q: something was mounted", test.path)
		}
	}
	if err := CheckMountpoint(at("to-full")); !strings.Contains(err.Error(), `"`+at("full")+`"`) {
		t.Errorf("%v does not name the real path", err)
	}
}

func mountFails(tree *fusefs.Tree, path string) error {
	v, err := Mount(tree, path, Options{})
	if err == nil {
		return v.Unmount(unmountNow(), 0)
	}
	return err
}

func TestMountThroughSymlink(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(dir+"/real", 0o755), os.Symlink("real", dir+"/link")); err != nil {
		t.Fatal(err)
	}
	if err := CheckMountpoint(dir + "/link"); err != nil {
		t.Fatal(err)
	}
	src := source(t)
	c := serveView(t, orders{Source: src, Mountpoint: dir + "/link"})
	if c.mount != dir+"/real" {
		t.Errorf("mounted on %q", c.mount)
	}
	client(t, "diff", "-r", src, dir+"/real")
	if err := Unmount(dir + "/link"); err != nil {
		t.Error(err)
	}
	c.exit(0)
}

func TestMountUnavailable(t *testing.T) {
	dir := t.TempDir()
	for name, sys := range map[string]system{
		"no device":              {device: dir + "/fuse", direct: true},
		"no device, with helper": {device: dir + "/fuse", helper: findHelper()},
		"no helper":              {device: "/dev/fuse"},
	} {
		mp := mountDir(t)
		_, err := mountWith(sys, oneFile(t), mp, Options{})
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
		if err := CheckMountpoint(mp); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMountHelperFails: the output of the helper is in the error, and nothing stays mounted.
func TestMountHelperFails(t *testing.T) {
	for name, script := range map[string]string{
		"says why":      "echo 'fusermount3: option allow_other only allowed if' >&2; exit 1",
		"sends nothing": "exit 0",
		"sends a byte":  "printf x >&3; exit 0",
	} {
		helper := filepath.Join(t.TempDir(), "fusermount3")
		if err := os.WriteFile(helper, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		mp := mountDir(t)
		_, err := mountWith(system{device: "/dev/fuse", helper: helper}, oneFile(t), mp, Options{})
		if err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "says why" && !strings.Contains(err.Error(), "allow_other only allowed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMountHelperGetsNothing: no environment of ours, and no descriptor of ours
// but the socket. What the test itself was started with does not count.
func TestMountHelperGetsNothing(t *testing.T) {
	t.Setenv("SECRET", "secret")
	dir := t.TempDir()
	helper := filepath.Join(dir, "fusermount3")
	script := "#!/bin/sh\nls /proc/$$/fd >" + dir + "/fds\ntr '\\0' '\\n' </proc/$$/environ >" + dir + "/env\n" +
		`[ "$1" = probe ] || exec ` + findHelper() + ` "$@"` + "\n"
	if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := func(name string) []string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(data))
	}
	client(t, helper, "probe")
	inherited := lines("fds")
	check := func(when string, want []string, env ...string) {
		if got := lines("fds"); !slices.Equal(got, want) {
			t.Errorf("%s: descriptors %q, inherited %q", when, got, inherited)
		}
		if got := lines("env"); !slices.Equal(got, env) {
			t.Errorf("%s: environment %q, want %q", when, got, env)
		}
	}
	v, err := mountWith(system{device: "/dev/fuse", helper: helper}, oneFile(t), mountDir(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	withSocket := inherited
	if !slices.Contains(inherited, "3") {
		withSocket = slices.Sorted(slices.Values(append(withSocket, "3"))) // as ls does
	}
	check("mount", withSocket, "LC_ALL=C", "_FUSE_COMMFD=3")
	if err := v.Unmount(unmountNow(), 0); err != nil {
		t.Fatal(err)
	}
	check("unmount", inherited, "LC_ALL=C")
}

// TestMountLaxHelper: a helper that forgets the flags is found out, and what it
// mounted is removed.
func TestMountLaxHelper(t *testing.T) {
	for _, drop := range []string{"ro,", "nosuid,", "nodev,", "noexec,", "default_permissions,"} {
		helper := filepath.Join(t.TempDir(), "fusermount3")
		script := "#!/bin/sh\n" +
			`if [ "$1" = -u ]; then exec ` + findHelper() + ` "$@"; fi` + "\n" +
			`exec ` + findHelper() + ` -o "$(printf %s "$2" | sed s/` + drop + `//)` + map[bool]string{true: ",suid", false: ""}[drop == "nosuid,"] +
			map[bool]string{true: ",dev", false: ""}[drop == "nodev,"] + `" -- "$4"` + "\n"
		if err := os.WriteFile(helper, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		mp := mountDir(t)
		v, err := mountWith(system{device: "/dev/fuse", helper: helper}, oneFile(t), mp, Options{})
		if err == nil {
			err = v.Unmount(unmountNow(), 0)
		}
		if want := "without " + strings.TrimSuffix(drop, ","); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a mount %s was accepted: %v", want, err)
		}
		if err := CheckMountpoint(mp); err != nil {
			t.Errorf("without %s: %v", drop, err)
		}
	}
}

// TestMountThroughNoLink: with NoLinks a link in the path, or at its end, is not followed.
func TestMountThroughNoLink(t *testing.T) {
	dir := mountDir(t)
	if err := errors.Join(os.MkdirAll(dir+"/real/empty", 0o755), os.Symlink("real", dir+"/on"), os.Symlink("real/empty", dir+"/end")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir + "/on/empty", dir + "/end", dir + "/on/../real/empty"} {
		before := spectrumMounts("")
		v, err := Mount(oneFile(t), path, Options{NoLinks: true})
		if v != nil || !errors.Is(err, unix.ELOOP) || !maps.Equal(before, spectrumMounts("")) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
