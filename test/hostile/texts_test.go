package hostile

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/spectrumfs/spectrum/test/forge"
)

// member puts one more member in front of those of an artifact that is good.
func member(text string) func(good string) string {
	return func(good string) string { return "{" + text + "," + good[1:] }
}

// behind puts bytes behind a good artifact, instead is other bytes.
func behind(text string) func(string) string  { return func(good string) string { return good + text } }
func instead(text string) func(string) string { return func(string) string { return text } }

func utf16Text(mark string, low, high int) func(string) string {
	return func(good string) string {
		b := []byte(mark)
		for _, unit := range utf16.Encode([]rune(good)) {
			b = append(b, byte(unit>>low), byte(unit>>high))
		}
		return string(b)
	}
}

// texts are artifacts that no strict parser takes, though others
// would, and find in them all that a good artifact has.
var texts = []struct {
	row  int
	name string
	make func(good string) string
}{
	{32, "double key", member(`"x":1,"x":1`)},
	{33, "double by an escape", member(`"x":1,"\u0078":2`)},
	{33, "double by an escape, a level down", member(`"x":{"a":1,"\u0061":2}`)},
	{36, "byte order mark", func(good string) string { return "\ufeff" + good }},
	{37, "UTF-16", utf16Text("\xff\xfe", 0, 8)},
	{37, "UTF-16, big end first, no mark", utf16Text("", 8, 0)},
	{38, "bad UTF-8 in a key", member("\"\xff\":1")},
	{38, "bad UTF-8 in a value", member("\"x\":\"\xc3\"")},
	{38, "overlong", member("\"x\":\"\xc0\xaf\"")},
	{38, "surrogate bytes", member("\"x\":\"\xed\xa0\x80\"")},
	{39, "lone high surrogate", member(`"x":"\ud800"`)},
	{39, "lone low surrogate", member(`"x":"\udc00"`)},
	{39, "inverted surrogates", member(`"x":"\udc00\ud800"`)},
	{40, "trailing byte", behind("x")},
	{40, "second value", behind("{}")},
	{40, "trailing NUL", behind("\x00")},
	{41, "comment", behind("/* */")},
	{41, "trailing comma", func(good string) string { return good[:len(good)-1] + ",}" }},
	{41, "single quotes", member(`'x':1`)},
	{42, "NaN", member(`"x":NaN`)},
	{42, "Infinity", member(`"x":-Infinity`)},
	{42, "1.", member(`"x":1.`)},
	{42, ".5", member(`"x":.5`)},
	{42, "+1", member(`"x":+1`)},
	{42, "01", member(`"x":01`)},
	{42, "0x1", member(`"x":0x1`)},
	{43, "1e400", member(`"x":1e400`)},
	{44, "depth of 513", member(`"x":` + nested(512))},
	{45, "100,000 open brackets", instead(strings.Repeat("[", 100_000))},
	{45, "100,000 open brackets, in a member", member(`"x":` + strings.Repeat("[", 100_000))},
	{46, "array", func(good string) string { return "[" + good + "]" }},
	{46, "string", func(good string) string { return string(forge.Canonical(good)) }},
	{46, "null", instead("null")},
	{46, "number", instead("1")},
	{46, "empty", instead("")},
	{46, "only spaces", instead("   ")},
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// signAsRead signs a run as a lenient parser would read it: the last of two
// members wins, bad bytes are replaced. Where none can, the run stays signed for
// what was there before.
func signAsRead(r forge.Run) {
	defer func() { _ = recover() }() // package forge cannot write it
	r.SignRoot(r.Root(), forge.Key(1))
}

// malformedIn are the verdicts on an artifact that is malformed.
func malformedIn(artifact string) verdicts {
	switch artifact {
	case forge.OutputHashes:
		return planned(malformed, "RESTORE_OUTPUT_HASHES_MALFORMED", taken)
	case forge.Proof:
		return planned(malformed, "RESTORE_PROOF_MALFORMED", taken)
	default:
		return planned(malformed, strict, taken)
	}
}

// inTurn are the artifacts that the n-th hostile thing is put into: the two with
// codes of their own, and one of the others. The rest are in otherTextRows.
func inTurn(n int) []string {
	others := []string{forge.TaskSpec, forge.Status, forge.Identity, forge.SignedPayload, forge.Signature}
	return []string{forge.OutputHashes, forge.Proof, others[n%len(others)]}
}

// textsIn puts each hostile text into the artifacts that are chosen for it.
func textsIn(chosen func(n int, artifact string) bool) (entries []entry) {
	for i, c := range texts {
		for _, artifact := range forge.Names {
			if chosen(i, artifact) {
				entries = append(entries, entry{c.row, c.name + " in " + artifact, func(p *place) {
					p.rewrite(artifact, c.make)
				}, malformedIn(artifact)})
			}
		}
	}
	return entries
}

func otherTextRows() []entry {
	return textsIn(func(n int, artifact string) bool { return !slices.Contains(inTurn(n), artifact) })
}

func textRows() []entry {
	entries := textsIn(func(n int, artifact string) bool { return slices.Contains(inTurn(n), artifact) })
	hashes := func(text string) func(p *place) {
		return func(p *place) { p.rewrite(forge.OutputHashes, instead(text)) }
	}
	other := "sha256:" + strings.Repeat("0", 64)
	good := forge.Hash(content)
	return append(entries,
		entry{32, "double key in hashes", hashes(`{"hashes":{"gen/c.txt":"` + other + `","gen/c.txt":"` + good + `"}}`), malformedIn(forge.OutputHashes)},
		entry{33, "double key in hashes by an escape", hashes(`{"hashes":{"gen/c.txt":"` + other + `","gen/\u0063.txt":"` + good + `"}}`), malformedIn(forge.OutputHashes)},
		entry{34, "verified false and true", func(p *place) {
			p.rewrite(forge.Proof, instead(`{"restoration_result":{"verified":false,"verified":true}}`))
		}, malformedIn(forge.Proof)},
		entry{35, "Verified beside verified", func(p *place) {
			p.rewrite(forge.Proof, instead(`{"restoration_result":{"Verified":false,"VERIFIED":0,"verified":true}}`))
		}, planned(accepted, accepted, taken)},
		entry{35, "Verified alone", func(p *place) {
			p.rewrite(forge.Proof, instead(`{"restoration_result":{"Verified":true}}`))
		}, planned("RESTORATION_FAILED", "RESTORE_PROOF_NOT_VERIFIED", taken)},
		entry{43, "numbers", func(p *place) {
			numbers := `"x":[-0,-0.0,1E5,9007199254740993,` + strings.Repeat("9", 400) + `,0.1e-3,1e308,5e-324]`
			p.rewrite(forge.Status, member(numbers))
			p.rewrite(forge.TaskSpec, member(numbers))
		}, planned(accepted, accepted, taken)},
		entry{44, "depth of 512", func(p *place) {
			for _, name := range []string{forge.TaskSpec, forge.Status, forge.OutputHashes, forge.Proof} {
				p.rewrite(name, member(`"x":`+nested(511)))
			}
		}, planned(accepted, accepted, taken)},
		entry{50, "5 million hashes, 256 MiB of {}", nil, always(elsewhere)},
	)
}

// rewrite writes an artifact anew, and signs what a lenient parser reads.
func (p *place) rewrite(artifact string, text func(good string) string) {
	p.Helper()
	p.edit(func(r forge.Run) {
		r[artifact] = []byte(text(string(r[artifact])))
		if !slices.Contains([]string{forge.Identity, forge.SignedPayload, forge.Signature}, artifact) {
			signAsRead(r)
		}
	})
}
