package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sync"

	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// signedBlocks is the block table of a bundle under examination.
type signedBlocks struct {
	table *blocktable.Table // nil: none, or its form is wrong
	fault error             // why it cannot be used
	at    int               // the output that the fault is about
	err   error             // an error of this machine: there is no bundle
}

// Blocks returns the signed block table of the bundle, with which every output was compared, or nil
// without one. The error is the reason why the table cannot be used; one is a file
// [bundle.BlocksFile] that TASK_SPEC.json does not name. It is not a verdict of a law: the restore
// decides about it.
func (b *Bundle) Blocks() (*blocktable.Table, error) { return b.blocks.usable() }

func (s *signedBlocks) usable() (*blocktable.Table, error) {
	if s.fault != nil {
		return nil, s.fault
	}
	return s.table, nil
}

// readBlocks reads the block table. An error of this machine waits for the verdict.
func (e *examination) readBlocks() {
	s := &e.blocks
	claim, named, malformed := bundle.ClaimedBlocks(e.artifacts[bundle.TaskSpec].object)
	raw, fault, err := e.run.readNamed(bundle.BlocksFile, bundle.BlocksMember, named, malformed)
	if s.fault, s.err = fault, err; err != nil || fault != nil || raw == nil {
		return
	}
	if s.table, fault = claim.ParseBlocks(raw, e.names()); fault != nil {
		s.table, s.fault = nil, fmt.Errorf("%s: %w", bundle.BlocksFile, fault)
		return
	}
	if e.usable(bundle.Proof) && e.proofSum != claim.Proof {
		s.table, s.fault = nil, fmt.Errorf("%s: its SHA-256 is not the one in constraints.blocks of %s", bundle.Proof, bundle.TaskSpec)
	}
	if fault := s.compareEmpty(e.entries); fault != nil {
		s.table, s.fault = nil, fault
	}
}

// compareEmpty compares the table with the digests as far as that requires no content: an output is
// empty exactly if its SHA-256 is that of the empty input. For an empty output no block is read
// that could contradict the table.
func (s *signedBlocks) compareEmpty(declared []declaration) error {
	if s.table == nil {
		return nil
	}
	for i := range declared {
		d := &declared[i]
		size, isEmpty := s.table.Attributes(i).Size, d.text() == emptyHash
		switch {
		case isEmpty && size > 0:
			return fmt.Errorf("%s: it has %d bytes for %q, whose SHA-256 is that of an empty file", bundle.BlocksFile, size, d.name)
		case !isEmpty && size == 0:
			return fmt.Errorf("%s: it has no bytes for %q, whose SHA-256 is not that of an empty file", bundle.BlocksFile, d.name)
		}
	}
	return nil
}

// emptyHash is the hash of an empty file as it is signed.
var emptyHash = func() string {
	digest := sha256.Sum256(nil)
	return bundle.HashPrefix + hex.EncodeToString(digest[:])
}()

// comparing keeps parallel comparisons apart. They only meet when a table is wrong.
var comparing sync.Mutex

// compare compares the table with the size and values that were read for output i. Of several
// faults that of the first output is kept.
func (s *signedBlocks) compare(i int, name string, size int64, values []byte) {
	if s.table == nil {
		return
	}
	var fault error
	switch signed := s.table.Attributes(i).Size; {
	case signed != size:
		fault = fmt.Errorf("%s: it has %d bytes for %q, which has %d", bundle.BlocksFile, signed, name, size)
	case !s.table.HasValues(i, values):
		fault = fmt.Errorf("%s: the chaining values of %q are not those of its content", bundle.BlocksFile, name)
	default:
		return
	}
	comparing.Lock()
	defer comparing.Unlock()
	if s.fault == nil || i < s.at {
		s.fault, s.at = fault, i
	}
}

// signAttributes sets the signed attributes of the outputs and their directories. Set-ID bits stay
// those of the source, which no restore sets.
func (b *Bundle) signAttributes(table *blocktable.Table) {
	for i := range b.outputs {
		o, signed := &b.outputs[i], table.Attributes(i)
		o.perm = o.perm&(fs.ModeSetuid|fs.ModeSetgid) | signed.Perm
		o.sec, o.nsec = signed.Sec, signed.Nsec
	}
	if len(b.outputs) > 0 {
		b.sourceDirs, b.dirs = b.dirs, directoriesIn(table, b.dirs[0].perm)
	}
}

// directoriesIn lists the directories of a table, beneath a root that grants this. The mode of the
// project root is not signed.
func directoriesIn(table *blocktable.Table, root fs.FileMode) []directory {
	dirs := []directory{{"", root}}
	for path, perm := range table.Dirs() {
		dirs = append(dirs, directory{path, perm})
	}
	return dirs
}
