package main

import (
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// blocksFile is the file of a block table (D35).
const blocksFile = "BLOCKS"

// smallBlock is the smallest block.
const smallBlock = 64 << 10

// blockRecord is a record of a block table.
type blockRecord struct {
	path   string
	dirs   []uint16 // permission bits of the directories that lead here first
	size   uint64
	perm   uint16
	sec    uint64
	nsec   uint32
	values []byte
}

// blockTable is a block table in the making.
type blockTable struct {
	magic   string
	block   uint32
	records []blockRecord
	rest    string
}

// text is the content of BLOCKS.
func (t *blockTable) text() string {
	b := binary.BigEndian.AppendUint32([]byte(t.magic), t.block)
	for _, r := range t.records {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(r.path))), r.path...)
		for _, perm := range r.dirs {
			b = binary.BigEndian.AppendUint16(b, perm)
		}
		b = binary.BigEndian.AppendUint64(b, r.size)
		b = binary.BigEndian.AppendUint16(b, r.perm)
		b = binary.BigEndian.AppendUint64(b, r.sec)
		b = binary.BigEndian.AppendUint32(b, r.nsec)
		b = append(b, r.values...)
	}
	return string(b) + t.rest
}

// valuesOf are the chaining values of SHA-256 between the blocks of a content: the state of the hash
// without the bytes that it is over.
func valuesOf(content string, block int) (values []byte) {
	h := sha256.New()
	for ; len(content) > block; content = content[block:] {
		h.Write([]byte(content[:block]))
		state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			panic(err)
		}
		values = append(values, state[4:4+sha256.Size]...) // after "sha" and a byte for the kind
	}
	return values
}

// newTabled is a run with a block table: of a file of three blocks, a small one and an empty one. The
// modes and times of the table are not those of the sources.
func newTabled() (*run, *blockTable) {
	const size = 2*smallBlock + 5
	r := newRun(1, forge.Outputs{"big.bin": "big" + strings.Repeat("\x00", size-3), "out/a.txt": "alpha\n", "out/empty.txt": ""})
	r.disk["big.bin"] = &file{Content: "big", Size: size}
	return r, tableOf(r)
}

func tableOf(r *run) *blockTable {
	t := &blockTable{magic: "spectrum blocks 1\n", block: smallBlock}
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(r.outputs)) {
		content := r.outputs[path]
		record := blockRecord{path: path, size: uint64(len(content)), perm: 0o640, sec: 981173106, nsec: 7, values: valuesOf(content, smallBlock)}
		for at := range path {
			if path[at] == '/' && !seen[path[:at]] {
				seen[path[:at]] = true
				record.dirs = append(record.dirs, 0o750)
			}
		}
		t.records = append(t.records, record)
	}
	return t
}

// bind has the signed TASK_SPEC.json name a content of BLOCKS, and writes it.
func (r *run) bind(content string) *run {
	r.Edit(forge.TaskSpec, set("constraints", forge.Fields{"blocks": r.boundBy(content)}))
	r.extra = append(r.extra, suite.Entry{Path: blocksFile, Content: content})
	return r
}

func (r *run) boundBy(content string) forge.Fields {
	return forge.Fields{"block": smallBlock, "form": 1, "proof": forge.Hash(string(r.Run[forge.Proof])), "table": forge.Hash(content)}
}

// blockTables are candidates with a file BLOCKS.
func blockTables() []suite.Case { return slices.Concat(tablesAccepted(), tablesHeld()) }

func tablesAccepted() []suite.Case {
	accept := func(name, says string, d *draft, laws ...law) suite.Case {
		return d.finish("accept-blocks-"+name, "D33, D35", []string{says}, append([]law{strict}, laws...)...)
	}
	good, t := newTabled()
	larger, wide := newTabled()
	wide.block, wide.records[0].values = 4*smallBlock, nil
	larger.bind(wide.text()).Edit(forge.TaskSpec, func(f forge.Fields) {
		f["constraints"].(forge.Fields)["blocks"].(forge.Fields)["block"] = 4 * smallBlock
	})
	bits, executable := newTabled()
	executable.records[1].perm = 0o750
	signed := newDraft(bits.bind(executable.text()))
	signed.modes = map[string]fs.FileMode{"out/a.txt": 0o755, "out/empty.txt": 0o644}
	first, one := newTabled()
	last := newRun(2, forge.Outputs{"two/b.txt": "beta\n"})
	return []suite.Case{
		accept("good", "A block table with the values of the outputs, and with other modes and times than their sources.", newDraft(good.bind(t.text())), resume, memory, restore),
		accept("larger", "The blocks are larger than any output: there are no values.", newDraft(larger), restore),
		accept("executable", "The table signs that an output is executable, whatever the mode of its source.", signed, restore),
		accept("chain", "One run of a chain has a block table.", newDraft(first.bind(one.text()), last), memory, restore),
	}
}

