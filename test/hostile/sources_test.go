package hostile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// secret is a file outside the project that has the signed content.
func (p *place) secret() string {
	path := p.outside + "/c.txt"
	harness.Must(p, os.WriteFile(path, []byte(content), 0o644))
	p.closed = append(p.closed, path)
	return path
}

// source puts something in place of the output; where it must not be opened, it is not.
func source(with func(path string) error) func(p *place) {
	return func(p *place) {
		p.replace(p.at("gen/c.txt"), with)
		p.closed = append(p.closed, p.at("gen/c.txt"))
	}
}

// sourceRows are sources that are links or no files. Each leads to
// the signed content, if to anything: the hash must not be what saves us.
func sourceRows() (entries []entry) {
	add := func(row int, name string, make func(p *place), want verdicts) {
		entries = append(entries, entry{row, name, make, want})
	}
	gone, inside := planned(missing, strict, refusal), planned(accepted, irregular, refusal)
	add(66, "link inside", func(p *place) {
		p.replace(p.at("gen/real"), file(content))
		p.replace(p.at("gen/c.txt"), harness.LinkTo("real"))
	}, inside)
	add(67, "link out", func(p *place) { p.secret(); source(harness.LinkTo("../../outside/c.txt"))(p) }, gone)
	add(67, "absolute link", func(p *place) { source(harness.LinkTo(p.secret()))(p) }, gone)
	add(67, "absolute link that leads inside", func(p *place) {
		p.replace(p.at("real"), file(content))
		source(harness.LinkTo(p.at("real")))(p)
	}, inside)
	add(67, "dangling link", source(harness.LinkTo("nowhere")), gone)
	add(67, "loop", source(harness.LinkTo("c.txt")), gone)
	add(67, "link to the environment", func(p *place) {
		p.closed = []string{"/proc/*/environ"}
		source(harness.LinkTo("/proc/self/environ"))(p)
	}, gone)
	add(67, "link to an open file", source(harness.LinkTo("/proc/self/fd/0")), gone)
	add(67, "link out and in again", func(p *place) {
		p.replace(p.at("real"), file(content))
		p.closed = []string{p.at("real")}
		source(harness.LinkTo("../../project/real"))(p)
	}, gone)
	add(68, "parent links out", func(p *place) {
		p.secret()
		p.replace(p.at("gen"), harness.LinkTo("../outside"))
	}, gone)
	add(68, "parent links inside", func(p *place) {
		p.replace(p.at("real/c.txt"), file(content))
		p.replace(p.at("gen"), harness.LinkTo("real"))
	}, inside)
	for name, with := range map[string]func(string) error{
		"FIFO": harness.FIFO, "socket": harness.Socket, "character device": harness.Device(unix.S_IFCHR, 1, 5), "block device": harness.Device(unix.S_IFBLK, 7, 0),
	} {
		add(69, name, source(with), gone)
		add(69, "link to a "+name, func(p *place) {
			p.replace(p.at("special"), with)
			p.closed = []string{p.at("special")}
			p.replace(p.at("gen/c.txt"), harness.LinkTo("../special"))
		}, gone)
	}
	add(70, "directory", func(p *place) { p.replace(p.at("gen/c.txt"), harness.Directory) }, gone)
	add(70, "parent is a file", func(p *place) { p.replace(p.at("gen"), file(content)) }, gone)
	add(70, "parent is a FIFO", func(p *place) {
		p.replace(p.at("gen"), harness.FIFO)
		p.closed = []string{p.at("gen")}
	}, gone)
	add(71, "hard link to a file outside", hardLink, planned(accepted, accepted, accepted))
	return append(entries, entry{72, "sparse 1 TiB", nil, always(elsewhere)})
}

// hardLink: a hard link is a file like any other, and the copy is one of its own.
func hardLink(p *place) {
	path := p.secret()
	p.closed = nil
	p.replace(p.at("gen/c.txt"), func(name string) error { return os.Link(path, name) })
	p.check = func(command string, _ reply) {
		if command != "commit" {
			return
		}
		var source, target unix.Stat_t
		harness.Must(p, unix.Lstat(path, &source))
		harness.Must(p, unix.Lstat(p.root+"/gen/c.txt", &target))
		if target.Ino == source.Ino || target.Nlink != 1 || source.Nlink != 2 {
			p.Errorf("inode %d with %d links, of the source %d with %d", target.Ino, target.Nlink, source.Ino, source.Nlink)
		}
	}
}

