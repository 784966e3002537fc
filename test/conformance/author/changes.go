package main

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// changesFile is the file of a change set (D22).
const changesFile = "CHANGES"

// newEdit is a run that is a change set: it changes app.py, makes tests/new.py and removes
// notes/old.txt.
func newEdit() (*run, forge.Fields) {
	r := newRun(1, forge.Outputs{"app.py": "new\n", "tests/new.py": "test\n"})
	return r, forge.Fields{
		"base":       forge.Fields{"app.py": forge.Hash("old\n"), "notes/old.txt": forge.Hash("notes\n"), "tests/new.py": nil},
		"executable": []any{}, "form": 1, "removes": []any{"notes/old.txt"},
	}
}

// claim has the signed TASK_SPEC.json name a content of CHANGES, and writes it.
func (r *run) claim(content string) *run {
	r.Edit(forge.TaskSpec, set("constraints", forge.Fields{"changes": claimOf(content)}))
	r.extra = append(r.extra, suite.Entry{Path: changesFile, Content: content})
	return r
}

func claimOf(content string) forge.Fields {
	return forge.Fields{"form": 1, "sha256": strings.TrimPrefix(forge.Hash(content), "sha256:")}
}

func jsonOf(fields forge.Fields) string { return string(forge.Canonical(fields)) }

// there is a file of the restore root.
func there(path, content string) suite.Entry {
	return suite.Entry{Path: root + "/" + path, Content: content}
}

// gone is a file of the restore root that is removed.
func gone(path, content string) suite.Entry {
	e := there(path, content)
	e.Gone = true
	return e
}

// edit is a change set beside what is in the restore root.
func edit(entries ...suite.Entry) *draft {
	r, c := newEdit()
	d := newDraft(r.claim(jsonOf(c)))
	d.put(entries...)
	return d
}

// asked are the flags of a restore beside that of the restore root.
func (d *draft) asked(flags ...string) *draft {
	d.flags = append(d.flags, flags...)
	return d
}

// refused is a restore that the law rejects.
func refused(c suite.Case, d *draft, code, phase string, flags ...string) suite.Case {
	cmd := suite.Command{Args: append([]string{"restore", "--restore-root", atRoot}, flags...), Exit: 1,
		Result: jsonOf(forge.Fields{"cause_code": nil, "code": code, "ok": false, "phase": phase})}
	for _, r := range d.runs {
		cmd.Args = append(cmd.Args, r.dir)
	}
	c.Commands = append(c.Commands, cmd)
	return c
}

// notApproved is a restore that the operator's policy (exit 5) or the approval (exit 4) stops. The
// law says nothing of its words.
func notApproved(c suite.Case, d *draft, exit int) suite.Case {
	c = refused(c, d, "", "", d.flags[2:]...)
	cmd := &c.Commands[len(c.Commands)-1]
	cmd.Exit, cmd.Result, cmd.Free = exit, `{"ok":false}`, []string{"cause_code", "code", "details", "message", "phase"}
	return c
}

