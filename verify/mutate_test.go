package verify_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/plainjson"
)

// choices are the fuzzer's bytes, read as a sequence of choices. Every text is one; at its end
// all numbers are 0.
type choices struct{ rest []byte }

func (c *choices) next() int {
	if len(c.rest) == 0 {
		return 0
	}
	n := c.rest[0]
	c.rest = c.rest[1:]
	return int(n)
}

func (c *choices) below(n int) int { return c.next() % max(n, 1) }

func (c *choices) pick(from []string) string { return from[c.below(len(from))] }

// offset returns an offset into a text of this length; its end is one too.
func (c *choices) offset(length int) int { return (c.next()<<8 + c.next()) % (length + 1) }

// bytes returns up to 15 of the next bytes themselves.
func (c *choices) bytes() string {
	n := min(c.next()%16, len(c.rest))
	text := string(c.rest[:n])
	c.rest = c.rest[n:]
	return text
}

// mutant is a folder to which mutations are applied.
type mutant struct {
	folder
	*choices
	originals []*folder // valid ones, to take parts from
	applied   []string  // names of mutations
	signed    bool      // it was signed again
}

// bundleMutations are what can happen to a mutant. The fuzzing corpus in testdata refers to them by
// their position: append new ones, and never change the order.
var bundleMutations = []struct {
	name  string
	apply func(*mutant)
}{
	{"take an artifact of another run", (*mutant).takeArtifact},
	{"cut an artifact", onArtifact(func(m *mutant, data string) string { return data[:m.offset(len(data))] })},
	{"insert bytes", onArtifact(func(m *mutant, data string) string {
		at := m.offset(len(data))
		return data[:at] + m.bytes() + data[at:]
	})},
	{"flip bits", onArtifact(func(m *mutant, data string) string {
		raw := []byte(data)
		if len(raw) > 0 {
			raw[m.offset(len(raw)-1)] ^= byte(m.next())
		}
		return string(raw)
	})},
	{"replace a token", onTokens(func(m *mutant, list []string) []string {
		list[m.below(len(list))] = m.pick(words)
		return list
	})},
	{"swap two tokens", onTokens(func(m *mutant, list []string) []string {
		i, j := m.below(len(list)), m.below(len(list))
		list[i], list[j] = list[j], list[i]
		return list
	})},
	{"drop tokens", onTokens(func(m *mutant, list []string) []string {
		i := m.below(len(list))
		return slices.Delete(list, i, min(i+1+m.below(4), len(list)))
	})},
	{"double tokens", onTokens(func(m *mutant, list []string) []string {
		i := m.below(len(list))
		return slices.Insert(list, i, slices.Clone(list[i:min(i+1+m.below(4), len(list))])...)
	})},
	{"swap two artifacts", func(m *mutant) {
		a, b := m.artifact(), m.artifact()
		m.entries[a], m.entries[b] = m.entries[b], m.entries[a]
	}},
	{"sign everything", (*mutant).sign},
	{"sign the payload", (*mutant).signPayload},
	{"sign the payload", (*mutant).signPayload}, // twice as often
	{"change an output", (*mutant).changeOutput},
	{"add an entry", func(m *mutant) { m.entries[m.pick(extraEntries)] = node{kind: kind(m.below(3))} }},
	{"change the kind of an artifact", (*mutant).changeKind},
	{"declare an output", (*mutant).declare},
	{"set a field", onArtifact((*mutant).setField)},
	{"take all artifacts of another run", func(m *mutant) { m.entries = maps.Clone(m.other().entries) }},
}

// mutate applies up to 24 mutations, as long as there are choices.
func (m *mutant) mutate() {
	for range 24 {
		if len(m.rest) == 0 {
			return
		}
		mutation := bundleMutations[m.below(len(bundleMutations))]
		m.applied = append(m.applied, mutation.name)
		mutation.apply(m)
	}
}

func (m *mutant) artifact() string { return m.pick(lawOrder) }

func (m *mutant) other() *folder { return m.originals[m.below(len(m.originals))] }

// onArtifact returns a mutation that changes the content of an artifact that is a file.
func onArtifact(change func(m *mutant, data string) string) func(*mutant) {
	return func(m *mutant) {
		name := m.artifact()
		if n, ok := m.entries[name]; ok && n.kind == file {
			m.entries[name] = node{file, change(m, n.data)}
		}
	}
}

// onTokens returns a mutation that changes the tokens of an artifact that has some.
func onTokens(change func(m *mutant, list []string) []string) func(*mutant) {
	return onArtifact(func(m *mutant, data string) string {
		if list := tokens.FindAllString(data, -1); len(list) > 0 {
			return strings.Join(change(m, list), "")
		}
		return data
	})
}

// tokens matches the tokens of JSON, roughly.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+|[{}\[\],:]|\s+`)

// words are tokens that have a meaning in some artifact.
var words = []string{
	`"status"`, `"success"`, `"cmp01"`, `"pass"`, `"hashes"`, `"verified"`, `"restoration_result"`, `"proof_hash"`, `"decision"`, `"ACCEPT"`,
	`"bundle_root"`, `"validator_id"`, `"public_key"`, `"algorithm"`, `"ed25519"`, `"payload_type"`, `"BUNDLE"`, `"signature"`, `"signed_at"`,
	`"d/a"`, `"d/b"`, `"d/../d/a"`, `"/d/a"`, `"d\\a"`, `"d/\u0000"`, `"d"`, `""`, `"\ud800"`, `"\u0073tatus"`, `"Status"`, "\"\xff\"", "\ufeff",
	`true`, `false`, `null`, `0`, `-0`, `1e2`, `1E400`, `{}`, `[]`, `{"verified":true}`, ` `, ",", ":", "{", "}", `"completed_at"`, `"caf\u00e9"`,
}

