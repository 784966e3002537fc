package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// What is unusual, and legal. Every case is restored, too, byte for byte.

var every = []law{strict, resume, memory, restore}

// good is a case that every law accepts.
func good(name, clauses, text string, d *draft) suite.Case {
	return d.finish("accept-"+name, clauses, []string{text}, every...)
}

// does is a change that no law minds.
func does(f fault) *draft { return single().with(0, f) }

func accepted() []suite.Case {
	return slices.Concat(plainAccepted(), artifactsAccepted(), textsAccepted(), outputsAccepted(), rootsAccepted(), chainsAccepted(), timesAccepted())
}

func plainAccepted() []suite.Case {
	law := single()
	law.runs[0].dir = project + "/LAW/CONTRACTS/_runs/run-1"
	named := single()
	named.runs[0].dir, named.outside = "elsewhere/run-1", []string{"--project-root", project}
	named.flags = append(named.flags, "--project-root", project)
	odd := single()
	odd.runs[0].id = "r\u00fcn 1 \U0001f4a1"
	odd.runs[0].dir = runsDir + "/" + odd.runs[0].id
	one := single()
	one.flags = append(one.flags, "--chain")
	cases := []suite.Case{
		good("single", "SPECTRUM-05; SPECTRUM-06 section 7", "A good run.", single()),
		good("law-contracts", "SPECTRUM-05", "The run directory is below LAW/CONTRACTS/_runs.", law),
		restoreNamed(named),
		good("run-id-odd", "SPECTRUM-05", "The name of the run directory has a space and characters beyond ASCII.", odd),
		one.finish("accept-chain-of-one", "SPECTRUM-06 sections 6.2 and 7.5", []string{"A chain of one run is a chain: a directory for the run, and a chain root."}, strict, memory, restore),
	}
	return cases
}

// restoreNamed names the project root once for each command.
func restoreNamed(d *draft) suite.Case {
	d.flags = slices.DeleteFunc(d.flags, func(s string) bool { return s == "--project-root" || s == project })
	return good("project-root-named", "SPECTRUM-05", "The run directory is anywhere, and the project root is named.", d)
}

func beside(entries ...suite.Entry) fault {
	return fault{raw: func(r *run) { r.extra = append(r.extra, entries...) }}
}

func edits(name string, change func(forge.Fields)) fault {
	return fault{signed: func(r *run) { r.Edit(name, change) }}
}

func editsSealed(name string, change func(forge.Fields)) fault {
	return fault{sealed: func(r *run) { r.Edit(name, change) }}
}