// replacements are restores with --replace (D21), and the same without.
func replacements() []suite.Case {
	const plain = "SPECTRUM-06 section 5.4; D11, D21"
	accept := func(name, clauses, says string, before ...suite.Entry) suite.Case {
		d := single().asked("--replace")
		d.put(before...)
		c := d.finish("accept-replace-"+name, clauses, []string{says}, strict, restore)
		if name == "nothing" {
			return c
		}
		return refused(c, d, "RESTORE_TARGET_PATH_EXISTS", "EXECUTE")
	}
	block := func(name, says string, before ...suite.Entry) suite.Case {
		d := single().asked("--replace")
		d.put(before...)
		c := d.finish("06-replace-"+name, plain, []string{says}, strict)
		return refused(refused(c, d, "RESTORE_TARGET_PATH_EXISTS", "EXECUTE", "--replace"), d, "RESTORE_TARGET_PATH_EXISTS", "EXECUTE")
	}
	linked := single().asked("--replace")
	linked.put(there("real/a.txt", "old\n"), suite.Entry{Path: root + "/out", Kind: suite.Link, Content: "real"})
	linked.landing[root+"/out"] = root + "/real"
	executable := there("out/a.txt", "alpha\n")
	executable.Mode = 0o755
	bits := single().asked("--replace")
	bits.put(executable)
	bits.modes = map[string]fs.FileMode{"out/a.txt": 0o644}
	out := single().asked("--replace")
	out.put(suite.Entry{Path: "outside/a.txt", Content: "old\n"}, suite.Entry{Path: root + "/out", Kind: suite.Link, Content: "../outside"})
	escape := out.finish("06-replace-symlink-escape", "SPECTRUM-06 section 4.2; D17", []string{"The way to the existing files leads out of the restore root."}, strict)
	taken := chain().asked("--replace")
	taken.put(there("run-1/one/a.txt", "alpha\n"))
	foreign := taken.finish("06-replace-run-directory-foreign", "SPECTRUM-06 section 6.3; D21", []string{"The directory of a run is there, and no commit of this operator has made it."}, strict)
	return []suite.Case{
		accept("one", plain+", D31", "One target is another file, which is replaced; one is the same, and stays as it is.", there("out/a.txt", "old\n"), there("out/b.txt", "beta\n")),
		accept("same-size", plain, "The existing file has the same size and other bytes.", there("out/a.txt", "alphA\n")),
		accept("identical", plain+", D31", "All targets are the same already: the manifest lists them all.", there("out/a.txt", "alpha\n"), there("out/b.txt", "beta\n")),
		accept("nothing", plain, "There is nothing to replace: everything is as without the flag."),
		accept("empty", plain, "The existing file is empty.", there("out/a.txt", "")),
		bits.finish("accept-replace-executable-bits", "D33", []string{"The existing file has the same bytes, and is executable: its mode is replaced."}, strict, restore),
		linked.finish("accept-replace-through-link", "D17, D21", []string{"The way to the existing file leads through a link that stays beneath the restore root."}, strict, restore),
		block("directory", "A directory is at a target.", suite.Entry{Path: root + "/out/a.txt", Kind: suite.Dir}),
		block("link", "A link to a file is at a target.", there("out/x", "old\n"), suite.Entry{Path: root + "/out/a.txt", Kind: suite.Link, Content: "x"}),
		block("dangling", "A link to nothing is at a target.", suite.Entry{Path: root + "/out/a.txt", Kind: suite.Link, Content: "x"}),
		block("fifo", "A FIFO is at a target.", suite.Entry{Path: root + "/out/a.txt", Kind: suite.FIFO}),
		block("parent-is-a-file", "A file is in the place of a directory on the way.", there("out", "old\n")),
		block("manifest-foreign", "RESTORE_MANIFEST.json is there, and no commit of this operator has made it.", there("RESTORE_MANIFEST.json", "{}")),
		block("report-foreign", "RESTORE_REPORT.json is there, and no commit of this operator has made it.", there("RESTORE_REPORT.json", "{}")),
		block("one-of-two", "One target can be replaced, and the other cannot: nothing is.", there("out/a.txt", "old\n"), suite.Entry{Path: root + "/out/b.txt", Kind: suite.Dir}),
		refused(escape, out, "RESTORE_SYMLINK_ESCAPE_DETECTED", "PREFLIGHT", "--replace"),
		refused(foreign, taken, "RESTORE_CHAIN_TARGET_DIR_EXISTS", "PREFLIGHT", "--replace"),
	}
}

// changeSets are candidates with a file CHANGES.
func changeSets() []suite.Case {
	return slices.Concat(editsAccepted(), editsDiverged(), editsBlocked(), editsHeld())
}

func acceptEdit(name, clauses, says string, d *draft) suite.Case {
	return d.finish("accept-changes-"+name, clauses, []string{says}, strict, resume, memory, restore)
}

