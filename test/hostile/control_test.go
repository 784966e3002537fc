package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestHarnessNoticesChanges is the control of the judge of trees: whatever a
// command could leave behind is seen, and nothing is seen where nothing is.
func TestHarnessNoticesChanges(t *testing.T) {
	old := time.Unix(1_600_000_000, 0)
	for name, act := range map[string]func(p *place) error{
		"a file in the root":        func(p *place) error { return emptyFile(p.atRoot("x")) },
		"a name that came and went": func(p *place) error { return flicker(p.atRoot("x")) },
		"the root made again":       func(p *place) error { return again(p.root) },
		"the root's mode":           func(p *place) error { return os.Chmod(p.root, 0o711) },
		"the root's times":          func(p *place) error { return os.Chtimes(p.root, old, old) },
		"beside the root":           func(p *place) error { return emptyFile(p.root + "2") },
		"a source":                  func(p *place) error { return os.WriteFile(p.at("gen/c.txt"), []byte("GAMMA\n"), 0o644) },
		"a source's times":          func(p *place) error { return os.Chtimes(p.at("gen/c.txt"), old, old) },
		"an artifact's link":        func(p *place) error { return os.Link(p.dirs[0]+"/STATUS.json", p.outside+"/x") },
		"a temporary run directory": func(p *place) error { return harness.Directory(p.runDir(".sealing-x")) },
		"something in the view":     func(p *place) error { return emptyFile(p.mountpoint + "/x") },
		"a mount": func(p *place) error {
			harness.Mount(p, "tmpfs", p.mountpoint, "tmpfs", 0, "size=64k")
			return nil
		},
		"a mount on the root": func(p *place) error {
			harness.Mount(p, "tmpfs", p.root, "tmpfs", 0, "size=64k")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			before := p.picture()
			if found := p.changes(before, p.picture(), nothing); len(found) > 0 {
				t.Fatalf("nothing changed, and yet: %q", found)
			}
			harness.Must(t, act(p))
			if found := p.changes(before, p.picture(), nothing); len(found) == 0 {
				t.Error("it was not noticed")
			}
		})
	}
}

// TestHarnessNoticesProcesses: a process that still has the tree on its command line is seen.
func TestHarnessNoticesProcesses(t *testing.T) {
	p := newPlace(t)
	before := processes(t, p.top)
	c := exec.Command("tail", "-f", p.at("gen/c.txt"))
	harness.Must(t, c.Start())
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	if before != "" || !strings.Contains(processes(t, p.top), "tail") {
		t.Errorf("before %q, now %q", before, processes(t, p.top))
	}
}

func flicker(path string) error {
	if err := emptyFile(path); err != nil {
		return err
	}
	return os.Remove(path)
}

func again(dir string) error {
	if err := os.Remove(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o755)
}