func artifactsAccepted() []suite.Case {
	hashed := func(change func(forge.Fields), how func(string) string) fault {
		return editsSealed(forge.Proof, func(f forge.Fields) {
			change(f)
			f["proof_hash"] = how(forge.ProofHash(f))
		})
	}
	same := func(s string) string { return s }
	nothing := func(forge.Fields) {}
	cases := []suite.Case{
		good("ignored-files", "D9", "Files that are no artifacts, some with names almost like one.", does(beside(
			suite.Entry{Path: "NOTES.txt", Content: "notes\n"}, suite.Entry{Path: "SIGNATURE.json.bak", Content: "{}\n"},
			suite.Entry{Path: "signature.json", Content: "{}\n"}, suite.Entry{Path: "validator_identity_2.json", Content: "{}\n"},
			suite.Entry{Path: "MY_SIGNATURE.json", Content: "{}\n"}, suite.Entry{Path: "VALIDATOR_IDENTITY.txt", Content: "{}\n"},
			suite.Entry{Path: "SIGNED_PAYLOADS", Kind: suite.Dir}, suite.Entry{Path: "PROOF_2.json", Content: "{}\n"},
			suite.Entry{Path: "log", Kind: suite.Dir}, suite.Entry{Path: "Logs", Kind: suite.Dir}, suite.Entry{Path: "transcript.jsonl", Content: "\n"},
			suite.Entry{Path: "sub/logs", Kind: suite.Dir}))),
		good("signed-at", "SPECTRUM-04, SIGNATURE.json", "signed_at is there, and is never verified.", does(editsSealed(forge.Signature, set("signed_at", "2026-01-02T03:04:05Z")))),
		good("signed-at-anything", "SPECTRUM-04, SIGNATURE.json", "signed_at may be anything.", does(editsSealed(forge.Signature, set("signed_at", []any{nil, 7})))),
		good("proof-hash", "SPECTRUM-04, PROOF.json", "A proof_hash that fits.", does(hashed(nothing, same))),
		good("proof-hash-upper", "SPECTRUM-04, PROOF.json", "A proof_hash in upper case fits in lower case.", does(hashed(nothing, strings.ToUpper))),
		good("proof-hash-escapes", "SPECTRUM-04, PROOF.json", "The proof hash is over the form in which all but U+0020 to U+007E is escaped.", does(hashed(
			set("note", "\u00e9 \u007f \u2028 / \\ \" \U0001f4a1 \b\f\n\r\t\x01"), same))),
		good("proof-hash-short", "SPECTRUM-04, PROOF.json", "A proof_hash that is not 64 hex digits is none.", does(editsSealed(forge.Proof, set("proof_hash", "abc")))),
		good("proof-hash-null", "SPECTRUM-04, PROOF.json", "A proof_hash that is null is none.", does(editsSealed(forge.Proof, set("proof_hash", nil)))),
		good("proof-fields", "SPECTRUM-04, PROOF.json", "The proof has more fields.", does(editsSealed(forge.Proof, func(f forge.Fields) {
			f["note"] = "x"
			f["restoration_result"].(forge.Fields)["restored"] = 7
		}))),
		good("task-spec-empty", "SPECTRUM-04, TASK_SPEC.json", "TASK_SPEC.json is {}: only its bytes count.", does(fault{signed: func(r *run) { r.Run[forge.TaskSpec] = []byte("{}") }})),
		good("status-fields", "SPECTRUM-04, STATUS.json", "STATUS.json has more fields: the whole object goes into the root.", does(edits(forge.Status, set("note", forge.Fields{"b": []any{}, "a": nil})))),
		good("hashes-fields", "SPECTRUM-04, OUTPUT_HASHES.json", "OUTPUT_HASHES.json has more fields, which do not go into the root.", does(edits(forge.OutputHashes, set("note", 7)))),
		good("small-order-key", "D19", "The public key is of small order, so that a signature can be made without a private key. This law takes it; trust is a matter of the layer above.", does(fault{raw: smallOrder})),
	}
	for _, v := range []string{"1.0.1", "1.1.0"} {
		cases = append(cases, good("validator-semver-"+v, "SPECTRUM-02 section 2.2", "validator_semver "+v+" is in the known set (1.0.0, 1.0.1, 1.1.0).", does(edits(forge.OutputHashes, set("validator_semver", v)))))
	}
	return cases
}

// rewritten is an artifact in other bytes with the same meaning, or others.
func rewritten(name string, change func(good string) string) fault {
	return fault{signed: func(r *run) { r.Run[name] = []byte(change(string(r.Run[name]))) }}
}

func member(text string) func(string) string {
	return func(good string) string { return strings.TrimSuffix(good, "}") + "," + text + "}" }
}

func textsAccepted() (all []suite.Case) {
	numbers := map[string]string{
		"big-integer": `9007199254740993`, "huge-integer": `-123456789012345678901234567890`, "minus-zero": `-0`,
		"minus-zero-float": `-0.0`, "integral-float": `1.0`, "exponent": `1e3`, "capital-exponent": `1E+2`, "negative-exponent": `25e-1`,
		"large-exponent": `1e21`, "small": `1e-7`, "shortest": `0.1000000000000000055511151231257827`,
		"not-shortest": `0.30000000000000004`, "denormal": `5e-324`, "largest": `1.7976931348623157e308`, "zero-exponent": `0e99`, "underflow": `1e-400`,
	}
	for _, how := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, good("number-"+how, "D7", fmt.Sprintf("STATUS.json holds the number %s, written as canonical JSON in the root.", numbers[how]),
			does(rewritten(forge.Status, member(`"number":`+numbers[how])))))
	}
	return append(all,
		good("text-spaces", "SPECTRUM-04, canonical JSON", "STATUS.json has white space between its tokens, which the root does not see.", does(rewritten(forge.Status, func(good string) string {
			return " " + spaced(good) + "\n"
		}))),
		good("text-escapes", "SPECTRUM-04, canonical JSON", "STATUS.json has escapes that canonical JSON does not use, and the other way round.", does(rewritten(forge.Status, member(
			`"\u006e\/ote":"\u00e9\u20ac\ud83d\udca1\u0000\u001f\u007f\b\f\n\r\t\"\\\/ <>&"`)))),
		good("text-key-order", "SPECTRUM-04, canonical JSON", "Keys ascend by their UTF-8 bytes, and not by UTF-16.", does(rewritten(forge.Status, member(
			`"\uffee":1,"\ud83d\ude00":2,"z":3,"a":{"b":1,"B":2,"":3,"aa":4}`)))),
		good("text-del-and-separators", "SPECTRUM-04, canonical JSON", "DEL, U+2028 and U+2029 are literal in canonical JSON.", does(rewritten(forge.Status, member("\"note\":\"\u007f\u2028\u2029\"")))),
		good("text-depth-512", "D6", "STATUS.json is nested 512 deep.", does(rewritten(forge.Status, member(`"deep":`+strings.Repeat("[", 511)+strings.Repeat("]", 511))))),
		good("text-noncharacters", "D6", "U+FFFE, U+FFFF and U+FDD0 are characters like others.", does(rewritten(forge.Status, member("\"note\":\"\ufffe\uffff\ufdd0\"")))),
		good("text-task-spec-odd", "SPECTRUM-04, roots", "TASK_SPEC.json is hashed as it is stored, white space and all.", does(rewritten(forge.TaskSpec, func(good string) string {
			return "\n\t " + spaced(good) + "\r\n\n"
		}))),
		good("text-other-artifacts", "SPECTRUM-04, signed message", "Identity, payload and signature have white space and another order: what is signed is the canonical form.", does(fault{raw: func(r *run) {
			for _, name := range []string{forge.Identity, forge.SignedPayload, forge.Signature, forge.Proof, forge.OutputHashes} {
				r.Run[name] = []byte(spaced(reversed(string(r.Run[name]), name)))
			}
		}})),
		good("text-large-output-hashes", "D6", "OUTPUT_HASHES.json has 16 MiB and one byte: its limit is 256 MiB.", does(fault{raw: func(r *run) {
			r.pads[forge.OutputHashes] = suite.Entry{Pad: 16<<20 + 1}
		}})),
		good("text-at-the-limit", "D6", "TASK_SPEC.json has 16 MiB, the most that is read.", does(atLimit())),
	)
}