// tablesHeld are deviations of BLOCKS and of what names it. Each holds the candidate (exit 5), and
// changes no verdict of the law (D35).
func tablesHeld() (all []suite.Case) {
	hold := func(name, says string, r *run) {
		d := newDraft(r)
		c := d.finish("06-blocks-held-"+name, "D35", []string{says}, strict, resume)
		all = append(all, notApproved(c, d, 5))
	}
	contents := wrongTables()
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		r, _ := newTabled()
		hold(name, contents[name].says, r.bind(contents[name].content))
	}
	claims := wrongBlockClaims()
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		r, t := newTabled()
		r.bind(t.text()).Edit(forge.TaskSpec, set("constraints", claims[name]))
		hold(name, fmt.Sprintf("TASK_SPEC.json has \"constraints\": %s.", forge.Canonical(claims[name])), r)
	}
	for name, odd := range map[string]suite.Entry{
		"directory": {Kind: suite.Dir}, "link": {Kind: suite.Link, Content: "TASK_SPEC.json"}, "fifo": {Kind: suite.FIFO}, "too-large": {Content: "spectrum blocks 1\n", Size: 256<<20 + 1},
	} {
		r, t := newTabled()
		odd.Path = blocksFile
		r.bind(t.text()).extra = []suite.Entry{odd}
		hold("file-"+name, "BLOCKS is no file of at most 256 MiB.", r)
	}
	r, t := newTabled()
	r.bind(t.text()).extra = nil
	hold("file-missing", "TASK_SPEC.json names BLOCKS, which is missing.", r)
	r, t = newTabled()
	r.bind(t.text()).extra[0].Content += "\n"
	hold("digest", "BLOCKS is another one than TASK_SPEC.json names.", r)
	r, t = newTabled()
	r.bind(t.text()).Edit(forge.Proof, set("note", "another"))
	hold("proof", "PROOF.json is another one than the claim of the block table names.", r)
	return all
}

// wrongTable is a content of BLOCKS that breaks a rule, and which.
type wrongTable struct{ says, content string }

