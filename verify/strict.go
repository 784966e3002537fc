package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Strict verifies one bundle by SPECTRUM-05, strict, with the run-status check. It has no options:
// strict is the only mode of this law. It returns a [*Reject], unless no verdict was reached; on an
// error there is no bundle.
func Strict(ctx context.Context, run *Run, watch Watch) (*Bundle, error) {
	e := examination{run: run, watch: watch}
	if err := e.examine(ctx); err != nil {
		return nil, err
	}
	return e.bundle()
}

// examination is one bundle during the phases of SPECTRUM-05. Each phase relies on those before it.
type examination struct {
	run   *Run
	watch Watch

	// listing is set if only the signed content is needed: outputs are not read.
	listing bool

	// attest is set if outputs are checked when they are read, and not before.
	attest bool

	// gate is set for a restore: faults that have codes of the restore are recorded here, and
	// the examination continues.
	gate   bool
	proof  ProofFault
	hashes HashesFault

	artifacts map[string]artifact
	kept      []*keptArtifact  // if the watch requires them
	dir       pathsafe.ID      // of the run directory, with kept
	dirPerm   fs.FileMode      // its permission bits
	declared  canonjson.Object // "hashes"; empty if they cannot be used
	key       identity
	root      string
	entries   []declaration     // the same, one by one
	outputs   []output          // the outputs that were read
	dirs      []directory       // their parent directories
	proofSum  [sha256.Size]byte // SHA-256 of PROOF.json
	blocks    signedBlocks
}

// examine runs the ten phases in the law's order; the first failure ends it.
func (e *examination) examine(ctx context.Context) error {
	phases := []func(context.Context) error{
		e.presence,
		e.parse,
		e.identity,
		e.bundleRoot,
		e.payload,
		e.signature,
		e.checkProof,
		e.forbidden,
		e.checkOutputs,
		e.runStatus,
	}
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	if e.run.sealed != "" && e.root != e.run.sealed {
		return machine.Disturbed(fmt.Sprintf("run %q: the bundle is not the one that was sealed", e.run.id))
	}
	return nil
}

// presence is phase 1.
func (e *examination) presence(context.Context) error {
	for _, name := range strictOrder {
		err := e.run.present(name)
		if err == nil {
			continue
		}
		if IsMachineFault(err) || e.listing && cannotRead(err) {
			return err
		}
		if err := e.fault(name, ProofMissing, HashesFileMissing, ArtifactMissing, presenceError(err)); err != nil {
			return err
		}
	}
	if e.run.dir == nil {
		return nil
	}
	extra, err := e.run.extraArtifact()
	if err != nil || extra == "" {
		return err
	}
	return rejectArtifact(ArtifactExtra, extra, "a second artifact of this kind")
}

// parse is phase 2.
func (e *examination) parse(context.Context) error {
	e.artifacts = make(map[string]artifact, len(strictOrder))
	for _, name := range strictOrder {
		if !e.usable(name) {
			continue
		}
		a, err := e.readArtifact(name)
		if err == nil {
			e.artifacts[name] = a
			continue
		}
		if IsMachineFault(err) || e.listing && cannotRead(err) {
			return err
		}
		if err := e.fault(name, ProofMalformed, HashesMalformed, ArtifactMalformed, err.Error()); err != nil {
			return err
		}
	}
	return nil
}

// cannotRead reports whether the reader's own bundle, on which no law has a verdict, cannot be read
// on this machine. For a candidate the same error is a verdict.
func cannotRead(err error) bool { return machine.IsFault(err) || errors.Is(err, fs.ErrPermission) }

// readArtifact reads an artifact. Only the bytes of TASK_SPEC.json are needed after parsing; keep
// records the state of the file, against which a later reader checks it.
func (e *examination) readArtifact(name string) (artifact, error) {
	raw, st, err := e.run.readRaw(name)
	if err != nil {
		return artifact{}, err
	}
	if err := e.keep(name, raw, st); err != nil {
		return artifact{}, err
	}
	var signed []byte
	switch name {
	case bundle.TaskSpec:
		signed = slices.Clone(raw)
	case bundle.Proof:
		e.proofSum = sha256.Sum256(raw)
	}
	a, err := parseArtifact(raw)
	a.raw = signed
	return a, err
}

// fault is the verdict on an artifact. In a restore's gate a fault of
// PROOF.json or OUTPUT_HASHES.json is noted instead, the first of each.
func (e *examination) fault(name string, proof ProofFault, hashes HashesFault, code Code, message string) error {
	switch {
	case e.gate && name == bundle.Proof:
		e.proof = proof
	case e.gate && name == bundle.OutputHashes:
		e.hashes = hashes
	default:
		return rejectArtifact(code, name, "%s", message)
	}
	return nil
}

