package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// A pair holds two faults at once; the law says which of them is the verdict.

// pairs05 is every pair of one representative for each place and code of
// SPECTRUM-05 that can hold together in one run.
func pairs05() (all []suite.Case) {
	reps := slices.Concat(ranks05(), []fault{
		extraArtifact("VALIDATOR_IDENTITY_2.json"),
		identityExtra(), identityMissing("algorithm"), algorithm("rsa", "rsa"),
		keyForm("upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
		derivation("other", "that of another key", thirdID),
		hashesMissing(), hashesForm("array", []any{}),
		payloadExtra(), payloadMissing("decision"),
		rootMismatch("other", "is another one", func(string) any { return strings.Repeat("0", 64) }),
		decision("reject", "REJECT"),
		payloadIdentity("other", "is that of another key", func(string) any { return otherID }),
		signatureExtra("note"), signatureMissing("payload_type"),
		signatureForm("payload_type", "chain", "is \"CHAIN\"", func(string) any { return "CHAIN" }),
		signatureIdentity(), bitFlipped(),
		proofHash(), proofResultMissing(), notVerified("false", forge.Fields{"verified": false}),
		forbidden("logs", "directory", suite.Entry{Kind: suite.Dir}),
		replaced("out/a.txt", "missing", "is not there", nil), changed("out/b.txt", "changed", upper),
		status("status", "failure", "failure"),
	})
	all = pairsOf(strict, reps, []law{strict, restore}, notBothRanks)
	return append(all, pairsOf(strict, presenceOrder(), []law{strict, restore}, nil)...)
}

// ranks05 stand for phases 1 and 2 where they meet with the other phases.
func ranks05() []fault {
	return []fault{missing(forge.Proof), doubled(forge.Status)}
}

func notBothRanks(f, g fault) bool {
	isRank := func(f fault) bool {
		return strings.HasPrefix(f.name, "missing-") || strings.HasPrefix(f.name, "malformed-")
	}
	return !(isRank(f) && isRank(g))
}

func doubled(name string) fault {
	return malformed(name, "double-key", "has a key twice", text(func(good string) string { return "{" + firstMember(good) + "," + good[1:] }))
}

// presenceOrder are all artifacts missing, and all malformed: every pair of them
// shows the order of the artifacts.
func presenceOrder() (all []fault) {
	for _, name := range forge.Names {
		all = append(all, missing(name))
	}
	for _, name := range forge.Names {
		if name != forge.TaskSpec {
			all = append(all, doubled(name))
		}
	}
	return all
}

// pairsOf makes a case of each pair that can hold together and whose order the
// law decides and shows.
func pairsOf(l law, faults []fault, laws []law, also func(f, g fault) bool) (all []suite.Case) {
	for i, f := range faults {
		for _, g := range faults[i+1:] {
			if also != nil && !also(f, g) {
				continue
			}
			if c, ok := pair(l, single().with(0, f).with(0, g), laws); ok {
				all = append(all, c)
			}
		}
	}
	return all
}

// pair is the case of a draft with two faults, if there is anything to decide.
func pair(l law, d *draft, laws []law) (suite.Case, bool) {
	a, b := d.faults[0], d.faults[1]
	v, okA := a.verdict(l)
	w, okB := b.verdict(l)
	together := a.run == b.run || a.fault.ofRoot() || b.fault.ofRoot()
	if !okA || !okB || together && clash(a.fault, b.fault) || !d.decided(l) {
		return suite.Case{}, false
	}
	if w.at.compare(v.at) < 0 {
		a, b, v, w = b, a, w, v
	}
	if d.result(l, &v) == d.result(l, &w) {
		return suite.Case{}, false
	}
	text := []string{
		"Two faults. " + first(d, a, v), second(d, b, w),
		reason(l, d, v, w),
	}
	laws = slices.DeleteFunc(slices.Clone(laws), func(other law) bool {
		return !d.decided(other) || l == strict && other == restore && !d.tellsRestore()
	})
	return d.finish(pairName(l, d, a, b), bothClauses(v, w), text, laws...), true
}

func bothClauses(v, w verdict) string {
	if v.clause == w.clause {
		return v.clause
	}
	return v.clause + "; " + w.clause
}

// tellsRestore reports whether a restore has a code of its own for one of the faults. Otherwise
// it says no more than that SPECTRUM-05 rejects.
func (d *draft) tellsRestore() bool {
	return slices.ContainsFunc(d.verdicts(restore), func(v verdict) bool { return v.at.step != stepGate })
}

func pairName(l law, d *draft, a, b applied) string {
	name := string(l) + "-pair-"
	if len(d.runs) > 1 {
		return string(l) + "-chain-" + ofRun(a) + "-before-" + ofRun(b)
	}
	return name + a.fault.name + "-before-" + b.fault.name
}

// ofRun is the name of a fault and, where it has one, the number of its run.
func ofRun(a applied) string {
	if a.fault.ofRoot() {
		return a.fault.name
	}
	return fmt.Sprintf("%d-%s", a.run+1, a.fault.name)
}

// ofRoot reports whether a fault is the restore root's, and no run's.
func (f fault) ofRoot() bool { return slices.Contains(f.touches, "root") }

func where(d *draft, a applied) string {
	if len(d.runs) > 1 && !a.fault.ofRoot() {
		return "in " + d.runs[a.run].id + ", "
	}
	return ""
}

func first(d *draft, a applied, v verdict) string {
	return fmt.Sprintf("The first: %s%s (%s).", where(d, a), a.fault.says, v.code)
}

func second(d *draft, b applied, w verdict) string {
	return fmt.Sprintf("The second: %s%s (%s).", where(d, b), b.fault.says, w.code)
}

// reason says why the first comes first.
func reason(l law, d *draft, v, w verdict) string {
	p, q := v.at, w.at
	switch {
	case p.step != q.step:
		return fmt.Sprintf("The first decides: %s before %s (%s).", p.words, q.words, orderClause(l))
	case p.run != q.run && l == restore && p.step == stepArtifacts:
		return "The first decides: after the gate the runs are gone through one by one, in chain order (D2)."
	case p.run != q.run:
		return "The first decides: the runs are gone through in chain order."
	case p.words != q.words:
		return fmt.Sprintf("The first decides: %s before %s (%s).", p.words, q.words, orderClause(l))
	case p.path != q.path:
		return fmt.Sprintf("The first decides: within %s paths ascend by their bytes (%s).", p.words, pathClause(l))
	case v.code == w.code:
		return fmt.Sprintf("The first decides: %s goes through them in the order in which the law lists them.", p.words)
	default:
		return fmt.Sprintf("The first decides: both are found in %s, and %s is looked for before %s.", p.words, v.code, w.code)
	}
}

func orderClause(l law) string {
	return map[law]string{
		strict: "SPECTRUM-05, the phases", resume: "SPECTRUM-02 section 3.1",
		memory: "D12", restore: "SPECTRUM-06 sections 8.4.1 to 8.4.5, D1, D2, D5",
	}[l]
}

func pathClause(l law) string {
	if l == restore {
		return "SPECTRUM-06 section 8.4.2"
	}
	return "D18"
}

// orders05 are pairs within one phase that the representatives do not show.
func orders05() (all []suite.Case) {
	laws := []law{strict, resume, memory, restore}
	dir := suite.Entry{Kind: suite.Dir}
	all = pairsOf(strict, []fault{
		forbidden("logs", "directory", dir), forbidden("tmp", "directory", dir),
		forbidden("transcript.json", "file", suite.Entry{Content: "{}\n"}),
	}, laws, nil)
	all = append(all, pairsOf(strict, []fault{
		changed("out/a.txt", "changed", upper), changed("out/b.txt", "changed", upper),
		replaced("out/a.txt", "missing", "is not there", nil), replaced("out/b.txt", "missing", "is not there", nil),
		replaced("out/a.txt", "fifo", "is a FIFO", &file{Kind: suite.FIFO}),
	}, laws, func(f, g fault) bool { return notTogether(f, g, "output-a-txt-missing", "output-b-txt-changed") })...)
	all = append(all, bytewise()...)
	return append(all, pairsOf(strict, []fault{
		signatureExtra("note"), signatureMissing("signature"), signatureMissing("validator_id"),
		signatureForm("validator_id", "upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
		signatureForm("signature", "short", "is a digit short", func(s string) any { return s[1:] }),
		bitFlipped(), signatureIdentity(),
	}, []law{strict, restore}, func(f, g fault) bool {
		return !notTogetherAny(f, g)
	})...)
}

// notTogether keeps out a pair that is in another table.
func notTogether(f, g fault, a, b string) bool {
	return !(f.name == a && g.name == b || f.name == b && g.name == a)
}

// notTogetherAny reports whether both faults are among the representatives.
func notTogetherAny(f, g fault) bool {
	reps := []string{"signature-field-extra-note", "signature-identity-mismatch", "signature-invalid-bit"}
	return slices.Contains(reps, f.name) && slices.Contains(reps, g.name)
}

// bytewise are pairs of paths whose order by bytes is not that by letters or by
// components.
func bytewise() (all []suite.Case) {
	for _, paths := range [][2]string{
		{"out/a-b.txt", "out/a.txt"}, {"out/Z.txt", "out/a.txt"}, {"out/a.txt", "out/a.txt.bak"},
		{"out-x/a.txt", "out/a.txt"}, {"out/10", "out/9"}, {"out/\uffee", "out/\U0001f600"},
		{"out/z", "out/\u00e4"}, {"out/e\u0301", "out/\u00e9"},
	} {
		f, g := absent(paths[0]), absent(paths[1])
		c, ok := pair(strict, single().with(0, g).with(0, f), []law{strict, memory, restore})
		if !ok {
			panic(paths)
		}
		c.Name = "05-path-order-" + fmt.Sprintf("%02d", len(all)+1)
		all = append(all, c)
	}
	return all
}

// absent is an output that is signed and not there.
func absent(path string) fault {
	f := replaced(path, "absent", "is signed and not there", nil)
	f.signed = func(r *run) { r.sign(path, "x\n") }
	return f
}

// pairs02 are the pairs of SPECTRUM-02.
func pairs02() []suite.Case {
	return pairsOf(resume, []fault{
		doubled(forge.Status), status("status", "failure", "failure"), status("cmp01", "fail", "fail"),
		doubled(forge.OutputHashes), semver("unknown", "9.9.9"), buildID("empty", ""), otherBuild(),
		hashesMissing(), replaced("out/a.txt", "missing", "is not there", nil), changed("out/b.txt", "changed", upper),
		missing(forge.Status), missing(forge.OutputHashes),
	}, []law{resume}, nil)
}
