package main

import (
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// onlyRestore is a fault that only a restore rejects.
func onlyRestore(name, says string, touches []string, v verdict, tree func(*draft, *run)) fault {
	return fault{name: name, says: says, touches: touches, laws: map[law]verdict{restore: v}, tree: tree}
}

// hashesEmpty is a bundle without outputs: legal, and nothing to restore.
func hashesEmpty() fault {
	return fault{
		name:    "hashes-empty",
		says:    "\"hashes\" has no entry",
		touches: []string{forge.OutputHashes + ":hashes"},
		laws:    map[law]verdict{restore: hashes06(3, "RESTORE_OUTPUT_HASHES_HASHES_EMPTY").under("section 3.2")},
		signed:  func(r *run) { r.Edit(forge.OutputHashes, set("hashes", forge.Fields{})) },
		raw:     func(r *run) { clear(r.outputs) },
	}
}

// The restore root (8.4.4).

func rootFault(how, says, code string, part int, flags []string, entries ...suite.Entry) fault {
	return onlyRestore("root-"+how, says, []string{"root"},
		in06(stepRoot, part, "the restore root", code).under("sections 4.1 and 8.4.4"),
		func(d *draft, _ *run) {
			d.flags = flags
			d.put(entries...)
		})
}

func rootAt(path string) []string { return []string{"--restore-root", path} }

func rootMissing() fault {
	return rootFault("missing", "no restore root is given", "RESTORE_TARGET_MISSING", 0, nil)
}

func rootRelative() fault {
	return rootFault("relative", "the restore root is given as a relative path", "RESTORE_TARGET_NOT_ABSOLUTE", 10, rootAt("root"))
}

func rootNotExist() fault {
	return rootFault("not-exist", "the restore root does not exist", "RESTORE_TARGET_NOT_EXIST", 20, rootAt("$WORK/none"))
}

func rootNotDirectory() fault {
	return rootFault("not-directory", "the restore root is a file", "RESTORE_TARGET_NOT_DIRECTORY", 30, rootAt("$WORK/plain"),
		suite.Entry{Path: "plain", Content: "no directory\n"})
}

func rootNotWritable() fault {
	f := rootFault("not-writable", "the restore root has mode 0555, and the user has no privileges", "RESTORE_TARGET_NOT_WRITABLE", 40,
		rootAt("$WORK/locked"), suite.Entry{Path: "locked", Kind: suite.Dir, Mode: 0o555})
	f.ordinary = true
	return f
}

// runDirExists is a chain whose run has something in its place (6.3).
func runDirExists(how string, e suite.Entry) fault {
	f := onlyRestore("run-directory-exists-"+slugWords(how), "in the restore root the run's name is taken by "+how, []string{"run directory"},
		in06(stepRunDirs, 0, "the run directories", "RESTORE_CHAIN_TARGET_DIR_EXISTS").under("section 6.3 and D5"),
		func(d *draft, r *run) {
			taken := e
			taken.Path = root + "/" + r.id + e.Path
			d.put(taken)
		})
	f.needs = []string{"root"}
	return f
}

// escape is a target that a link leads out of the restore root (8.4.5, D17).
func escape(path, how, target string) fault {
	return fault{
		name:    "path-" + how,
		says:    "in the restore root a link to " + target + " is in the way of " + path,
		touches: []string{"output " + path},
		needs:   []string{forge.OutputHashes, forge.OutputHashes + ":hashes", "root"},
		laws: map[law]verdict{
			restore: in06(stepPaths, 0, "path safety", "RESTORE_SYMLINK_ESCAPE_DETECTED").on(path).sub(2).under("section 4.2 and D17"),
		},
		signed: func(r *run) { r.sign(path, "content\n") },
		tree: func(d *draft, _ *run) {
			link, _, _ := strings.Cut(path, "/")
			d.put(suite.Entry{Path: root + "/" + link, Kind: suite.Link, Content: target},
				suite.Entry{Path: "outside", Kind: suite.Dir})
		},
	}
}

func (v verdict) sub(n int) verdict {
	v.at.sub = n
	return v
}

// linkedSource is an output that is a link beneath the project root: verify takes
// it, a restore does not (D4).
func linkedSource(path string) fault {
	return fault{
		name:    "source-link-" + plain(path),
		says:    path + " is a link to a file beneath the project root with the content that was signed",
		touches: []string{"output " + path},
		needs:   []string{forge.OutputHashes, forge.OutputHashes + ":hashes"},
		laws: map[law]verdict{
			restore: in06(stepPlan, 0, "the plan", "RESTORE_SOURCE_NOT_REGULAR_FILE").on(path).under("section 5.3 and D4"),
		},
		signed: func(r *run) { r.sign(path, "linked\n") },
		tree: func(d *draft, r *run) {
			up := strings.Repeat("../", strings.Count(path, "/"))
			r.disk[path] = &file{Kind: suite.Link, Content: up + "real/" + plain(path)}
			d.put(suite.Entry{Path: project + "/real/" + plain(path), Content: "linked\n"})
		},
	}
}

// absolutelyLinkedSource is linkedSource by a link with an absolute target (D29).
func absolutelyLinkedSource(path string) fault {
	f := linkedSource(path)
	f.name = "source-absolute-link-" + plain(path)
	f.says = path + " is a link by its absolute path to a file beneath the project root with the content that was signed"
	v := f.laws[restore]
	f.laws[restore] = v.under("section 5.3, D4 and D29")
	linked := f.tree
	f.tree = func(d *draft, r *run) {
		linked(d, r)
		r.disk[path] = &file{Kind: suite.Link, Content: "$WORK/" + project + "/real/" + plain(path)}
	}
	return f
}

// conflict is a target that exists, or a parent that is not a directory (D10, D11).
func conflict(path, how, says string, entries ...suite.Entry) fault {
	f := onlyRestore("target-exists-"+how, "in the restore root "+says, []string{"target " + how},
		in06(stepConflicts, 0, "existing targets", "RESTORE_TARGET_PATH_EXISTS").on(path).under("section 5.4, D10, D11"),
		func(d *draft, _ *run) { d.put(entries...) })
	f.needs = []string{"root"}
	if path != "RESTORE_MANIFEST.json" && path != "RESTORE_REPORT.json" {
		f.needs = append(f.needs, forge.OutputHashes, forge.OutputHashes+":hashes")
	}
	return f
}

func targetFile() fault {
	return conflict("out/a.txt", "file", "out/a.txt is a file already", suite.Entry{Path: root + "/out/a.txt", Content: "mine\n"})
}

// reserved is an output that would take a name that the restore needs (D10).
func reserved(path, how string) fault {
	return fault{
		name:    "reserved-" + how,
		says:    "an output is named " + path,
		touches: []string{"output " + path},
		needs:   []string{forge.OutputHashes, forge.OutputHashes + ":hashes"},
		laws: map[law]verdict{
			restore: in06(stepReserved, 0, "reserved names", "RESTORE_RESULT_ARTIFACT_WRITE_FAILED").on(path).under("D10"),
		},
		signed: func(r *run) { r.sign(path, "reserved\n") },
	}
}