func editsAccepted() []suite.Case {
	old, notes := there("app.py", "old\n"), gone("notes/old.txt", "notes\n")
	linked := edit(old, gone("real/old.txt", "notes\n"), suite.Entry{Path: root + "/notes", Kind: suite.Link, Content: "real"})
	signed := func(content string, mode fs.FileMode) *draft {
		r, c := newEdit()
		c["executable"] = []any{"app.py"}
		d := newDraft(r.claim(jsonOf(c)))
		now := there("app.py", content)
		now.Mode = mode
		d.put(now, notes)
		d.modes = map[string]fs.FileMode{"app.py": 0o755}
		return d
	}
	only := newRun(1, forge.Outputs{"kept.txt": "kept\n"})
	only.claim(jsonOf(forge.Fields{"base": forge.Fields{"kept.txt": forge.Hash("kept\n"), "notes/old.txt": forge.Hash("notes\n")},
		"executable": []any{}, "form": 1, "removes": []any{"notes/old.txt"}}))
	removes := newDraft(only)
	removes.put(there("kept.txt", "kept\n"), notes)
	dots := newRun(1, forge.Outputs{"app.py": "new\n"})
	dots.claim(jsonOf(forge.Fields{"base": forge.Fields{".git/config": forge.Hash("notes\n"), "app.py": nil}, "executable": []any{}, "form": 1, "removes": []any{".git/config"}}))
	git := newDraft(dots)
	git.put(gone(".git/config", "notes\n"))
	return []suite.Case{
		acceptEdit("clean", "D21, D22", "What the producer started from is there: one file is replaced, one made, one removed, and its directory stays.", edit(old, notes)),
		acceptEdit("clean-replace", "D21, D22", "The same with --replace, which adds nothing.", edit(old, notes).asked("--replace")),
		acceptEdit("done-already", "D22, D31", "What the change set makes is there already, and what it removes is gone.", edit(there("app.py", "new\n"), there("tests/new.py", "test\n"))),
		acceptEdit("half-done", "D22, D31", "Half of it is done already.", edit(there("app.py", "new\n"), notes)),
		acceptEdit("through-link", "D17, D22", "The way to the removed file leads through a link that stays beneath the restore root.", linked),
		acceptEdit("removes-in-git", "D22", "A file of .git is removed, as it was named.", git),
		acceptEdit("executable", "D33", "CHANGES signs that an output is executable, whatever the mode of its source.", signed("old\n", 0)),
		acceptEdit("executable-only", "D33", "The bytes are there already, without the executable bit that CHANGES signs.", signed("new\n", 0)),
		acceptEdit("executable-already", "D31, D33", "Bytes and executable bit are there already.", signed("new\n", 0o755)),
		acceptEdit("only-removes", "D34", "A set that only removes carries one unchanged file.", removes),
	}
}

// editsDiverged: something else is there than the producer started from. It is never proposed.
func editsDiverged() []suite.Case {
	notes := gone("notes/old.txt", "notes\n")
	leftOut := func(d *draft) *draft {
		d.left = "app.py"
		return d
	}
	decided := func(verdict string, entries ...suite.Entry) *draft {
		return edit(entries...).asked("--decide", "C-002="+verdict)
	}
	single := newRun(1, forge.Outputs{"app.py": "new\n"})
	single.claim(jsonOf(forge.Fields{"base": forge.Fields{"app.py": forge.Hash("old\n")}, "executable": []any{}, "form": 1, "removes": []any{}}))
	alone := newDraft(single)
	alone.put(there("app.py", "mine\n"))
	nothing := alone.finish("06-changes-diverged-alone", "D22", []string{"All of it has diverged: nothing is proposed, and there is nothing to approve."}, strict)
	return []suite.Case{
		acceptEdit("diverged", "D13, D22", "An output has diverged: it is left out, and the others are a bundle of their own.", leftOut(edit(there("app.py", "mine\n"), notes))),
		acceptEdit("diverged-gone", "D13, D22", "The file that an output would replace is gone: it has diverged.", leftOut(edit(notes))),
		acceptEdit("diverged-keep", "D13, D22", "The operator decides to keep what is there.", leftOut(decided("keep", there("app.py", "mine\n"), notes))),
		acceptEdit("diverged-replace", "D22", "The operator decides to replace what is there.", decided("replace", there("app.py", "mine\n"), notes)),
		acceptEdit("diverged-replace-gone", "D22", "The operator decides to make what is gone.", decided("replace", notes)),
		acceptEdit("diverged-new", "D22", "Something is where the producer found nothing; the operator decides to replace it.", decided("replace", there("app.py", "old\n"), there("tests/new.py", "mine\n"), notes)),
		acceptEdit("diverged-remove", "D22", "The operator decides to remove a file that has diverged.", decided("replace", there("app.py", "old\n"), gone("notes/old.txt", "edited\n"))),
		notApproved(nothing, alone, 4),
	}
}