// Paths, contents and link targets of outputs, and further entries of the run directory.
var (
	outputPaths  = []string{"d/a", "d/b", "e", "d", "d/../e", "d//a", "/e", "e/", "", ".", "..", "d\\a", "d/\x00", "../e", "e/x", "caf\u00e9"}
	contents     = []string{"", "aaa", "bbb", "other", strings.Repeat("long", 20_000)}
	linkTargets  = []string{"a", "b", "e", "nowhere", "/etc/passwd", ".", "../../../../../../../../etc/passwd"}
	extraEntries = []string{
		"logs", "tmp", "transcript.json", "VALIDATOR_IDENTITY2.json", "SIGNED_PAYLOAD.old.json", "SIGNATURE_.json",
		"signature2.json", "SIGNATURE.json~", "TASK_SPEC2.json", "LOGS", "x", "SIGNATURE.jso",
	}
)

func (m *mutant) takeArtifact() {
	name := m.artifact()
	m.entries[name] = m.other().entries[name]
}

// setField sets a member of an artifact that is an object.
func (m *mutant) setField(data string) string {
	value, err := plainjson.Parse([]byte(m.pick(words)))
	name, _ := plainjson.Parse([]byte(m.pick(words)))
	tree, _ := plainjson.Parse([]byte(data))
	if object, ok := tree.(fields); ok && err == nil {
		text, _ := name.(string)
		object[text] = value
		return plainjson.Canonical(object)
	}
	return data
}

// declare adds an output to OUTPUT_HASHES.json, or removes one.
func (m *mutant) declare() {
	n := m.entries[lawHashes]
	tree, _ := plainjson.Parse([]byte(n.data))
	object, _ := tree.(fields)
	hashes, ok := object["hashes"].(fields)
	if !ok || n.kind != file {
		return
	}
	path := m.pick(outputPaths)
	switch m.below(3) {
	case 0:
		delete(hashes, path)
	case 1:
		hashes[path] = "SHA256:" + hexOf(m.pick(contents))
	default:
		hashes[path] = "sha256:" + hexOf(m.pick(contents))
	}
	m.entries[lawHashes] = node{file, plainjson.Canonical(object)}
}

// changeOutput changes one of three files of the project, which are "d/a",
// "d/b" and "e".
func (m *mutant) changeOutput() {
	path := outputPaths[m.below(3)]
	delete(m.outputs, path)
	switch k := kind(m.below(5)); k {
	case file, dirNode, fifoNode:
		n := node{kind: k}
		if k == file {
			n.data = m.pick(contents)
		}
		m.outputs[path] = n
	case linkNode:
		m.outputs[path] = node{linkNode, m.pick(linkTargets)}
	}
}

// changeKind removes an artifact, or replaces it by an entry that is not a file.
func (m *mutant) changeKind() {
	name := m.artifact()
	if k := kind(m.below(4)); k == file {
		delete(m.entries, name)
	} else {
		m.entries[name] = node{k, "TASK_SPEC.json"}
	}
}

// key returns one of three keys; the valid bundles are signed with the first two.
func (m *mutant) key() ed25519.PrivateKey { return keyNumber(m.below(3)) }

func keyNumber(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{byte(n + 1)}, ed25519.SeedSize))
}

// sign signs the current artifacts, if they have a root.
func (m *mutant) sign() {
	trees := map[string]fields{}
	for _, name := range []string{lawStatus, lawHashes} {
		tree, _ := plainjson.Parse([]byte(m.entries[name].data))
		trees[name], _ = tree.(fields)
	}
	key := m.key()
	if trees[lawStatus] == nil || trees[lawHashes]["hashes"] == nil {
		return
	}
	m.folder.sign(rootOf(m.entries[lawTask].data, trees[lawHashes]["hashes"], trees[lawStatus]), key)
	m.signed = true
}

// sign writes identity, payload and signature for a root.
func (f *folder) sign(root string, key ed25519.PrivateKey) {
	public := key.Public().(ed25519.PublicKey)
	id := hexOf(string(public))
	f.entries[lawIdentity] = node{file, plainjson.Canonical(fields{"algorithm": "ed25519", "public_key": hex.EncodeToString(public), "validator_id": id})}
	f.entries[lawPayload] = node{file, plainjson.Canonical(fields{"bundle_root": root, "decision": "ACCEPT", "validator_id": id})}
	f.signPayload(key)
}

// signPayload signs the payload, whatever it contains.
func (m *mutant) signPayload() {
	m.folder.signPayload(m.key())
	m.signed = true
}

func (f *folder) signPayload(key ed25519.PrivateKey) {
	tree, _ := plainjson.Parse([]byte(f.entries[lawPayload].data))
	payload, _ := tree.(fields)
	signature := ed25519.Sign(key, messageOf(payload))
	f.entries[lawSignature] = node{file, plainjson.Canonical(fields{
		"payload_type": "BUNDLE", "signature": hex.EncodeToString(signature), "validator_id": hexOf(string(key.Public().(ed25519.PublicKey))),
	})}
}