// usable reports whether an artifact can be examined further: it has no recorded fault, or
// only that it names no outputs.
func (e *examination) usable(name string) bool {
	switch name {
	case bundle.Proof:
		return e.proof == ProofGood
	case bundle.OutputHashes:
		return e.hashes == HashesGood || e.hashes == HashesEmpty
	}
	return true
}

// bundleRoot is phase 4. It finds "hashes" and computes the root.
func (e *examination) bundleRoot(context.Context) error {
	if !e.usable(bundle.OutputHashes) {
		return nil
	}
	if err := e.findHashes(); err != nil || !e.usable(bundle.OutputHashes) {
		return err
	}
	status := e.artifacts[bundle.Status].object.Value
	e.root = bundle.Root(e.artifacts[bundle.TaskSpec].raw, e.declared.Value, status)
	return nil
}

// findHashes checks the form of "hashes".
func (e *examination) findHashes() error {
	value, ok := e.artifacts[bundle.OutputHashes].object.Get("hashes")
	if !ok {
		return e.hashesFault(rejectField(FieldMissing, bundle.OutputHashes, "hashes", "field \"hashes\" is missing"))
	}
	object, ok := value.Object()
	if !ok {
		return e.hashesFault(rejectField(ArtifactMalformed, bundle.OutputHashes, "hashes", "\"hashes\" is not an object"))
	}
	entries, err := declarationsOf(object)
	if err != nil {
		return err
	}
	e.declared, e.entries = object, entries
	if e.gate && len(entries) == 0 {
		e.hashes = HashesEmpty
	}
	return nil
}

func (e *examination) hashesFault(reject *Reject) error {
	if !e.gate {
		return reject
	}
	e.hashes = HashesMissing
	return nil
}

// checkProof is phase 7.
func (e *examination) checkProof(context.Context) error {
	if !e.usable(bundle.Proof) {
		return nil
	}
	proof := e.artifacts[bundle.Proof].object
	if !proofHashHolds(proof) {
		return e.fault(bundle.Proof, ProofMalformed, 0, ArtifactMalformed, "proof_hash does not fit its content")
	}
	value, ok := proof.Get("restoration_result")
	if !ok {
		return e.proofFault(ProofResultMissing, FieldMissing, "restoration_result", "field \"restoration_result\" is missing")
	}
	result, isObject := value.Object()
	if verified, _ := result.Get("verified"); verified.IsTrue() {
		return nil
	}
	fault := ProofNotVerified
	if !isObject {
		fault = ProofResultMissing
	}
	return e.proofFault(fault, RestorationFailed, "restoration_result", "restoration_result.verified is not true")
}

func (e *examination) proofFault(fault ProofFault, code Code, field, message string) error {
	if !e.gate {
		return rejectField(code, bundle.Proof, field, "%s", message)
	}
	e.proof = fault
	return nil
}

// proofHashHolds checks proof_hash if it is 64 hex digits, of either case; any other value is
// not a proof hash and is ignored.
func proofHashHolds(proof canonjson.Object) bool {
	value, _ := proof.Get("proof_hash")
	text, ok := value.Text()
	if !ok || !isHexAnyCase(text, 64) {
		return true
	}
	return strings.ToLower(text) == bundle.ProofHash(proof)
}

// forbidden is phase 8.
func (e *examination) forbidden(context.Context) error {
	if e.run.dir == nil {
		return nil
	}
	return e.run.forbiddenArtifact()
}

// checkOutputs is phase 9.
func (e *examination) checkOutputs(ctx context.Context) error {
	if e.listing {
		return e.checkForms()
	}
	if !e.usable(bundle.OutputHashes) {
		return nil
	}
	e.readBlocks()
	if e.attest {
		return e.checkAttested(ctx)
	}
	var err error
	e.outputs, err = hashOutputs(ctx, e.run.project, e.entries, outputPolicy{skipIllFormed: e.gate, watch: e.watch, blocks: &e.blocks})
	if err != nil {
		return err
	}
	e.dirs, err = directoriesOf(ctx, e.run.project, e.outputs)
	return err
}

// runStatus is phase 10.
func (e *examination) runStatus(context.Context) error {
	status := e.artifacts[bundle.Status].object
	for _, want := range []struct{ field, value string }{{"status", "success"}, {"cmp01", "pass"}} {
		if !fieldIs(status, want.field, want.value) {
			return rejectField(DecisionInvalid, bundle.Status, want.field, "%q is not %q", want.field, want.value)
		}
	}
	return nil
}

// fieldIs reports whether a member is exactly this string.
func fieldIs(o canonjson.Object, name, want string) bool {
	value, _ := o.Get(name)
	text, ok := value.Text()
	return ok && text == want
}