func wrongTables() map[string]wrongTable {
	tables := map[string]wrongTable{}
	with := func(name, says string, change func(t *blockTable)) {
		_, t := newTabled()
		change(t)
		tables[name] = wrongTable{says, t.text()}
	}
	raw := func(name, says string, change func(text string) string) {
		_, t := newTabled()
		tables[name] = wrongTable{says, change(t.text())}
	}
	big := func(change func(r *blockRecord)) func(t *blockTable) {
		return func(t *blockTable) { change(&t.records[0]) }
	}
	raw("empty", "BLOCKS is empty.", func(string) string { return "" })
	raw("head-only", "BLOCKS ends after its head.", func(text string) string { return text[:22] })
	raw("cut", "BLOCKS lacks its last byte.", func(text string) string { return text[:len(text)-1] })
	raw("cut-in-head", "BLOCKS ends in its head.", func(text string) string { return text[:20] })
	raw("doubled", "BLOCKS holds its content twice.", func(text string) string { return text + text })
	raw("trailing-byte", "BLOCKS has one more byte.", func(text string) string { return text + "\x00" })
	with("form-2", "BLOCKS is of form 2.", func(t *blockTable) { t.magic = "spectrum blocks 2\n" })
	with("magic", "BLOCKS begins with another text.", func(t *blockTable) { t.magic = "Spectrum blocks 1\n" })
	with("block-not-a-power", "A block is not a power of two.", func(t *blockTable) { t.block++ })
	with("block-too-small", "A block has 32 KiB.", func(t *blockTable) { t.block = smallBlock / 2 })
	with("block-too-large", "A block has 8 MiB.", func(t *blockTable) { t.block, t.records[0].values = 8<<20, nil })
	with("block-of-another-size", "A block has 128 KiB, and the claim names 64 KiB.", func(t *blockTable) {
		t.block, t.records[0].values = 2*smallBlock, t.records[0].values[32:]
	})
	with("value-wrong", "The first chaining value is wrong.", big(func(r *blockRecord) { r.values[0] ^= 1 }))
	with("value-last-wrong", "The last chaining value is wrong.", big(func(r *blockRecord) { r.values[63] ^= 1 }))
	with("values-swapped", "The chaining values are swapped.", big(func(r *blockRecord) { r.values = slices.Concat(r.values[32:], r.values[:32]) }))
	with("value-missing", "A chaining value is missing.", big(func(r *blockRecord) { r.values = r.values[32:] }))
	with("value-at-the-end", "A chaining value follows the last block.", big(func(r *blockRecord) { r.values = append(r.values, r.values[:32]...) }))
	with("value-of-empty", "An empty file has a chaining value.", func(t *blockTable) { t.records[2].values = make([]byte, 32) })
	with("size-larger", "The size of a file is one byte too large.", big(func(r *blockRecord) { r.size++ }))
	with("size-smaller", "The size of a file is one byte too small.", big(func(r *blockRecord) { r.size-- }))
	with("size-of-two-blocks", "The size of a file is that of fewer blocks.", big(func(r *blockRecord) { r.size, r.values = smallBlock+1, r.values[:32] }))
	with("size-huge", "The size of a file is that of more blocks than BLOCKS has values for.", big(func(r *blockRecord) { r.size = 1 << 62 }))
	with("size-beyond", "The size of a file has the highest bit.", big(func(r *blockRecord) { r.size |= 1 << 63 }))
	with("mode-of-a-file", "The mode of a file has more than permission bits.", big(func(r *blockRecord) { r.perm |= 0o4000 }))
	with("mode-of-a-directory", "The mode of a directory has more than permission bits.", func(t *blockTable) { t.records[1].dirs[0] |= 0o1000 })
	with("mode-of-a-directory-missing", "The mode of a directory is missing.", func(t *blockTable) { t.records[1].dirs = nil })
	with("mode-of-a-directory-twice", "The mode of a directory is there again.", func(t *blockTable) { t.records[2].dirs = []uint16{0o750} })
	with("nanoseconds", "A time has a thousand million nanoseconds.", big(func(r *blockRecord) { r.nsec = 1_000_000_000 }))
	with("unordered", "The records do not ascend.", func(t *blockTable) { t.records[1].path, t.records[2].path = t.records[2].path, t.records[1].path })
	with("duplicate", "A record is there twice.", func(t *blockTable) { t.records = append(t.records[:1], t.records...) })
	with("output-missing", "The last output has no record.", func(t *blockTable) { t.records = t.records[:2] })
	with("output-unknown", "A record is of what is no output.", func(t *blockTable) { t.records = append(t.records, blockRecord{path: "out/z.txt"}) })
	with("output-of-another-name", "A record has another path.", func(t *blockTable) { t.records[1].path = "out/b.txt" })
	other := newRun(2, forge.Outputs{"two/b.txt": "beta\n"})
	tables["of-another-run"] = wrongTable{"BLOCKS is the table of another run.", tableOf(other).text()}
	same := newRun(2, forge.Outputs{"big.bin": "bad" + strings.Repeat("\x00", 2*smallBlock+2), "out/a.txt": "alphA\n", "out/empty.txt": ""})
	tables["of-other-contents"] = wrongTable{"BLOCKS is the table of other contents with the same paths and sizes.", tableOf(same).text()}
	return tables
}

// wrongBlockClaims are values of "constraints" that name BLOCKS in no form, or do not name it.
func wrongBlockClaims() map[string]any {
	r, t := newTabled()
	with := func(change func(claim forge.Fields)) forge.Fields {
		claim := r.boundBy(t.text())
		change(claim)
		return forge.Fields{"blocks": claim}
	}
	return map[string]any{
		"unnamed": forge.Fields{}, "claim-null": forge.Fields{"blocks": nil}, "claim-text": forge.Fields{"blocks": forge.Hash(t.text())},
		"claim-form-2": with(func(c forge.Fields) { c["form"] = 2 }), "claim-form-text": with(func(c forge.Fields) { c["form"] = "1" }),
		"claim-block-text": with(func(c forge.Fields) { c["block"] = "65536" }), "claim-block-odd": with(func(c forge.Fields) { c["block"] = smallBlock + 1 }),
		"claim-without-block": with(func(c forge.Fields) { delete(c, "block") }), "claim-without-form": with(func(c forge.Fields) { delete(c, "form") }),
		"claim-without-proof": with(func(c forge.Fields) { delete(c, "proof") }), "claim-without-table": with(func(c forge.Fields) { delete(c, "table") }),
		"claim-extra-member": with(func(c forge.Fields) { c["note"] = 1 }),
		"claim-upper-case":   with(func(c forge.Fields) { c["table"] = "sha256:" + strings.ToUpper(c["table"].(string)[7:]) }),
		"claim-proof-short":  with(func(c forge.Fields) { c["proof"] = c["proof"].(string)[:70] }),
	}
}
