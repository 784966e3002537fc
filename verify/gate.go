package verify

import (
	"context"
	"iter"
	"slices"
)

// ProofFault is the finding of a restore about PROOF.json.
type ProofFault int

// The faults of PROOF.json, in the order of SPECTRUM-06 section 8.4.3.
const (
	ProofGood ProofFault = iota
	ProofMissing
	ProofMalformed     // also a proof_hash that does not fit
	ProofResultMissing // restoration_result missing or not an object
	ProofNotVerified
)

// HashesFault is the finding of a restore about OUTPUT_HASHES.json.
type HashesFault int

// The faults of OUTPUT_HASHES.json, in the order of SPECTRUM-06 section 8.4.3.
const (
	HashesGood HashesFault = iota
	HashesFileMissing
	HashesMalformed
	HashesMissing // "hashes" missing or not an object
	HashesEmpty
)

// Gated is a bundle that passed the strict gate of a restore: SPECTRUM-05 strict, except for
// the faults that have codes of the restore.
type Gated struct {
	runID  string
	proof  ProofFault
	hashes HashesFault
	paths  []string
	bundle *Bundle

	attested *Attested // instead of bundle, if outputs were not read
}

// Gate verifies one bundle for a restore. The error is a [*Reject], unless no
// verdict was reached.
func Gate(ctx context.Context, run *Run, watch Watch) (*Gated, error) {
	return gate(ctx, examination{run: run, gate: true, watch: watch})
}

func gate(ctx context.Context, e examination) (*Gated, error) {
	if err := e.examine(ctx); err != nil {
		return nil, err
	}
	g := &Gated{runID: e.run.id, proof: e.proof, hashes: e.hashes, paths: make([]string, 0, len(e.entries))}
	wellFormed := true
	for i := range e.entries {
		g.paths = append(g.paths, e.entries[i].name)
		wellFormed = wellFormed && e.entries[i].wellFormed()
	}
	var err error
	switch isWhole := wellFormed && g.proof == ProofGood && g.hashes == HashesGood; {
	case isWhole && e.attest:
		g.attested, err = e.attested()
	case isWhole:
		g.bundle, err = e.bundle()
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

// GatedChain is a chain whose bundles all passed the strict gate.
type GatedChain struct {
	bundles []*Gated
	root    string
}

// GateChain is [Gate] for a chain: the chain's own checks, then every bundle
// in chain order.
func GateChain(ctx context.Context, runs []*Run, watch Watch) (*GatedChain, error) {
	return gateChain(runs, func(run *Run) (*Gated, error) { return Gate(ctx, run, watch) })
}

func gateChain(runs []*Run, gate func(*Run) (*Gated, error)) (*GatedChain, error) {
	bundles, err := inChainOrder(runs, gate)
	if err != nil {
		return nil, err
	}
	c := &GatedChain{bundles: bundles}
	signed := make([]*Bundle, len(bundles))
	for i, g := range bundles {
		switch {
		case g.bundle != nil:
			signed[i] = g.bundle
		case g.attested != nil:
			signed[i] = g.attested.signed
		default:
			return c, nil
		}
	}
	if c.root, err = chainRoot(signed); err != nil {
		return nil, err
	}
	return c, nil
}

// Bundles yields the bundles in chain order.
func (c *GatedChain) Bundles() iter.Seq[*Gated] { return slices.Values(c.bundles) }

// Root is the chain root, or "" when a bundle has a fault.
func (c *GatedChain) Root() string { return c.root }

// RunID is the bundle's run_id.
func (g *Gated) RunID() string { return g.runID }

// Proof is the first fault of PROOF.json.
func (g *Gated) Proof() ProofFault { return g.proof }

// Hashes is the first fault of OUTPUT_HASHES.json.
func (g *Gated) Hashes() HashesFault { return g.hashes }

// Len is the number of [Gated.Paths].
func (g *Gated) Len() int { return len(g.paths) }

// Paths yields every output path as it was signed, also ill-formed ones, in
// ascending order of its bytes.
func (g *Gated) Paths() iter.Seq[string] { return slices.Values(g.paths) }

// Bundle returns the verified bundle. It returns false if PROOF.json or OUTPUT_HASHES.json has a
// fault, or if an output path is ill formed, since that output was not read.
func (g *Gated) Bundle() (*Bundle, bool) { return g.bundle, g.bundle != nil }

// Attested returns the bundle of [Attest], under the same conditions.
func (g *Gated) Attested() (*Attested, bool) { return g.attested, g.attested != nil }
