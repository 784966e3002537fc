package hostile

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// to makes a path the restore root, as it is given.
func (p *place) to(path string) { p.root, p.rootArg = path, path }

// atRoot is a path in the restore root.
func (p *place) atRoot(name string) string { return p.root + "/" + name }

// rootRows are all kinds of restore roots. Verify and seal know nothing of one.
func rootRows() (entries []entry) {
	add := func(name string, want verdicts, make func(p *place)) {
		entries = append(entries, entry{80, name, func(p *place) {
			p.withRoot = true
			make(p)
		}, want})
	}
	code := func(code verdict) verdicts { return planned(accepted, code, accepted) }
	good := code(accepted)
	noRoot := code("RESTORE_TARGET_MISSING")
	noRoot.mount = accepted // a view has no need of one
	conflict := good
	conflict.commit = exists

	add("none", noRoot, func(p *place) { p.rootArg = "" })
	empty := noRoot
	empty.mount = "USAGE" // a flag without a value, which the law has no code for
	add("empty", empty, func(p *place) { p.rootArg, p.emptyRoot = "", true })
	add("relative", code("RESTORE_TARGET_NOT_ABSOLUTE"), func(p *place) { p.rootArg = "../root" })
	add("missing", code("RESTORE_TARGET_NOT_EXIST"), func(p *place) { p.to(p.top + "/nothing") })
	add("dangling link", code("RESTORE_TARGET_NOT_EXIST"), func(p *place) {
		p.to(p.top + "/link")
		harness.Must(p, os.Symlink("nothing", p.root))
	})
	for name, with := range map[string]func(string) error{"file": file("x"), "FIFO": harness.FIFO, "socket": harness.Socket, "device": harness.Device(unix.S_IFCHR, 1, 5)} {
		add(name, code("RESTORE_TARGET_NOT_DIRECTORY"), func(p *place) { p.replace(p.root, with) })
	}
	add("link to a directory", good, func(p *place) {
		harness.Must(p, os.Symlink("root", p.top+"/link"))
		p.rootArg = p.top + "/link"
	})
	add("not cleaned", good, func(p *place) { p.rootArg = p.top + "/./view/..//root/" })
	add("read-only", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) {
		harness.Mount(p, p.root, p.root, "", unix.MS_BIND, "")
		harness.Must(p, unix.Mount("", p.root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	})
	add("read-only for its user", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) {
		harness.Must(p, os.Chmod(p.root, 0o555))
		p.asNobody("outside")
	})
	add("the root of all", code(refusal), func(p *place) { p.rootArg = "/" }) // the state directory lies in it
	add("the project root", conflict, func(p *place) { p.to(p.project) })
	add("inside the run directory", good, func(p *place) {
		p.to(p.dirs[0] + "/restored")
		harness.Must(p, harness.Directory(p.root))
	})
	add("inside a view", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) {
		other := p.top + "/other view"
		harness.Must(p, harness.Directory(other))
		s := p.mount(other, p.args("mount", p.dirs[0], other)...)
		if s.view == "" {
			p.Fatal(s.reply)
		}
		p.to(s.view + "/gen")
	})
	add("a view", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) {
		s := p.mount(p.root, p.args("mount", p.dirs[0], p.root)...)
		if s.view == "" {
			p.Fatal(s.reply)
		}
	})
	add("a dead mount", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) { harness.DeadMount(p, p.root) })
	add("below a dead mount", code("RESTORE_TARGET_NOT_WRITABLE"), func(p *place) {
		harness.DeadMount(p, p.root)
		p.to(p.root + "/below")
	})
	add("a mount of its own", good, func(p *place) { harness.Mount(p, "tmpfs", p.root, "tmpfs", 0, "size=1m") })
	add("of another user, and of a group that may write", good, func(p *place) {
		harness.Must(p, os.Chown(p.root, 12, 34))
		harness.Must(p, os.Chmod(p.root, 0o775))
		p.warns()
	})
	add("writable for all, not sticky", good, func(p *place) {
		harness.Must(p, os.Chmod(p.root, 0o777))
		p.warns()
	})
	return entries
}

// warns requires the preview to warn of other users who may write.
func (p *place) warns() {
	p.check = func(command string, r reply) {
		if command == "preview" && !strings.Contains(r.stdout, "other users can write in the restore root") {
			p.Errorf("the preview does not warn: %v", r)
		}
	}
}

// obstacleRows are what stands where a target would be, or in its way. A link
// out is found before anything else is; anything else is a
// conflict of the preview, and the commit is rejected before it stages.
func obstacleRows() (entries []entry) {
	add := func(row int, name, path string, commit verdict, with func(path string) error) {
		want := planned(accepted, accepted, accepted)
		if want.commit = commit; commit == escape {
			want = planned(accepted, escape, accepted)
		}
		entries = append(entries, entry{row, name, func(p *place) {
			p.withRoot = true
			p.replace(p.atRoot(path), with)
			p.shows(path)
		}, want})
	}
	for name, target := range map[string]string{
		"parent links out": "../outside", "parent links out, absolutely": "/tmp", "parent links out and in again": "../root/real",
		"parent links to itself": "gen",
	} {
		add(81, name, "gen", escape, harness.LinkTo(target))
	}
	entries = append(entries, entry{81, "parent links absolutely to a place inside", func(p *place) {
		p.withRoot = true
		harness.Must(p, harness.Directory(p.atRoot("real")))
		harness.Must(p, os.Symlink(p.atRoot("real"), p.atRoot("gen")))
	}, planned(accepted, escape, accepted)})
	for name, with := range map[string]func(string) error{
		"file": file("x"), "FIFO": harness.FIFO, "socket": harness.Socket, "device": harness.Device(unix.S_IFCHR, 1, 5), "dangling link": harness.LinkTo("nothing"),
	} {
		add(82, "parent is a "+name, "gen", exists, with)
	}
	blocked := planned(accepted, accepted, accepted)
	blocked.commit = "RESTORE_FINALIZE_FAILED"
	entries = append(entries, entry{82, "parent is a mount point", func(p *place) {
		p.withRoot = true
		harness.Must(p, harness.Directory(p.atRoot("gen")))
		harness.Mount(p, "tmpfs", p.atRoot("gen"), "tmpfs", 0, "size=64k")
		p.shows("gen")
	}, blocked})
	for name, with := range map[string]func(string) error{
		"file": file("x"), "the very file": file(content), "empty file": emptyFile, "directory": harness.Directory, "FIFO": harness.FIFO,
		"link that dangles inside": harness.LinkTo("nothing"), "link that stays inside": harness.LinkTo("."),
	} {
		add(83, "target is a "+name, "gen/c.txt", exists, with)
	}
	for name, target := range map[string]string{"out": "../../outside", "to a file outside": "/etc/passwd", "out, dangling": "../../nothing", "to itself": "c.txt"} {
		add(83, "target links "+name, "gen/c.txt", escape, harness.LinkTo(target))
	}
	for _, name := range []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
		add(83, name+" is there", name, exists, file("{}"))
		add(83, name+" is a link out", name, exists, harness.LinkTo("/etc/passwd"))
	}
	return entries
}

// shows requires the preview to list a conflict at a path, or below it.
func (p *place) shows(path string) {
	p.check = func(command string, r reply) {
		if command != "preview" || r.status != 0 {
			return
		}
		if c := r.answer.inTheWay(); len(c) == 0 || !harness.Inside(filepath.Clean(c[0]), path) {
			p.Errorf("the preview has the conflicts %v", c)
		}
	}
}
