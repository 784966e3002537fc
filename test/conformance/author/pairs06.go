package main

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// pairs06 is every pair of one representative for each step and code of a
// restore that can hold together.
func pairs06() []suite.Case {
	reps := []fault{
		status("status", "failure", "failure"),
		missing(forge.Proof), doubled(forge.Proof), proofHash(), proofResultMissing(), notVerified("false", forge.Fields{"verified": false}),
		missing(forge.OutputHashes), doubled(forge.OutputHashes), hashesMissing(), hashesEmpty(),
		rootMissing(), rootRelative(), rootNotExist(), rootNotDirectory(), rootNotWritable(),
		illFormedPath("../bait.txt", "dotdot", traversal, "bait.txt"),
		illFormedPath("out/bait\x00.txt", "nul", nullByte, project+"/out/bait"),
		escape("esc/x.txt", "escape-up", "../outside"),
		linkedSource("out/c.txt"), targetFile(), existingManifest(),
		reserved(".spectrum06_staging_x/y", "staging"),
	}
	inGate := func(f, g fault) bool { return f.name != "proof-verified-false" || g.name != "status-status-failure" }
	all := pairsOf(restore, reps, []law{restore, strict}, inGate)
	all = append(all, pairsOf(restore, []fault{existingManifest(), reserved("RESTORE_MANIFEST.json", "manifest")}, []law{restore, strict}, nil)...)
	return slices.Concat(all, pathPairs(), samePath())
}

func existingManifest() fault {
	return conflict("RESTORE_MANIFEST.json", "manifest", "RESTORE_MANIFEST.json is there already",
		suite.Entry{Path: root + "/RESTORE_MANIFEST.json", Content: "{}\n"})
}