// editsBlocked: something that is not a file is at a path of a change set.
func editsBlocked() []suite.Case {
	notes := there("notes/old.txt", "notes\n")
	block := func(name, says, code, phase string, entries ...suite.Entry) suite.Case {
		d := edit(entries...)
		c := d.finish("06-changes-"+name, "SPECTRUM-06 section 5.4; D11, D17, D22", []string{says}, strict)
		return refused(c, d, code, phase)
	}
	const exists, escape = "RESTORE_TARGET_PATH_EXISTS", "RESTORE_SYMLINK_ESCAPE_DETECTED"
	old := there("app.py", "old\n")
	return []suite.Case{
		block("output-is-a-directory", "A directory is where a file would be replaced.", exists, "EXECUTE", suite.Entry{Path: root + "/app.py", Kind: suite.Dir}, notes),
		block("removed-is-a-directory", "A directory is where a file would be removed.", exists, "EXECUTE", old, suite.Entry{Path: root + "/notes/old.txt", Kind: suite.Dir}),
		block("removed-is-a-link", "A link is where a file would be removed.", exists, "EXECUTE", old, there("x", "notes\n"), suite.Entry{Path: root + "/notes/old.txt", Kind: suite.Link, Content: "../x"}),
		block("removed-is-a-fifo", "A FIFO is where a file would be removed.", exists, "EXECUTE", old, suite.Entry{Path: root + "/notes/old.txt", Kind: suite.FIFO}),
		block("removed-beyond-a-link", "The way to a file that would be removed leads out of the restore root.", escape, "PREFLIGHT",
			old, suite.Entry{Path: "outside/old.txt", Content: "notes\n"}, suite.Entry{Path: root + "/notes", Kind: suite.Link, Content: "../outside"}),
		block("artifact-foreign", "RESTORE_REPORT.json is there, and no commit of this operator has made it.", exists, "EXECUTE", old, notes, there("RESTORE_REPORT.json", "{}")),
	}
}

// editsHeld are deviations of what is said of changes. Each holds the candidate (exit 5), and
// changes no verdict of the law (D22, D35).
func editsHeld() []suite.Case {
	var all []suite.Case
	hold := func(name, says string, r *run) {
		d := newDraft(r)
		d.put(there("app.py", "old\n"), there("notes/old.txt", "notes\n"))
		c := d.finish("06-changes-held-"+name, "D22, D35", []string{says}, strict, resume)
		all = append(all, notApproved(c, d, 5))
	}
	contents := heldContents()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		r, _ := newEdit()
		hold(name, contents[name][0], r.claim(contents[name][1]))
	}
	_, good := newEdit()
	claims := heldClaims(jsonOf(good))
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		r, c := newEdit()
		r.claim(jsonOf(c))
		r.Edit(forge.TaskSpec, set("constraints", claims[name]))
		hold(name, fmt.Sprintf("TASK_SPEC.json has \"constraints\": %s.", forge.Canonical(claims[name])), r)
	}
	for _, odd := range []struct {
		name  string
		entry suite.Entry
	}{
		{"directory", suite.Entry{Kind: suite.Dir}}, {"link", suite.Entry{Kind: suite.Link, Content: "TASK_SPEC.json"}}, {"fifo", suite.Entry{Kind: suite.FIFO}},
		{"too-large", suite.Entry{Content: jsonOf(good), Size: 256<<20 + 1}},
	} {
		r, c := newEdit()
		r.claim(jsonOf(c))
		odd.entry.Path = changesFile
		r.extra = []suite.Entry{odd.entry}
		hold("file-"+odd.name, "CHANGES is no file of at most 256 MiB.", r)
	}
	r, c := newEdit()
	r.claim(jsonOf(c)).extra = nil
	hold("file-missing", "TASK_SPEC.json names CHANGES, which is missing.", r)
	r, c = newEdit()
	r.claim(jsonOf(c)).extra[0].Content = jsonOf(c) + "\n"
	hold("digest", "CHANGES is another one than TASK_SPEC.json names.", r)
	return append(all, chainsHeld()...)
}

