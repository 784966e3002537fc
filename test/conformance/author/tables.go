package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// all05 are the faults of one bundle that SPECTRUM-05 rejects.
func all05() []fault {
	return slices.Concat(presenceFaults(), formFaults(), identityFaults(), hashesFaults(), payloadFaults(),
		signatureFaults(), proofFaults(), forbiddenFaults(), outputFaults(), pathForms(), statusFaults())
}

func presenceFaults() (all []fault) {
	for _, name := range forge.Names {
		all = append(all, missing(name))
	}
	for _, name := range []string{
		"VALIDATOR_IDENTITY_2.json", "VALIDATOR_IDENTITY.old.json", "SIGNED_PAYLOAD-copy.json", "SIGNATURES.json", "SIGNATURE .json",
	} {
		all = append(all, extraArtifact(name))
	}
	return all
}

// text makes a malformed artifact of the good one's text.
func text(change func(good string) string) func([]byte) suite.Entry {
	return func(good []byte) suite.Entry { return suite.Entry{Content: change(string(good))} }
}

func kind(k suite.Kind, content string) func([]byte) suite.Entry {
	return func([]byte) suite.Entry { return suite.Entry{Kind: k, Content: content} }
}

// withMember adds a member to the text of an object.
func withMember(member string) func([]byte) suite.Entry {
	return text(func(good string) string { return strings.TrimSuffix(good, "}") + "," + member + "}" })
}

func formFaults() (all []fault) {
	for _, name := range forge.Names {
		all = append(all,
			malformed(name, "double-key", "has a key twice", text(func(good string) string { return "{" + firstMember(good) + "," + good[1:] })),
			malformed(name, "trailing", "has bytes after its end", text(func(good string) string { return good + "\n}" })),
			malformed(name, "array", "is an array", text(func(good string) string { return "[" + good + "]" })),
			malformed(name, "directory", "is a directory", kind(suite.Dir, "")),
			malformed(name, "fifo", "is a FIFO", kind(suite.FIFO, "")),
			malformed(name, "link", "is a link to a file with its content", kind(suite.Link, "real.json")),
		)
	}
	return append(all, oddText(forge.Status)...)
}

