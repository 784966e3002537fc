package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// hyphens makes a code a part of a case's name.
func hyphens(code string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(code, "RESTORE_"), "_", "-"))
}

// upperFirst begins a sentence.
func sentence(s string) string {
	if strings.HasPrefix(s, "a ") || strings.HasPrefix(s, "an ") || strings.HasPrefix(s, "the ") || strings.HasPrefix(s, "in ") || strings.HasPrefix(s, "no ") {
		return strings.ToUpper(s[:1]) + s[1:] + "."
	}
	return s + "."
}

// singles05 is one case for each fault of SPECTRUM-05, and what the other laws
// say to it.
func singles05() (all []suite.Case) {
	for _, f := range all05() {
		d := single().with(0, f)
		v, _ := d.faults[0].verdict(strict)
		text := []string{sentence(f.says), fmt.Sprintf("SPECTRUM-05 answers %s, in %s.", v.code, v.at.words)}
		laws := []law{strict, resume, memory, restore}
		if _, known := f.laws[resume]; !known {
			text = append(text, otherLaws(f))
		}
		all = append(all, d.finish(name05(f, v.code), v.clause, text, laws...))
	}
	return all
}

func otherLaws(f fault) string {
	if _, ok := f.laws[memory]; ok {
		return "SPECTRUM-03 rejects it too; SPECTRUM-02 does not look for it (its section 7, test 5)."
	}
	return "SPECTRUM-02 and -03 know no signatures and no proof, and do not look at it."
}

func name05(f fault, code string) string {
	return "05-" + hyphens(code) + "-" + trimmed(f.name, hyphens(code))
}

// trimmed keeps a name from saying twice what it says.
func trimmed(name, code string) string {
	for _, prefix := range []string{"missing-", "malformed-", "artifact-extra-", "forbidden-"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.HasPrefix(code, "artifact-") || ok && prefix == "forbidden-" {
			return rest
		}
	}
	return name
}

// singles02 is one case for each fault that only SPECTRUM-02 and -03 know.
func singles02() (all []suite.Case) {
	for _, f := range all02() {
		d := single().with(0, f)
		v, _ := d.faults[0].verdict(resume)
		text := []string{sentence(f.says), "SPECTRUM-02 minds, and SPECTRUM-03 with it. The field is not signed, and SPECTRUM-05 does not look at it."}
		all = append(all, d.finish("02-"+hyphens(v.code)+"-"+f.name, v.clause, text, resume, memory, strict, restore))
	}
	d := single().with(0, otherBuild())
	v, _ := d.faults[0].verdict(resume)
	return append(all, d.finish("02-validator-build-mismatch", v.clause,
		[]string{sentence(otherBuild().says), "SPECTRUM-02 has this code for its strict mode only."}, resume))
}

// all06 are the faults that only a restore minds.
func all06() []fault {
	return slices.Concat([]fault{hashesEmpty()}, rootFaults(), escapes(), sourceFaults(), conflicts(), reservedNames())
}

func rootFaults() []fault {
	return []fault{
		rootMissing(),
		rootFault("empty", "the restore root is the empty string", "RESTORE_TARGET_MISSING", 0, []string{"--restore-root="}),
		rootRelative(),
		rootFault("dot", "the restore root is \".\"", "RESTORE_TARGET_NOT_ABSOLUTE", 10, rootAt(".")),
		rootNotExist(),
		rootFault("no-parent", "the directory of the restore root does not exist", "RESTORE_TARGET_NOT_EXIST", 20, rootAt("$WORK/none/root")),
		rootFault("dangling-link", "the restore root is a link to nowhere", "RESTORE_TARGET_NOT_EXIST", 20, rootAt("$WORK/dangling"),
			suite.Entry{Path: "dangling", Kind: suite.Link, Content: "nowhere"}),
		rootNotDirectory(),
		rootFault("fifo", "the restore root is a FIFO", "RESTORE_TARGET_NOT_DIRECTORY", 30, rootAt("$WORK/pipe"),
			suite.Entry{Path: "pipe", Kind: suite.FIFO}),
		rootFault("link-to-file", "the restore root is a link to a file", "RESTORE_TARGET_NOT_DIRECTORY", 30, rootAt("$WORK/link"),
			suite.Entry{Path: "link", Kind: suite.Link, Content: "plain"}, suite.Entry{Path: "plain", Content: "no directory\n"}),
		rootNotWritable(),
	}
}