// TestHarnessNoticesAnswers is the control of the judge of answers.
func TestHarnessNoticesAnswers(t *testing.T) {
	said := func(command string, status int, stdout string) reply {
		return answered(reply{command: command, status: status, stdout: stdout})
	}
	const rejected = `{"code":"OUTPUT_MISSING","details":{},"message":"","ok":false}`
	const failed = `{"cause_code":null,"code":"RESTORE_SOURCE_MISSING","ok":false,"phase":"PLAN"}`
	const good = `{"cause_code":null,"code":null,"ok":true,"phase":"VERIFY"}`
	for _, r := range []struct {
		want verdict
		is   reply
	}{
		{missing, said("verify", 1, rejected)}, {accepted, said("commit", 0, good)}, {"RESTORE_SOURCE_MISSING", said("preview", 1, failed)},
		{accepted, said("preview", 0, `{"preview_id":"1"}`)}, {"HASH_MISMATCH|OUTPUT_MISSING", said("verify", 1, rejected)},
	} {
		if err := judge(r.want, r.is); err != nil {
			t.Errorf("a right answer: %v", err)
		}
	}
	hung, broken := said("verify", 1, rejected), said("verify", 1, rejected)
	hung.hung, broken.stderr = true, "panic: runtime error\n\ngoroutine 1 [running]:"
	for name, c := range map[string]struct {
		want verdict
		is   reply
	}{
		"another code":         {mismatch, said("verify", 1, rejected)},
		"another status":       {missing, said("verify", 70, rejected)},
		"accepted":             {missing, said("commit", 0, good)},
		"rejected":             {accepted, said("verify", 1, rejected)},
		"rejected with 0":      {missing, said("verify", 0, rejected)},
		"accepted with 1":      {accepted, said("commit", 1, good)},
		"another phase":        {"RESTORE_SOURCE_MISSING", said("preview", 1, strings.Replace(failed, "PLAN", "EXECUTE", 1))},
		"a cause":              {"RESTORE_SOURCE_MISSING", said("preview", 1, strings.Replace(failed, "null", `"X"`, 1))},
		"no answer":            {accepted, said("verify", 0, "")},
		"two values":           {missing, said("verify", 1, rejected+rejected)},
		"a line":               {missing, said("verify", 1, rejected+"\n")},
		"a preview with no id": {accepted, said("preview", 0, "{}")},
		"it hangs":             {missing, hung},
		"a panic":              {missing, broken},
	} {
		if err := judge(c.want, c.is); err == nil {
			t.Errorf("%s: it was not noticed", name)
		}
	}
}

// TestHarnessNoticesFiles is the control of what a view and a root show.
func TestHarnessNoticesFiles(t *testing.T) {
	p := newPlace(t)
	files, err := contents(p.project)
	harness.Must(t, err)
	for name, act := range map[string]func() error{
		"another content": func() error { return os.WriteFile(p.at("gen/c.txt"), []byte("GAMMA\n"), 0o644) },
		"one more":        func() error { return emptyFile(p.at("gen/more")) },
		"a link":          func() error { return os.Symlink("c.txt", p.at("gen/link")) },
		"one less":        func() error { return os.Remove(p.at("gen/c.txt")) },
	} {
		before, err := contents(p.project)
		harness.Must(t, err)
		harness.Must(t, act())
		after, err := contents(p.project)
		harness.Must(t, err)
		if difference(before, after) == "" {
			t.Errorf("%s: it was not noticed", name)
		}
	}
	if difference(files, files) != "" {
		t.Error("the same is another")
	}
}

// TestOpeningsAreSeen: strace shows who opens what for reading, and does not
// take a handle that cannot read for one; the watch counts every opening.
func TestOpeningsAreSeen(t *testing.T) {
	p := newPlace(t)
	path := p.at("gen/c.txt")
	for name, c := range map[string]struct {
		argv []string
		want bool
	}{
		"read":                  {[]string{"cat", path}, true},
		"through a link":        {[]string{"sh", "-c", "ln -s c.txt " + path + "2 && cat " + path + "2"}, true},
		"stat":                  {[]string{"stat", path}, false},
		"by a verification":     {p.argv(p.args("verify", p.dirs[0])), true},
		"of what it has not to": {p.argv(p.args("verify", p.runDir("none"))), false},
	} {
		trace := filepath.Join(t.TempDir(), "trace")
		argv := append([]string{"-f", "-y", "-qq", "-o", trace, "-e", "signal=none", "-e", "trace=open,openat,openat2,creat"}, c.argv...)
		out, err := exec.Command("strace", argv...).CombinedOutput()
		n, lines := openings(harness.ReadFile(t, trace), []string{path})
		if n == 0 || (len(lines) > 0) != c.want {
			t.Errorf("%s: %d opens, %q: %s, %v", name, n, lines, out, err)
		}
	}
	w := watchOpens(p, path)
	for range 3 {
		_ = harness.ReadFile(t, path)
	}
	if n := w.count(); n != 3 {
		t.Errorf("three openings are %d", n)
	}
	fd, err := unix.Open(path, unix.O_PATH, 0)
	harness.Must(t, err)
	unix.Close(fd)
	w = watchOpens(p, path)
	if n := w.count(); n != 0 {
		t.Errorf("no opening is %d", n)
	}
}
