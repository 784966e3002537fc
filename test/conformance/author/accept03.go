package main

import (
	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

func goodChain(name, clauses, text string, d *draft) suite.Case {
	return d.finish("accept-chain-"+name, clauses, []string{text}, strict, memory, restore)
}

func chainsAccepted() []suite.Case {
	three := newDraft(newRun(1, forge.Outputs{"one": "1\n"}), newRun(2, forge.Outputs{"two": "2\n"}), newRun(3, forge.Outputs{"three": "3\n"}))
	shared := newDraft(newRun(1, forge.Outputs{"out": "x\n", "one": "1\n"}), newRun(2, forge.Outputs{"out": "x\n"}))
	order := chain()
	order.runs[0].id, order.runs[1].id = "zulu", "alpha"
	order.runs[0].dir, order.runs[1].dir = runsDir+"/zulu", runsDir+"/alpha"
	kept := chain()
	kept.put(suite.Entry{Path: root + "/one/a.txt", Content: "mine\n"}, suite.Entry{Path: root + "/RESTORE_MANIFEST.json", Content: "{}\n"})
	manifest := newDraft(newRun(1, forge.Outputs{"one": "1\n"}), newRun(2, forge.Outputs{"two": "2\n"}))
	manifest.runs[0].id, manifest.runs[0].dir = "RESTORE_MANIFEST", runsDir+"/RESTORE_MANIFEST"
	uses := func(value any) fault { return edits(forge.TaskSpec, set("inputs", value)) }
	return []suite.Case{
		goodChain("of-two", "SPECTRUM-06 section 6.2", "Two good runs: a directory for each, with its own artifacts and the one chain root.", chain()),
		goodChain("of-three", "SPECTRUM-06 section 6.2", "Three good runs.", three),
		goodChain("shared-output", "SPECTRUM-06 section 6.3", "Two runs sign the same file: each restores its own.", shared),
		goodChain("order-of-ids", "SPECTRUM-06 section 6.1", "The order is the caller's, and not that of the names.", order),
		goodChain("root-keeps", "SPECTRUM-06 section 6.3", "The restore root holds what single mode would mind.", kept),
		goodChain("odd-run-id", "D10", "A run id that is almost a reserved name.", manifest),
		goodChain("reference-earlier", "SPECTRUM-03 section 3 rule 3", "The second run's input is an output of the first.", chain().with(1, uses([]any{"one/a.txt"}))),
		goodChain("reference-itself", "SPECTRUM-03 section 3 rule 3; D12", "A run's input is its own output.", chain().with(0, uses([]any{"one/a.txt"}))),
		goodChain("reference-both", "SPECTRUM-03 section 3 rule 3; D12", "Inputs from both runs, one of them twice.", chain().with(1, uses([]any{"two/b.txt", "one/a.txt", "two/b.txt"}))),
		goodChain("no-inputs", "SPECTRUM-03 section 3 rule 3", "TASK_SPEC.json has no inputs.", chain().with(1, edits(forge.TaskSpec, drop("inputs")))),
	}
}

// times are those of two consecutive runs; absent is "".
type times struct{ name, text, one, two string }

func at(when string) func(forge.Fields) {
	if when == "" {
		return drop("completed_at")
	}
	return set("completed_at", when)
}

func timesAccepted() (all []suite.Case) {
	for _, t := range []times{
		{"absent", "Neither run says when it was completed.", "", ""},
		{"absent-first", "Only the second run says when it was completed.", "", "2026-01-01T00:00:00Z"},
		{"absent-second", "Only the first run says when it was completed.", "2026-01-01T00:00:00Z", ""},
		{"nanosecond", "The second run was completed a nanosecond later.", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000001Z"},
		{"long-fraction", "The second run was completed later, in the twelfth digit.", "2026-01-01T00:00:00.000000000001Z", "2026-01-01T00:00:00.000000000002Z"},
		{"zones", "The second run was completed later, though its clock shows less.", "2026-01-01T02:00:00+02:00", "2025-12-31T23:00:01-01:00"},
		{"lower-case", "RFC 3339 takes t and z in lower case.", "2026-01-01t00:00:00z", "2026-01-01t00:00:01z"},
		{"unknown-zone", "RFC 3339 takes -00:00.", "2026-01-01T00:00:00-00:00", "2026-01-01T00:00:01-00:00"},
		{"leap-day", "The 29th of February of a leap year.", "2024-02-29T23:59:59Z", "2024-03-01T00:00:00Z"},
		{"leap-second", "RFC 3339 takes a leap second; it is after the second before and before the one after.", "2016-12-31T23:59:60Z", "2017-01-01T00:00:01Z"},
	} {
		d := chain().with(0, edits(forge.Status, at(t.one))).with(1, edits(forge.Status, at(t.two)))
		all = append(all, goodChain("time-"+t.name, "SPECTRUM-03 section 3 rule 2; D12; RFC 3339", t.text, d))
	}
	return all
}

// singles03 are faults that only SPECTRUM-03 knows; the strict law and a restore
// do not mind.
func singles03() (all []suite.Case) {
	const before = "2026-01-01T03:04:05Z" // the first run's
	faults := []fault{
		notAfter("equal", "is that of the run before", before),
		notAfter("earlier", "is before the run before", "2025-12-31T23:59:59Z"),
		notAfter("zone-equal", "is the same instant as that of the run before", "2026-01-01T05:04:05+02:00"),
		notAfter("zone-earlier", "is earlier than the run before, though its clock shows more", "2026-01-01T04:04:05+02:00"),
		notAfter("fraction-equal", "is the same instant as that of the run before", "2026-01-01T03:04:05.000Z"),
	}
	for how, value := range map[string]any{
		"null": nil, "number": 1767236645, "empty": "", "date": "2026-01-02", "no-zone": "2026-01-02T03:04:05", "space": "2026-01-02 03:04:05Z",
		"comma": "2026-01-02T03:04:05,5Z", "one-digit-hour": "2026-01-02T3:04:05Z", "zone-without-colon": "2026-01-02T03:04:05+0000",
		"zone-25": "2026-01-02T03:04:05+25:00", "month-13": "2026-13-02T03:04:05Z", "february-29": "2026-02-29T03:04:05Z",
		"hour-24": "2026-01-02T24:00:00Z", "minute-60": "2026-01-02T03:60:05Z", "second-61": "2026-01-02T03:04:61Z",
		"trailing": "2026-01-02T03:04:05Z ", "point": "2026-01-02T03:04:05.Z", "five-digit-year": "12026-01-02T03:04:05Z",
		"other-digits": "\u0662026-01-02T03:04:05Z",
	} {
		faults = append(faults, completed(how, "is no time of RFC 3339", value))
	}
	faults = append(faults,
		inputs("unknown", "is no output of this run or an earlier one", []any{"three/c.txt"}),
		inputs("second-unknown", "names first an output, then none", []any{"one/a.txt", "three/c.txt"}),
		inputs("other-form", "is no output, though it leads to one", []any{"./one/a.txt"}),
		inputs("text", "is not an array", "one/a.txt"), inputs("null", "is not an array", nil), inputs("object", "is not an array", forge.Fields{}),
		inputs("number", "holds something that is no text", []any{7}),
	)
	for _, f := range faults {
		d := chain().with(1, f)
		v, _ := d.faults[0].verdict(memory)
		text := []string{"In the second of two runs, " + f.says + ".", "SPECTRUM-03 alone minds."}
		all = append(all, d.finish("03-"+hyphens(v.code)+"-"+f.name, v.clause, text, memory, strict, restore))
	}
	later := chain().with(0, inputs("later", "is an output of a later run", []any{"two/b.txt"}))
	return append(all, later.finish("03-invalid-chain-reference-later-run", "SPECTRUM-03 sections 3 and 7.4",
		[]string{"The first run's input is an output of the second: it refers to the future."}, memory, strict, restore))
}

func slugWords(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == ' ' {
			b[i] = '-'
		}
	}
	return string(b)
}