func escapes() []fault {
	return []fault{
		escape("esc/x.txt", "escape-up", "../outside"),
		escape("esc/x.txt", "escape-absolute", "/"),
		escape("esc/x.txt", "escape-and-back", "../root/beside"),
		escape("esc/x.txt", "escape-loop", "esc"),
		escape("esc/deep/x.txt", "escape-above-deep", "../outside"),
		escape("esc", "escape-target-itself", "../outside/x"),
	}
}

func sourceFaults() []fault {
	parent := linkedSource("out/via/c.txt")
	parent.name, parent.says = "source-behind-link", "a directory on the way to out/via/c.txt is a link beneath the project root"
	parent.tree = func(d *draft, r *run) {
		r.disk["out/via/c.txt"] = nil
		d.put(suite.Entry{Path: project + "/out/via", Kind: suite.Link, Content: "../real"},
			suite.Entry{Path: project + "/real/c.txt", Content: "linked\n"})
	}
	return []fault{linkedSource("out/c.txt"), absolutelyLinkedSource("out/c.txt"), parent}
}

func conflicts() []fault {
	at := func(path string) string { return root + "/" + path }
	const a = "out/a.txt"
	return []fault{
		targetFile(),
		conflict(a, "same-file", "out/a.txt is there already, as it would be restored", suite.Entry{Path: at(a), Content: "alpha\n"}),
		conflict(a, "directory", "out/a.txt is a directory", suite.Entry{Path: at(a), Kind: suite.Dir}),
		conflict(a, "fifo", "out/a.txt is a FIFO", suite.Entry{Path: at(a), Kind: suite.FIFO}),
		conflict(a, "dangling-link", "out/a.txt is a link to nowhere beneath the root", suite.Entry{Path: at(a), Kind: suite.Link, Content: "nowhere"}),
		conflict(a, "link", "out/a.txt is a link to a file beneath the root", suite.Entry{Path: at(a), Kind: suite.Link, Content: "../mine.txt"},
			suite.Entry{Path: at("mine.txt"), Content: "mine\n"}),
		conflict(a, "parent-file", "out is a file", suite.Entry{Path: at("out"), Content: "mine\n"}),
		conflict(a, "parent-fifo", "out is a FIFO", suite.Entry{Path: at("out"), Kind: suite.FIFO}),
		conflict("RESTORE_MANIFEST.json", "manifest", "RESTORE_MANIFEST.json is there already", suite.Entry{Path: at("RESTORE_MANIFEST.json"), Content: "{}\n"}),
		conflict("RESTORE_REPORT.json", "report", "RESTORE_REPORT.json is there already, as a directory", suite.Entry{Path: at("RESTORE_REPORT.json"), Kind: suite.Dir}),
	}
}

func reservedNames() []fault {
	return []fault{
		reserved("RESTORE_MANIFEST.json", "manifest"),
		reserved("RESTORE_REPORT.json", "report"),
		reserved("RESTORE_MANIFEST.json/x", "below-manifest"),
		reserved("RESTORE_REPORT.json/x/y", "below-report"),
		reserved(".spectrum06_staging_x/y", "staging"),
		reserved(".spectrum06_", "prefix"),
		reserved(".spectrum06_chain_x.json", "chain-manifest"),
	}
}

// singles06 is one case for each fault that only a restore minds. The gate is
// open: SPECTRUM-05 accepts.
func singles06() (all []suite.Case) {
	for _, f := range all06() {
		d := single().with(0, f)
		all = append(all, d.finish(name06(f), f.laws[restore].clause, text06(f), laws06(f)...))
	}
	return all
}

func name06(f fault) string { return "06-" + hyphens(f.laws[restore].code) + "-" + f.name }

func text06(f fault) []string {
	v := f.laws[restore]
	return []string{sentence(f.says), fmt.Sprintf("SPECTRUM-05 has nothing against the bundle. A restore answers %s, phase %s, and writes nothing.", v.code, v.phase)}
}

// laws06 are the laws a case of a restore is run by. A link that is not a regular
// file is D4's in SPECTRUM-05; SPECTRUM-02 says nothing of links.
func laws06(f fault) []law {
	if slices.Contains(f.touches, forge.OutputHashes+":hashes") {
		return []law{strict, resume, memory, restore}
	}
	return []law{strict, restore}
}