// spaced puts white space between the tokens of a document without escapes.
func spaced(document string) string {
	between := strings.NewReplacer("{", "{ \n\t", ":", " :\r\n ", ",", " , ", "}", " \n} ")
	parts := strings.Split(document, "\"")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = between.Replace(parts[i])
	}
	return strings.Join(parts, "\"")
}

// reversed puts the members of a flat object in the reverse order.
func reversed(object, name string) string {
	if name == forge.OutputHashes || name == forge.Proof {
		return object
	}
	members := strings.Split(strings.Trim(object, "{}"), ",")
	slices.Reverse(members)
	return "{" + strings.Join(members, ",") + "}"
}

func atLimit() fault {
	return fault{raw: func(r *run) {
		const limit = 16 << 20
		content := r.Run[forge.TaskSpec]
		r.resign([]byte(string(content) + strings.Repeat(" ", limit-len(content))))
		r.pads[forge.TaskSpec] = suite.Entry{Pad: limit}
	}}
}

// outputs is a run over these.
func outputs(o forge.Outputs) *draft { return newDraft(newRun(1, o)) }

func outputsAccepted() []suite.Case {
	name := func(how, text, path string) suite.Case {
		return good("path-"+how, "D3: all other bytes are legal", text, outputs(forge.Outputs{path: "x\n"}))
	}
	deep := strings.Repeat("d/", 60) + "f"
	return []suite.Case{
		good("empty-file", "SPECTRUM-06 section 7.4", "An output without a byte.", outputs(forge.Outputs{"empty": "", "one": "1"})),
		good("identical", "SPECTRUM-06 section 7.4", "Three outputs with the same content.", outputs(forge.Outputs{"a": "x\n", "b/a": "x\n", "b/b": "x\n"})),
		good("binary", "SPECTRUM-06 section 7.4", "Outputs with bytes that are no text.", outputs(forge.Outputs{"nul": "a\x00b", "not-utf8": "\xff\xfe", "crlf": "a\r\nb\r\n", "bom": "\ufeff{}"})),
		good("many", "SPECTRUM-06 section 7.4.5", "The manifest's entries ascend by the bytes of their paths.", outputs(forge.Outputs{
			"a": "1", "a.b": "2", "a-": "3", "B": "4", "ab/c": "5", "ab.c": "6", "\u00e4": "7", "10": "8", "9": "9"})),
		name("dots", "Three dots are a name like others.", ".../..a"),
		name("trailing-dots", "Dots at the end of a name.", "a../b.."),
		name("hidden", "Names that begin with a dot.", ".git/.a"),
		name("spaces", "Spaces at the ends of a name, and only a space.", " a / "),
		name("control", "Control characters, a line feed and DEL.", "a\n\t\x01\x1b\x7f"),
		name("quotes", "Quotes, and what shells and HTML mind.", "\"'`$<>&|;*?[]{}~#%"),
		name("unicode", "Beyond ASCII and beyond the basic plane.", "\u00e4/\u65e5\u672c/\U0001f4a1"),
		good("path-normal-forms", "D3: all other bytes are legal", "Two names that only Unicode normal forms hold for the same.", outputs(forge.Outputs{"e\u0301": "1", "\u00e9": "2"})),
		good("path-case", "D3: all other bytes are legal", "Two names that only differ in case.", outputs(forge.Outputs{"Read": "1", "read": "2"})),
		name("separators", "U+2028, U+2029 and a right-to-left override.", "a\u2028b\u2029c\u202e"),
		name("marker", "A name like a marker of this format.", "-- x --"),
		name("deep", "Sixty directories.", deep),
		name("long", "A name of 255 bytes.", strings.Repeat("n", 255)),
		name("dash", "A name like an option.", "-rf"),
		name("almost-reserved", "Almost a reserved name (D10).", "sub/RESTORE_MANIFEST.json"),
		name("almost-reserved-prefix", "Almost a reserved prefix (D10).", "sub/.spectrum06_x"),
		name("reserved-in-other-case", "A reserved name in other case.", "restore_manifest.json"),
		name("colon", "A name with a colon.", "C:/x"),
		linkedAccepted(),
		absolutelyLinkedAccepted(),
	}
}

