package bundle

// This file is law: the claim that binds BLOCKS to TASK_SPEC.json.

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// BlocksFile is the file of a run directory with the block table of its outputs, in the form of
// package blocktable. No law reads it: a fault in it never changes a verdict.
const BlocksFile = "BLOCKS"

// BlocksMember is the member of constraints in TASK_SPEC.json that has the digest of [BlocksFile].
const BlocksMember = "blocks"

// blocksForm is the form of the claim and of the file.
const blocksForm = "1"

// A BlocksClaim is the claim of a TASK_SPEC.json about the block table of a bundle.
type BlocksClaim struct {
	Block int64             // bytes in a block
	Table [sha256.Size]byte // SHA-256 of [BlocksFile]
	Proof [sha256.Size]byte // SHA-256 of PROOF.json, which nothing else signs
}

// member returns the required member [BlocksMember] of constraints.
func (c BlocksClaim) member() map[string]any {
	return map[string]any{
		"block": c.Block, "form": 1, "proof": HashPrefix + hex.EncodeToString(c.Proof[:]), "table": HashPrefix + hex.EncodeToString(c.Table[:]),
	}
}

// ClaimedBlocks returns the claim in TASK_SPEC.json; named is false if there is none. It returns an
// error for a malformed claim.
func ClaimedBlocks(taskSpec canonjson.Object) (c BlocksClaim, named bool, err error) {
	value, _ := taskSpec.Get("constraints")
	constraints, _ := value.Object()
	if value, named = constraints.Get(BlocksMember); !named {
		return c, false, nil
	}
	claim, _ := value.Object()
	form, _ := claim.Get("form")
	block, hasBlock := claim.Get("block")
	if claim.Len() != 4 || string(form.Append(nil)) != blocksForm || !hasBlock {
		return c, true, errors.New(`constraints.blocks is not {"block":...,"form":1,"proof":"...","table":"..."}`)
	}
	if c.Block, err = strconv.ParseInt(string(block.Append(nil)), 10, 64); err != nil || !blocktable.ValidBlock(c.Block) {
		return c, true, fmt.Errorf("constraints.blocks.block is not a power of two from %d to %d", blocktable.MinBlock, blocktable.MaxBlock)
	}
	for _, part := range []struct {
		name   string
		digest *[sha256.Size]byte
	}{{"proof", &c.Proof}, {"table", &c.Table}} {
		value, _ := claim.Get(part.name)
		text, _ := value.Text()
		digits, ok := strings.CutPrefix(text, HashPrefix)
		if !ok || !hexdigits.Are(digits, 2*sha256.Size) {
			return c, true, fmt.Errorf(`constraints.blocks.%s is not "sha256:" and 64 lower-case hex digits`, part.name)
		}
		_, _ = hex.Decode(part.digest[:], []byte(digits))
	}
	return c, true, nil
}

// ParseBlocks reads the content of [BlocksFile] for a bundle with these outputs. The error names
// the first rule that it breaks.
func (c BlocksClaim) ParseBlocks(raw []byte, outputs iter.Seq[string]) (*blocktable.Table, error) {
	if sha256.Sum256(raw) != c.Table {
		return nil, errors.New("its SHA-256 is not the one in constraints.blocks of " + TaskSpec)
	}
	t, err := blocktable.Parse(raw, outputs)
	if err == nil && t.Block() != c.Block {
		return nil, fmt.Errorf("its blocks have %d bytes, and constraints.blocks of %s names %d", t.Block(), TaskSpec, c.Block)
	}
	return t, err
}

// tableOf makes the block table of hashed outputs; nil if it would be too large in any form, or if
// it cannot have the time of an output.
func tableOf(project *pathsafe.Dir, links pathsafe.Links, outputs []output) (*blocktable.Table, error) {
	if slices.ContainsFunc(outputs, func(o output) bool { return !blocktable.ValidTime(o.sec) }) {
		return nil, nil
	}
	block := blocktable.BlockFor(func(yield func(string, int64) bool) {
		for _, o := range outputs {
			if !yield(o.path.String(), o.size) {
				return
			}
		}
	})
	if block == 0 {
		return nil, nil
	}
	var dirErr error
	t, err := blocktable.New(blocktable.Draft{
		Block: block,
		DirPerm: func(dir string) fs.FileMode {
			perm, err := grantedBy(project, dir, links)
			if dirErr == nil {
				dirErr = err
			}
			return perm
		},
		Entries: func(yield func(blocktable.Entry) bool) {
			for _, o := range outputs {
				if !yield(blocktable.Entry{Path: o.path.String(), Attributes: o.attributes(), Values: thinned(o.values, block)}) {
					return
				}
			}
		},
	})
	if err = errors.Join(dirErr, err); err != nil {
		return nil, fmt.Errorf("%s: %w", BlocksFile, err)
	}
	return t, nil
}

// grantedBy returns the permissions of a parent directory of an output.
func grantedBy(project *pathsafe.Dir, dir string, links pathsafe.Links) (fs.FileMode, error) {
	path, err := pathsafe.Parse(dir)
	if err != nil {
		return 0, err
	}
	perm, err := project.GrantedPath(path, links)
	return fs.FileMode(perm), err
}

func (o *output) attributes() blocktable.Attributes {
	return blocktable.Attributes{Size: o.size, Perm: o.perm, Sec: o.sec, Nsec: o.nsec}
}

// thinned are the values between blocks of another size, of those between default blocks.
func thinned(values []byte, block int64) []byte {
	step := int(block / blocktable.DefaultBlock)
	if step == 1 {
		return values
	}
	var thin []byte
	for at := step * sha256.Size; at <= len(values); at += step * sha256.Size {
		thin = append(thin, values[at-sha256.Size:at]...)
	}
	return thin
}