func firstMember(object string) string {
	var b strings.Builder
	depth := 0
	for _, r := range object[1:] {
		switch r {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth < 0 || depth == 0 && r == ',' {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// oddText are the other ways of D6 not to be JSON.
func oddText(name string) []fault {
	odd := func(how, says string, change func([]byte) suite.Entry) fault {
		return malformed(name, how, says, change)
	}
	nested := func(n int) string { return `"deep":` + strings.Repeat("[", n) + strings.Repeat("]", n) }
	return []fault{
		odd("empty", "is empty", text(func(string) string { return "" })),
		odd("null", "is null", text(func(string) string { return "null" })),
		odd("text", "is a string", text(func(string) string { return `"success"` })),
		odd("cut", "ends before its end", text(func(good string) string { return good[:len(good)-1] })),
		odd("bom", "begins with a byte order mark", text(func(good string) string { return "\ufeff" + good })),
		odd("not-utf8", "holds a byte that is not UTF-8", withMember("\"note\":\"\xff\"")),
		odd("overlong", "holds an overlong form of UTF-8", withMember("\"note\":\"\xc0\xaf\"")),
		odd("surrogate-literal", "holds a surrogate as UTF-8", withMember("\"note\":\"\xed\xa0\x80\"")),
		odd("lone-high-surrogate", "holds a lone high surrogate", withMember(`"note":"\ud800"`)),
		odd("lone-low-surrogate", "holds a lone low surrogate", withMember(`"note":"\udc00x"`)),
		odd("two-values", "holds two values", text(func(good string) string { return good + good })),
		odd("trailing-nul", "ends in a NUL", text(func(good string) string { return good + "\x00" })),
		odd("nan", "holds NaN", withMember(`"note":NaN`)),
		odd("infinity", "holds Infinity", withMember(`"note":Infinity`)),
		odd("minus-infinity", "holds -Infinity", withMember(`"note":-Infinity`)),
		odd("not-finite", "holds a number that is not finite as a float64", withMember(`"note":1e400`)),
		odd("depth-513", "is nested 513 deep", withMember(nested(512))),
		odd("inner-double-key", "has a key twice, in an inner object", withMember(`"note":{"a":1,"a":1}`)),
		odd("escaped-double-key", "has a key twice, once with an escape", withMember(`"cmp\u00301":"pass"`)),
		odd("trailing-comma", "has a comma before the brace", text(func(good string) string { return good[:len(good)-1] + ",}" })),
		odd("single-quotes", "has single quotes", withMember(`'note':1`)),
		odd("comment", "has a comment", withMember("\"note\":1/* */")),
		odd("leading-zero", "holds a number with a leading zero", withMember(`"note":01`)),
		odd("plus", "holds a number with a plus sign", withMember(`"note":+1`)),
		odd("bare-point", "holds a number that ends in a point", withMember(`"note":1.`)),
		odd("control", "has a line feed inside a string", withMember("\"note\":\"a\nb\"")),
		odd("bad-escape", "has an unknown escape", withMember(`"note":"\x41"`)),
		odd("vertical-tab", "has a vertical tab between tokens", text(func(good string) string { return "\v" + good })),
		malformed(forge.OutputHashes, "too-large", "has 256 MiB and one byte", func(good []byte) suite.Entry {
			return suite.Entry{Content: string(good), Size: 256<<20 + 1}
		}),
		malformed(forge.Status, "too-large", "has 16 MiB and one byte", tooLarge),
		malformed(forge.Signature, "too-large", "has 16 MiB and one byte", tooLarge),
		malformed(forge.TaskSpec, "too-large", "has 16 MiB and one byte", tooLarge),
	}
}

func tooLarge(good []byte) suite.Entry { return suite.Entry{Content: string(good), Pad: 16<<20 + 1} }

func identityFaults() []fault {
	all := []fault{identityExtra()}
	for _, field := range []string{"algorithm", "public_key", "validator_id"} {
		all = append(all, identityMissing(field))
	}
	return append(all,
		algorithm("rsa", "rsa"), algorithm("case", "Ed25519"), algorithm("number", 25519), algorithm("null", nil),
		keyForm("upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
		keyForm("short", "has 62 digits", func(s string) any { return s[2:] }),
		keyForm("long", "has 66 digits", func(s string) any { return s + "00" }),
		keyForm("no-hex", "has a letter that is no digit", func(s string) any { return "g" + s[1:] }),
		keyForm("number", "is a number", func(string) any { return 7 }),
		keyForm("empty", "is empty", func(string) any { return "" }),
		derivation("other", "that of another key", thirdID),
		derivation("upper", "in upper case", strings.ToUpper(validatorID(forge.Key(1)))),
		derivation("number", "a number", 7),
	)
}

func hashesFaults() []fault {
	return []fault{
		hashesMissing(), hashesForm("array", []any{}), hashesForm("null", nil), hashesForm("text", "sha256"),
		hashValue("number", 7), hashValue("null", nil), hashValue("object", forge.Fields{}),
	}
}

func payloadFaults() []fault {
	all := []fault{payloadExtra()}
	for _, field := range []string{"bundle_root", "decision", "validator_id"} {
		all = append(all, payloadMissing(field))
	}
	return append(all,
		rootMismatch("other", "is another one", func(string) any { return strings.Repeat("0", 64) }),
		rootMismatch("upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
		rootMismatch("null", "is null", func(string) any { return nil }),
		afterSigning(forge.TaskSpec, "task-spec", "TASK_SPEC.json was given one more line feed after the run was signed", func(r *run) {
			r.Run[forge.TaskSpec] = append(r.Run[forge.TaskSpec], '\n')
		}),
		afterSigning(forge.Status, "status", "STATUS.json was given one more field after the run was signed", func(r *run) {
			r.Edit(forge.Status, set("note", ""))
		}),
		afterSigning(forge.OutputHashes, "hashes", "an output was added after the run was signed", func(r *run) {
			r.sign("out/late.txt", "late\n")
		}),
		decision("reject", "REJECT"), decision("case", "accept"), decision("true", true),
		payloadIdentity("other", "is that of another key", func(string) any { return otherID }),
		payloadIdentity("upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
		payloadIdentity("null", "is null", func(string) any { return nil }),
	)
}

func signatureFaults() []fault {
	all := []fault{signatureExtra("note"), signatureExtra("Signed_at")}
	for _, field := range []string{"payload_type", "signature", "validator_id"} {
		all = append(all, signatureMissing(field))
	}
	form := func(field string) []fault {
		return []fault{
			signatureForm(field, "upper", "is in upper case", func(s string) any { return strings.ToUpper(s) }),
			signatureForm(field, "short", "is a digit short", func(s string) any { return s[1:] }),
			signatureForm(field, "number", "is a number", func(string) any { return 7 }),
		}
	}
	all = append(all, form("signature")...)
	all = append(all, form("validator_id")...)
	return append(all,
		signatureForm("payload_type", "chain", "is \"CHAIN\"", func(string) any { return "CHAIN" }),
		signatureForm("payload_type", "case", "is \"bundle\"", func(string) any { return "bundle" }),
		signatureForm("payload_type", "null", "is null", func(string) any { return nil }),
		signatureIdentity(),
		bitFlipped(),
		signatureInvalid("other-key", "is by another key", func(r *run) []byte {
			return ed25519.Sign(forge.Key(9), forge.Message(r.Run[forge.SignedPayload]))
		}),
		signatureInvalid("no-domain", "is over the payload without the prefix", func(r *run) []byte {
			return ed25519.Sign(r.key, r.Run[forge.SignedPayload])
		}),
		signatureInvalid("line-feed", "is over the payload and a line feed", func(r *run) []byte {
			return ed25519.Sign(r.key, append(forge.Message(r.Run[forge.SignedPayload]), '\n'))
		}),
		signatureInvalid("scalar", "has a scalar that is not reduced (RFC 8032, D19)", notReduced),
	)
}

// notReduced adds the order of the group to the scalar of a signature.
func notReduced(r *run) []byte {
	s := slices.Clone(signatureOf(r))
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	scalar := slices.Clone(s[32:])
	slices.Reverse(scalar)
	sum := new(big.Int).Add(new(big.Int).SetBytes(scalar), order)
	sum.FillBytes(s[32:])
	slices.Reverse(s[32:])
	return s
}

func proofFaults() []fault {
	return []fault{
		proofHash(), proofResultMissing(),
		proofResultForm("null", nil), proofResultForm("array", []any{}), proofResultForm("true", true),
		notVerified("false", forge.Fields{"verified": false}),
		notVerified("text", forge.Fields{"verified": "true"}),
		notVerified("one", forge.Fields{"verified": 1}),
		notVerified("null", forge.Fields{"verified": nil}),
		notVerified("missing", forge.Fields{}),
	}
}

func forbiddenFaults() (all []fault) {
	for _, name := range []string{"logs", "tmp", "transcript.json"} {
		all = append(all,
			forbidden(name, "directory", suite.Entry{Kind: suite.Dir}),
			forbidden(name, "file", suite.Entry{Content: "{}\n"}),
			forbidden(name, "dangling-link", suite.Entry{Kind: suite.Link, Content: "nowhere"}))
	}
	return all
}

func outputFaults() []fault {
	a := "out/a.txt"
	return []fault{
		changed(a, "changed", upper), changed("out/b.txt", "changed", upper),
		changed(a, "cut", func(s string) string { return s[:len(s)-1] }),
		changed(a, "grown", func(s string) string { return s + "\n" }),
		changed(a, "emptied", func(string) string { return "" }),
		replaced(a, "missing", "is not there", nil), replaced("out/b.txt", "missing", "is not there", nil),
		replaced(a, "directory", "is a directory", &file{Kind: suite.Dir}),
		replaced(a, "fifo", "is a FIFO", &file{Kind: suite.FIFO}),
		replaced(a, "dangling-link", "is a link to nowhere", &file{Kind: suite.Link, Content: "nowhere"}),
		replaced(a, "looping-link", "is a link to itself", &file{Kind: suite.Link, Content: "a.txt"}),
		replaced(a, "link-out", "is a link that leads out of the project, to what was signed",
			&file{Kind: suite.Link, Content: "../../outside.txt"}, suite.Entry{Path: "outside.txt", Content: "alpha\n"}),
		replaced(a, "link-out-and-back", "is a link that leaves the project and comes back, to what was signed",
			&file{Kind: suite.Link, Content: "../../project/real.txt"}, suite.Entry{Path: project + "/real.txt", Content: "alpha\n"}),
		replaced(a, "absolute-link-out", "is a link to an absolute path beside the project, to what was signed",
			&file{Kind: suite.Link, Content: "$WORK/" + project + "-too/a.txt"}, suite.Entry{Path: project + "-too/a.txt", Content: "alpha\n"}),
		replaced(a, "absolute-link-out-and-back", "is a link to an absolute path that leaves the project and comes back, to what was signed",
			&file{Kind: suite.Link, Content: "$WORK/" + project + "/../" + project + "/real.txt"}, suite.Entry{Path: project + "/real.txt", Content: "alpha\n"}),
		illFormedHash("upper", func(s string) string { return "sha256:" + strings.ToUpper(s[7:]) }),
		illFormedHash("bare", func(s string) string { return s[7:] }),
		illFormedHash("prefix", func(s string) string { return "SHA256:" + s[7:] }),
		illFormedHash("short", func(s string) string { return s[:len(s)-1] }),
		illFormedHash("space", func(s string) string { return s + " " }),
		illFormedHash("empty", func(string) string { return "" }),
	}
}

const traversal, nullByte = "RESTORE_PATH_TRAVERSAL_DETECTED", "RESTORE_PATH_NULL_BYTE_DETECTED"

func pathForms() []fault {
	return []fault{
		illFormedPath("../bait.txt", "dotdot", traversal, "bait.txt"),
		illFormedPath("out/../bait.txt", "inner-dotdot", traversal, project+"/bait.txt"),
		illFormedPath("out/..", "last-dotdot", traversal, ""),
		illFormedPath("..", "only-dotdot", traversal, ""),
		illFormedPath(".", "only-dot", traversal, ""),
		illFormedPath("./bait.txt", "dot", traversal, project+"/bait.txt"),
		illFormedPath("out/./bait.txt", "inner-dot", traversal, project+"/out/bait.txt"),
		illFormedPath("", "empty", traversal, ""),
		illFormedPath("/bait.txt", "leading-slash", traversal, project+"/bait.txt"),
		illFormedPath("out//bait.txt", "double-slash", traversal, project+"/out/bait.txt"),
		illFormedPath("out/bait.txt/", "trailing-slash", traversal, project+"/out/bait.txt"),
		illFormedPath(`out\bait.txt`, "backslash", traversal, project+"/out/bait.txt"),
		illFormedPath(`out/bait\.txt`, "backslash-in-name", traversal, project+`/out/bait\.txt`),
		illFormedPath("out/bait\x00.txt", "nul", nullByte, project+"/out/bait"),
		illFormedPath("\x00", "only-nul", nullByte, ""),
		illFormedPath("out/../bait\x00", "dotdot-and-nul", traversal, ""),
	}
}

func statusFaults() []fault {
	return []fault{
		status("status", "failure", "failure"), status("status", "case", "Success"), status("status", "true", true),
		status("status", "null", nil), status("status", "missing", nil),
		status("cmp01", "fail", "fail"), status("cmp01", "case", "PASS"), status("cmp01", "true", true), status("cmp01", "missing", nil),
	}
}

// all02 are the faults that only SPECTRUM-02 and -03 know.
func all02() []fault {
	return []fault{
		semver("unknown", "9.9.9"), semver("two-parts", "1.0"), semver("space", "1.0.0 "), semver("number", json.Number("1.0")),
		semver("null", nil), semver("missing", nil),
		buildID("empty", ""), buildID("number", 7), buildID("null", nil), buildID("array", []any{"git:abc1234"}), buildID("missing", nil),
	}
}

// smallOrder is a run that is signed with a key of small order: the neutral element, for which a
// signature can be made without a private key. SPECTRUM-05 accepts it.
func smallOrder(r *run) {
	point := make([]byte, 32)
	point[0] = 1
	r.key = ed25519.PrivateKey(append(make([]byte, 32), point...))
	r.SignRoot(r.root, r.key)
	r.Edit(forge.Signature, set("signature", hex.EncodeToString(append(point, make([]byte, 32)...))))
}