// chainsHeld: in a chain a change set has no form.
func chainsHeld() []suite.Case {
	r, c := newEdit()
	one := newDraft(r.claim(jsonOf(c))).asked("--chain")
	first, changed := newEdit()
	two := newDraft(first.claim(jsonOf(changed)), newRun(2, forge.Outputs{"two/b.txt": "beta\n"}))
	return []suite.Case{
		notApproved(one.finish("06-changes-held-chain-of-one", "D22", []string{"A change set as a chain of one."}, strict), one, 5),
		notApproved(two.finish("06-changes-held-chain", "D22", []string{"A run of a chain is a change set."}, strict), two, 5),
	}
}

// heldContents are contents of CHANGES that break a rule, and which.
func heldContents() map[string][2]string {
	contents := map[string][2]string{}
	with := func(name, says string, change func(c, base forge.Fields)) {
		_, c := newEdit()
		change(c, c["base"].(forge.Fields))
		contents[name] = [2]string{says, jsonOf(c)}
	}
	_, c := newEdit()
	good := jsonOf(c)
	for name, content := range map[string]string{
		"empty": "", "not-json": "{", "an-array": "[" + good + "]", "line-feed": good + "\n", "space": strings.Replace(good, ",", ", ", 1),
		"doubled-member": strings.Replace(good, `"form":1`, `"form":1,"form":1`, 1),
	} {
		contents["content-"+name] = [2]string{"CHANGES is no object in canonical JSON: " + name + ".", content}
	}
	for _, name := range []string{"base", "executable", "form", "removes"} {
		with("without-"+name, "CHANGES has no "+name+".", func(c, _ forge.Fields) { delete(c, name) })
		with(name+"-null", "In CHANGES "+name+" is null.", func(c, _ forge.Fields) { c[name] = nil })
	}
	with("extra-member", "CHANGES has a fifth member.", func(c, _ forge.Fields) { c["note"] = 1 })
	with("form-2", "The form is 2.", func(c, _ forge.Fields) { c["form"] = 2 })
	with("form-text", "The form is a text.", func(c, _ forge.Fields) { c["form"] = "1" })
	with("base-lacks-output", "The base does not name an output.", func(_, base forge.Fields) { delete(base, "tests/new.py") })
	with("base-lacks-removed", "The base does not name a removed path.", func(_, base forge.Fields) { delete(base, "notes/old.txt") })
	with("base-names-more", "The base names what is neither output nor removed.", func(_, base forge.Fields) { base["more"] = nil })
	with("base-upper-case", "A digest in upper case.", func(_, base forge.Fields) { base["app.py"] = "sha256:" + strings.ToUpper(forge.Hash("old\n")[7:]) })
	with("base-short", "A digest of 63 digits.", func(_, base forge.Fields) { base["app.py"] = forge.Hash("old\n")[:70] })
	with("base-without-prefix", "A digest without sha256:.", func(_, base forge.Fields) { base["app.py"] = forge.Hash("old\n")[7:] })
	with("base-number", "A base that is a number.", func(_, base forge.Fields) { base["app.py"] = 0 })
	with("removed-null", "The base of a removed path is null.", func(_, base forge.Fields) { base["notes/old.txt"] = nil })
	heldLists(with)
	return contents
}

