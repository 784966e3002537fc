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

// program reads bytes as a program of changes. Every text is one; at its end
// all numbers are 0.
type program struct{ rest []byte }

func (p *program) next() int {
	if len(p.rest) == 0 {
		return 0
	}
	n := p.rest[0]
	p.rest = p.rest[1:]
	return int(n)
}

func (p *program) below(n int) int { return p.next() % max(n, 1) }

func (p *program) pick(from []string) string { return from[p.below(len(from))] }

// place is an offset into something of this length, at its end too.
func (p *program) place(length int) int { return (p.next()<<8 + p.next()) % (length + 1) }

// bytes are some of the program itself.
func (p *program) bytes() string {
	n := min(p.next()%16, len(p.rest))
	text := string(p.rest[:n])
	p.rest = p.rest[n:]
	return text
}

// mutant is a folder that a program changes.
type mutant struct {
	folder
	*program
	originals []*folder // good ones, to take from
	signed    bool      // it was signed again
}

// changes are what a program can do to a mutant.
var changes = []func(*mutant){
	(*mutant).takeArtifact, (*mutant).cut, (*mutant).insert, (*mutant).flip, (*mutant).replaceToken, (*mutant).swapTokens,
	(*mutant).dropToken, (*mutant).doubleToken, (*mutant).swapArtifacts, (*mutant).sign, (*mutant).signPayload, (*mutant).signPayload,
	(*mutant).changeOutput, (*mutant).addEntry, (*mutant).changeKind, (*mutant).declare, (*mutant).setField, (*mutant).takeAll,
}

// run carries out the program, which has an end.
func (m *mutant) run() {
	for range 24 {
		if len(m.rest) == 0 {
			return
		}
		changes[m.below(len(changes))](m)
	}
}

func (m *mutant) artifact() string { return m.pick(lawOrder) }

// edit changes the content of an artifact that is a file.
func (m *mutant) edit(change func(data string) string) {
	name := m.artifact()
	if n, ok := m.entries[name]; ok && n.kind == file {
		m.entries[name] = node{file, change(n.data)}
	}
}

func (m *mutant) other() *folder { return m.originals[m.below(len(m.originals))] }

func (m *mutant) takeArtifact() {
	name := m.artifact()
	m.entries[name] = m.other().entries[name]
}

// takeAll takes a whole bundle, and leaves the outputs.
func (m *mutant) takeAll() { m.entries = maps.Clone(m.other().entries) }

func (m *mutant) cut() {
	m.edit(func(data string) string { return data[:m.place(len(data))] })
}

func (m *mutant) insert() {
	m.edit(func(data string) string {
		at := m.place(len(data))
		return data[:at] + m.bytes() + data[at:]
	})
}

func (m *mutant) flip() {
	m.edit(func(data string) string {
		raw := []byte(data)
		if len(raw) > 0 {
			raw[m.place(len(raw)-1)] ^= byte(m.next())
		}
		return string(raw)
	})
}

// tokens is JSON, roughly.
var tokens = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^\s"{}\[\],:]+|[{}\[\],:]|\s+`)

// words are tokens that mean something somewhere.
var words = []string{
	`"status"`, `"success"`, `"cmp01"`, `"pass"`, `"hashes"`, `"verified"`, `"restoration_result"`, `"proof_hash"`, `"decision"`, `"ACCEPT"`,
	`"bundle_root"`, `"validator_id"`, `"public_key"`, `"algorithm"`, `"ed25519"`, `"payload_type"`, `"BUNDLE"`, `"signature"`, `"signed_at"`,
	`"d/a"`, `"d/b"`, `"d/../d/a"`, `"/d/a"`, `"d\\a"`, `"d/\u0000"`, `"d"`, `""`, `"\ud800"`, `"\u0073tatus"`, `"Status"`, "\"\xff\"", "\ufeff",
	`true`, `false`, `null`, `0`, `-0`, `1e2`, `1E400`, `{}`, `[]`, `{"verified":true}`, ` `, ",", ":", "{", "}", `"completed_at"`, `"caf\u00e9"`,
}

func (m *mutant) editTokens(change func(list []string) []string) {
	m.edit(func(data string) string {
		if list := tokens.FindAllString(data, -1); len(list) > 0 {
			return strings.Join(change(list), "")
		}
		return data
	})
}

func (m *mutant) replaceToken() {
	m.editTokens(func(list []string) []string {
		list[m.below(len(list))] = m.pick(words)
		return list
	})
}

func (m *mutant) swapTokens() {
	m.editTokens(func(list []string) []string {
		i, j := m.below(len(list)), m.below(len(list))
		list[i], list[j] = list[j], list[i]
		return list
	})
}

func (m *mutant) dropToken() {
	m.editTokens(func(list []string) []string {
		i := m.below(len(list))
		return slices.Delete(list, i, min(i+1+m.below(4), len(list)))
	})
}

func (m *mutant) doubleToken() {
	m.editTokens(func(list []string) []string {
		i := m.below(len(list))
		return slices.Insert(list, i, slices.Clone(list[i:min(i+1+m.below(4), len(list))])...)
	})
}

func (m *mutant) swapArtifacts() {
	a, b := m.artifact(), m.artifact()
	m.entries[a], m.entries[b] = m.entries[b], m.entries[a]
}

// setField sets a member of an artifact, and writes the artifact anew.
func (m *mutant) setField() {
	m.edit(func(data string) string {
		value, err := plainjson.Parse([]byte(m.pick(words)))
		name, _ := plainjson.Parse([]byte(m.pick(words)))
		tree, _ := plainjson.Parse([]byte(data))
		if object, ok := tree.(fields); ok && err == nil {
			text, _ := name.(string)
			object[text] = value
			return plainjson.Canonical(object)
		}
		return data
	})
}

// The paths and the contents of outputs.
var (
	outputPaths = []string{"d/a", "d/b", "e", "d", "d/../e", "d//a", "/e", "e/", "", ".", "..", "d\\a", "d/\x00", "../e", "e/x", "caf\u00e9"}
	contents    = []string{"", "aaa", "bbb", "other", strings.Repeat("long", 20_000)}
	linkTargets = []string{"a", "b", "e", "nowhere", "/etc/passwd", ".", "../../../../../../../../etc/passwd"}
)

// declare has OUTPUT_HASHES.json name an output, or forget one.
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

// addEntry puts something more into the run directory.
func (m *mutant) addEntry() {
	name := m.pick([]string{
		"logs", "tmp", "transcript.json", "VALIDATOR_IDENTITY2.json", "SIGNED_PAYLOAD.old.json", "SIGNATURE_.json",
		"signature2.json", "SIGNATURE.json~", "TASK_SPEC2.json", "LOGS", "x", "SIGNATURE.jso",
	})
	m.entries[name] = node{kind: kind(m.below(3))}
}

// changeKind makes something of an artifact that is no file.
func (m *mutant) changeKind() {
	name := m.artifact()
	if k := kind(m.below(4)); k == file {
		delete(m.entries, name)
	} else {
		m.entries[name] = node{k, "TASK_SPEC.json"}
	}
}

// key is one of three, of which the good bundles have the first two.
func (m *mutant) key() ed25519.PrivateKey { return keyNumber(m.below(3)) }

func keyNumber(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{byte(n + 1)}, ed25519.SeedSize))
}

// sign signs what stands there, as far as that has a root.
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

// signPayload signs the payload as it stands there, whatever it says.
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