// pathPairs are all two kinds of unsafe paths, the one at an earlier path than
// the other: the path decides, and not the kind (8.4.2, 8.4.5).
func pathPairs() (all []suite.Case) {
	kinds := func(dir string) []fault {
		return []fault{
			illFormedPath(dir+"/../bait.txt", "traversal-at-"+dir, traversal, project+"/bait.txt"),
			illFormedPath(dir+"\x00", "nul-at-"+dir, nullByte, project+"/"+dir),
			escape(dir+"/x.txt", "escape-at-"+dir, "../outside"),
		}
	}
	for i, f := range kinds("aaa") {
		for j, g := range kinds("zzz") {
			if i == j {
				continue
			}
			if c, ok := pair(restore, single().with(0, g).with(0, f), []law{restore, strict}); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// samePath are paths that are unsafe in two ways (8.4.5).
func samePath() (all []suite.Case) {
	for _, p := range []struct{ path, slug, code, says string }{
		{"esc/../x.txt", "traversal-before-escape", traversal, "a path has a \"..\", and its first component is a link out of the root"},
		{"esc/x\x00", "nul-before-escape", nullByte, "a path has a NUL, and its first component is a link out of the root"},
		{"../x\x00", "traversal-before-nul", traversal, "a path has a \"..\" and a NUL"},
	} {
		f := illFormedPath(p.path, p.slug, p.code, "")
		d := single().with(0, f)
		d.put(suite.Entry{Path: root + "/esc", Kind: suite.Link, Content: "../outside"}, suite.Entry{Path: "outside", Kind: suite.Dir})
		text := []string{"One path, unsafe in two ways: " + p.says + ".", "Of one path, traversal is tested before NUL, and NUL before links."}
		all = append(all, d.finish("06-same-path-"+p.slug, "SPECTRUM-06 section 8.4.5, D3", text, restore, strict))
	}
	return all
}

// Chains.

var runOutput = []string{"one/a.txt", "two/b.txt"}

// chains05 are faults in the second run, and a late fault of the first run with
// an early one of the second.
func chains05() (all []suite.Case) {
	dir := suite.Entry{Kind: suite.Dir}
	early := []fault{
		missing(forge.Status), extraArtifact("SIGNATURE_2.json"), doubled(forge.Identity),
		algorithm("rsa", "rsa"), hashesMissing(), decision("reject", "REJECT"),
	}
	late := []fault{
		bitFlipped(), notVerified("false", forge.Fields{"verified": false}), forbidden("tmp", "directory", dir),
		changed(runOutput[0], "changed", upper), replaced(runOutput[0], "missing", "is not there", nil), status("cmp01", "fail", "fail"),
	}
	for _, f := range late {
		for _, g := range early {
			if c, ok := pair(strict, chain().with(0, f).with(1, g), []law{strict, memory, restore}); ok {
				all = append(all, c)
			}
		}
	}
	for _, f := range append(early, second05(late)...) {
		d := chain().with(1, f)
		v, _ := d.faults[0].verdict(strict)
		text := []string{"In the second of two runs, " + f.says + ".", "The first run is good; the verdict names the second, and nothing of the chain is accepted."}
		laws := slices.DeleteFunc([]law{strict, memory, restore}, func(l law) bool { return !d.decided(l) })
		all = append(all, d.finish("05-chain-second-"+f.name, v.clause+"; SPECTRUM-05, verification of a chain", text, laws...))
	}
	return all
}

// second05 are the late faults as they are in the second run.
func second05(late []fault) []fault {
	return []fault{
		late[0], late[1], late[2],
		changed(runOutput[1], "changed", upper), replaced(runOutput[1], "missing", "is not there", nil), late[5],
	}
}

// pairs03 are pairs in a chain as SPECTRUM-03 sees it: every two of its checks,
// in the same run and over both runs.
func pairs03() (all []suite.Case) {
	reps := func(run int) []fault {
		return []fault{
			status("status", "failure", "failure"), semver("unknown", "9.9.9"), changed(runOutput[run], "changed", upper),
			completed("not-rfc3339", "is no time of RFC 3339", "yesterday"),
			inputs("unknown", "is no output of this run or an earlier one", []any{"three/c.txt"}),
			forbidden("logs", "directory", suite.Entry{Kind: suite.Dir}),
		}
	}
	later := notAfter("equal", "is that of the run before", "2026-01-01T03:04:05Z")
	for i, f := range reps(0) {
		for _, g := range append(reps(1), later) {
			if f.name == "order-not-rfc3339" && g.name == later.name {
				continue // the second is a fault only after a time
			}
			if c, ok := pair(memory, chain().with(0, f).with(1, g), []law{memory}); ok {
				all = append(all, c)
			}
		}
		same := append(reps(1), later)
		for _, g := range same[i+1:] {
			if c, ok := pair(memory, chain().with(1, same[i]).with(1, g), []law{memory, strict}); ok {
				c.Name += "-in-one-run"
				all = append(all, c)
			}
		}
	}
	return all
}

// chains06 are pairs over the two runs of a chain, as a restore sees them.
func chains06() (all []suite.Case) {
	reps := func(n string) []fault {
		return []fault{
			bitFlipped(), missing(forge.Proof), hashesEmpty(),
			runDirExists("a directory", suite.Entry{Kind: suite.Dir}),
			illFormedPath(n+"\x00", "nul", nullByte, ""),
			linkedSource(n + "/c.txt"), reserved("RESTORE_MANIFEST.json/"+n, "manifest"),
		}
	}
	for _, f := range reps("one") {
		for _, g := range reps("two") {
			if c, ok := pair(restore, chain().with(0, f).with(1, g), []law{restore, strict}); ok {
				all = append(all, c)
			}
		}
	}
	for _, f := range reps("one") {
		for _, g := range []fault{rootMissing(), rootNotExist(), rootNotDirectory()} {
			if c, ok := pair(restore, chain().with(0, f).with(1, g), []law{restore, strict}); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// wholeChains are faults of a chain itself.
func wholeChains() []suite.Case {
	empty := newDraft()
	empty.flags = append(empty.flags, "--chain")
	empty.put(suite.Entry{Path: project, Kind: suite.Dir})
	empty.faults = []applied{{fault: fault{laws: map[law]verdict{
		strict:  {at: place{step: chainItself}, code: "CHAIN_EMPTY", noRun: true},
		restore: gateFailed,
	}}}}
	all := []suite.Case{
		empty.finish("05-chain-empty", "SPECTRUM-05, verification of a chain; D5",
			[]string{"A chain without a run. A restore of it fails in the strict gate."}, strict, restore),
		duplicate("05-chain-duplicate-run", "The same run twice. It is good; the chain is not."),
		duplicate("05-chain-duplicate-before-signature-invalid",
			"The same run twice, and its signature is wrong. The ids are looked at before any run is verified.", bitFlipped()),
		duplicate("06-chain-duplicate-before-proof-missing",
			"The same run twice, and its proof is missing. The ids are looked at before any run is verified.", missing(forge.Proof)),
		duplicate("06-chain-duplicate-before-root-missing",
			"The same run twice, and no restore root. The ids are looked at first.", rootMissing()),
		sameName(), notText(),
	}
	for _, e := range []struct {
		how   string
		entry suite.Entry
	}{
		{"a file", suite.Entry{Content: "mine\n"}}, {"a directory", suite.Entry{Kind: suite.Dir}},
		{"a dangling link", suite.Entry{Kind: suite.Link, Content: "nowhere"}}, {"a FIFO", suite.Entry{Kind: suite.FIFO}},
	} {
		for i := range 2 {
			d := chain().with(i, runDirExists(e.how, e.entry))
			name := fmt.Sprintf("06-chain-target-dir-exists-%d-%s", i+1, slugWords(e.how))
			all = append(all, d.finish(name, "SPECTRUM-06 section 6.3, D5",
				[]string{fmt.Sprintf("In the restore root, the name of run %d of the chain is taken by %s.", i+1, e.how)}, restore, strict))
		}
	}
	return all
}

func duplicateFault() fault {
	return fault{laws: map[law]verdict{
		strict:  {at: place{step: chainItself}, code: "CHAIN_DUPLICATE_RUN", noRun: true},
		restore: in06(stepRunIDs, 0, "run ids", "RESTORE_CHAIN_RUN_ID_DUPLICATE"),
	}}
}

func duplicate(name, text string, faults ...fault) suite.Case {
	r := newRun(1, forge.Outputs{"out/a.txt": "alpha\n"})
	d := newDraft(r, r).with(1, duplicateFault())
	for _, f := range faults {
		d.with(0, f)
	}
	return d.finish(name, "SPECTRUM-05, verification of a chain; SPECTRUM-06 section 6.3; D5", []string{text}, strict, restore)
}

// sameName are two different runs in two places, with one run id.
func sameName() suite.Case {
	d := chain().with(1, duplicateFault())
	d.runs[1].dir = project + "/LAW/CONTRACTS/_runs/run-1"
	d.runs[1].id = "run-1"
	return d.finish("05-chain-duplicate-by-other-directory", "SPECTRUM-05, verification of a chain; D5",
		[]string{"Two different runs, in two directories of the same name: the name is the run id."}, strict, restore)
}

// notText is a run id that no JSON can hold, so there is no chain root.
func notText() suite.Case {
	d := chain()
	d.runs[1].id = "run-\xff"
	d.runs[1].dir = runsDir + "/run-\xff"
	d.faults = []applied{{fault: fault{laws: map[law]verdict{
		strict: {at: place{step: chainRootStep}, code: "SERIALIZATION_INVALID", noRun: true},
	}}}}
	return d.finish("05-chain-serialization-invalid", "SPECTRUM-04, chain root; canonical JSON is UTF-8",
		[]string{"Two good runs. The name of the second is not UTF-8, so the chain preimage cannot be written."}, strict)
}