// linkedAccepted is what verify takes and a restore does not; the restore is a
// case of SPECTRUM-06.
func linkedAccepted() suite.Case {
	d := does(linkedSource("out/c.txt"))
	return d.finish("accept-verify-linked-output", "D4", []string{"An output is a link that stays beneath the project root. SPECTRUM-05 takes it."}, strict)
}

func absolutelyLinkedAccepted() suite.Case {
	d := does(absolutelyLinkedSource("out/c.txt"))
	return d.finish("accept-verify-absolutely-linked-output", "D4, D29", []string{"An output is a link to an absolute path beneath the project root. SPECTRUM-05 takes it."}, strict)
}

func rootsAccepted() []suite.Case {
	kept := single()
	kept.put(suite.Entry{Path: root + "/mine.txt", Content: "mine\n"}, suite.Entry{Path: root + "/out/mine.txt", Content: "mine\n", Mode: 0o600},
		suite.Entry{Path: root + "/out/sub", Kind: suite.Dir, Mode: 0o700}, suite.Entry{Path: root + "/fifo", Kind: suite.FIFO},
		suite.Entry{Path: root + "/dangling", Kind: suite.Link, Content: "nowhere"}, suite.Entry{Path: root + "/away", Kind: suite.Link, Content: "/"})
	emptyParent := single()
	emptyParent.put(suite.Entry{Path: root + "/out", Kind: suite.Dir, Mode: 0o750})
	linked := single()
	linked.put(suite.Entry{Path: root + "/real", Kind: suite.Dir}, suite.Entry{Path: root + "/out", Kind: suite.Link, Content: "real"})
	linked.landing[root+"/out"] = root + "/real"
	deep := outputs(forge.Outputs{"in/x/y.txt": "x\n"})
	deep.put(suite.Entry{Path: root + "/a/b", Kind: suite.Dir}, suite.Entry{Path: root + "/in", Kind: suite.Link, Content: "a/../a/./b"})
	deep.landing[root+"/in"] = root + "/a/b"
	rootLink := single()
	rootLink.flags = rootAt("$WORK/link")
	rootLink.put(suite.Entry{Path: "link", Kind: suite.Link, Content: root})
	slash := single()
	slash.flags = rootAt(atRoot + "/./")
	ordinary := single()
	ordinary.ordinary = true
	return []suite.Case{
		good("root-keeps-what-is-there", "SPECTRUM-06 section 5.4; D11", "The restore root holds other things, which stay as they are.", kept),
		good("root-empty-parent", "D11", "The directory of the targets is there already, and empty.", emptyParent),
		good("root-link-beneath", "D17", "A directory of the targets is a link that stays beneath the restore root.", linked),
		good("root-link-beneath-deep", "D17", "A directory of the targets is a link with dots, every step of which stays beneath the restore root.", deep),
		good("root-is-a-link", "SPECTRUM-06 section 4.1", "The restore root is named by a link to a directory.", rootLink),
		good("root-odd-path", "SPECTRUM-06 section 4.1", "The restore root's path has a dot and slashes at its end.", slash),
		good("ordinary-user", "SPECTRUM-06 section 4.1", "The user has no privileges.", ordinary),
	}
}