// movingRows are sources that do not keep still. What befalls them does so
// before a system call of the program, so it is the same every time.
func movingRows() []entry {
	changed := planned(mismatch, strict, refusal)
	copied := verdicts{accepted, accepted, accepted, "RESTORE_STAGING_HASH_MISMATCH", none("seal reads an output once, and copies nothing")}
	path := func(p *place) string { return p.at("gen/c.txt") }
	return []entry{
		{73, "a file that says it is empty, and has content", sizeless, planned(accepted, accepted, refusal)},
		{74, "grows before every read", whileRead(func(p *place) error { return appendTo(path(p), strings.Repeat("x", 1<<20)) }, true), changed},
		{74, "has grown by one byte", func(p *place) { harness.Must(p, appendTo(path(p), "x")) }, planned(mismatch, strict, accepted)},
		{75, "cut before it is read", whileRead(func(p *place) error { return os.Truncate(path(p), 1) }, false), changed},
		{75, "empty before it is read", whileRead(func(p *place) error { return os.Truncate(path(p), 0) }, false), changed},
		{76, "replaced before it is copied", replacedLater, copied},
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// sizeless takes a file of the kernel. Its size is that of what was hashed. Seal requires the
// size that stat reports.
func sizeless(p *place) {
	raw := harness.ReadFile(p, "/proc/sys/kernel/ostype")
	p.project, p.apart = "/proc/sys/kernel", true
	dir := p.top + "/runs/run-1"
	r := signedRun{forge.New(forge.Outputs{"ostype": raw}), "run-1", dir, forge.Outputs{"ostype": raw}}
	harness.Must(p, r.Write(dir))
	p.runs, p.dirs = []signedRun{r}, []string{dir}
	p.sealDir, p.sealArgs = p.top+"/runs/sealed", []string{"ostype"}
}

// whileRead does something to the source before it is read, the first time or
// each time. It is as signed again before each command.
func whileRead(do func(p *place) error, always bool) func(p *place) {
	return func(p *place) {
		path := p.at("gen/c.txt")
		p.restless = map[string]bool{p.below(path): true}
		p.before = func(string) func() {
			harness.Must(p, os.WriteFile(path, []byte(content), 0o644))
			return func() {}
		}
		p.faults = func(string) *sysfault.Plan {
			return &sysfault.Plan{N: 1, Onward: always, Before: func(sysfault.Call) { harness.Must(p, do(p)) }, Match: func(c sysfault.Call) bool {
				return (c.Name == "read" || c.Name == "pread64") && c.Path == path
			}}
		}
	}
}

// replacedLater: a commit has verified its source when it makes the staging
// directory, and has not yet copied it. A view has verified its source when it
// is mounted.
func replacedLater(p *place) {
	path := p.at("gen/c.txt")
	p.staged = true
	p.restless = map[string]bool{p.below(path): true, "project/gen": true}
	other := func() { p.replace(path, file(strings.ToUpper(content))) }
	p.before = func(string) func() {
		if harness.ReadFile(p, path) != content { // an approval fits the very file that was previewed
			p.replace(path, file(content))
		}
		return func() {}
	}
	p.faults = func(command string) *sysfault.Plan {
		if command != "commit" {
			return nil
		}
		return &sysfault.Plan{N: 1, Before: func(sysfault.Call) { other() }, Match: func(c sysfault.Call) bool {
			return c.Name == "mkdirat" && strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_staging_")
		}}
	}
	p.inView = func(view string) {
		other()
		if got, err := os.ReadFile(view + "/gen/c.txt"); !errors.Is(err, unix.EIO) || len(got) > 0 {
			p.Errorf("the view reads %q, %v", got, err)
		}
	}
}

// oddSourceRows are sources that cannot be read, or that have more than content.
func oddSourceRows() []entry {
	gone := planned(missing, strict, refusal)
	return []entry{
		{77, "file without permissions", func(p *place) { p.asNobody("project/gen/c.txt") }, gone},
		{77, "directory without permissions", func(p *place) { p.asNobody("project/gen") }, gone},
		{78, "on a dead FUSE mount", func(p *place) { harness.DeadMount(p, p.at("gen")) }, gone},
		{78, "on another mount", func(p *place) {
			harness.Mount(p, "tmpfs", p.at("gen"), "tmpfs", 0, "size=64k")
			p.replace(p.at("gen/c.txt"), file(content))
		}, gone},
		{79, "set-id and sticky bits, attributes, a capability", furnished, planned(accepted, accepted, accepted)},
	}
}

// asNobody lets a user without power run the commands, who owns everything and
// has no permission for this.
func (p *place) asNobody(path string) {
	p.Helper()
	p.user, p.binary = harness.Nobody, harness.CopyBinary(p, p.top)
	harness.LetOthersIn(p, p.top)
	harness.GiveToNobody(p, p.top)
	harness.Must(p, os.Chmod(filepath.Join(p.top, path), 0))
}

// furnished gives the source all that a restore must not carry over. What is
// left is the permission bits.
func furnished(p *place) {
	path := p.at("gen/c.txt")
	harness.Must(p, os.Chown(path, 12, 34))
	harness.Must(p, unix.Chmod(path, 0o7755))
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // cap_net_bind_service+ep
	for name, value := range map[string][]byte{"user.note": {'x'}, "trusted.note": {'x'}, "security.capability": capability} {
		harness.Must(p, unix.Setxattr(path, name, value, 0))
	}
	bare := func(path string, mode uint32, attributes string) {
		var st unix.Stat_t
		harness.Must(p, unix.Lstat(path, &st))
		list := make([]byte, 1000)
		n, err := unix.Llistxattr(path, list)
		harness.Must(p, err)
		if st.Mode&0o7777 != mode || st.Uid == 12 || st.Gid == 34 || string(list[:n]) != attributes {
			p.Errorf("%q: mode %o, owner %d:%d, attributes %q", path, st.Mode&0o7777, st.Uid, st.Gid, list[:n])
		}
	}
	p.inView = func(view string) {
		bare(view+"/gen/c.txt", 0o555, "user.spectrum.bundle_root\x00user.spectrum.run_id\x00user.spectrum.task_id\x00user.spectrum.sha256\x00")
	}
	p.check = func(command string, _ reply) {
		if command == "commit" {
			bare(p.root+"/gen/c.txt", 0o755, "")
		}
	}
}