// heldLists are those whose lists of removed and of executable paths break a rule.
func heldLists(with func(name, says string, change func(c, base forge.Fields))) {
	removed := func(name, says string, paths ...string) {
		with(name, says, func(c, base forge.Fields) {
			delete(base, "notes/old.txt")
			var list []any
			for _, path := range paths {
				list = append(list, path)
				if base[path] == nil {
					base[path] = forge.Hash("notes\n")
				}
			}
			c["removes"] = list
		})
	}
	removed("removed-twice", "A path is removed twice.", "notes/old.txt", "notes/old.txt")
	removed("removed-unordered", "The removed paths do not ascend.", "b", "a")
	removed("removed-output", "An output is removed.", "app.py")
	removed("removed-above-output", "A directory of an output is removed as a file.", "tests")
	removed("removed-below-output", "A file below an output is removed.", "app.py/x")
	removed("removed-below-removed", "A file below a removed file is removed.", "notes", "notes/old.txt")
	removed("removed-traversal", "A removed path leads up.", "../outside")
	removed("removed-dot-dot-within", "A removed path has a component that leads up.", "notes/../app")
	removed("removed-absolute", "A removed path is absolute.", "/etc/passwd")
	removed("removed-double-slash", "A removed path has an empty component.", "notes//old.txt")
	removed("removed-trailing-slash", "A removed path ends in a slash.", "notes/old.txt/")
	removed("removed-backslash", "A removed path has a backslash.", `notes\old.txt`)
	removed("removed-nul", "A removed path has a NUL byte.", "notes/old\x00.txt")
	removed("removed-empty", "A removed path is empty.", "")
	removed("removed-of-the-lock", "The lock of a restore root is removed.", ".spectrum06_lock")
	removed("removed-in-staging", "A file of a staging directory is removed.", ".spectrum06_staging_x/y")
	removed("removed-manifest", "A result artifact is removed.", "RESTORE_MANIFEST.json")
	removed("removed-report", "A result artifact is removed.", "RESTORE_REPORT.json")
	removed("removed-long-name", "A removed path has a name of 256 bytes.", strings.Repeat("n", 256))
	with("removes-number", "A removed path is a number.", func(c, _ forge.Fields) { c["removes"] = []any{1} })
	executable := func(name, says string, paths ...any) {
		with(name, says, func(c, _ forge.Fields) { c["executable"] = paths })
	}
	executable("executable-removed", "A removed path is executable.", "notes/old.txt")
	executable("executable-unknown", "What is no output is executable.", "b")
	executable("executable-twice", "An output is executable twice.", "app.py", "app.py")
	executable("executable-unordered", "The executable outputs do not ascend.", "tests/new.py", "app.py")
	executable("executable-number", "An executable output is a number.", 1)
}

// heldClaims are values of "constraints" that name CHANGES in no form, or do not name it.
func heldClaims(content string) map[string]any {
	with := func(change func(claim forge.Fields)) forge.Fields {
		claim := claimOf(content)
		change(claim)
		return forge.Fields{"changes": claim}
	}
	return map[string]any{
		"unnamed": forge.Fields{}, "constraints-array": []any{}, "constraints-text": "changes", "constraints-null": nil,
		"claim-null": forge.Fields{"changes": nil}, "claim-text": forge.Fields{"changes": claimOf(content)["sha256"]},
		"claim-form-2": with(func(c forge.Fields) { c["form"] = 2 }), "claim-form-text": with(func(c forge.Fields) { c["form"] = "1" }),
		"claim-without-form": with(func(c forge.Fields) { delete(c, "form") }), "claim-without-digest": with(func(c forge.Fields) { delete(c, "sha256") }),
		"claim-extra-member": with(func(c forge.Fields) { c["note"] = 1 }),
		"claim-upper-case":   with(func(c forge.Fields) { c["sha256"] = strings.ToUpper(c["sha256"].(string)) }),
		"claim-prefix":       with(func(c forge.Fields) { c["sha256"] = "sha256:" + c["sha256"].(string) }),
		"claim-short":        with(func(c forge.Fields) { c["sha256"] = c["sha256"].(string)[:62] }),
	}
}
