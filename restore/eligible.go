package restore

import (
	"context"
	"errors"
	"slices"

	"github.com/spectrumfs/spectrum/verify"
)

// Candidate is the requested source of a restore, as given. Nothing in it has been verified.
type Candidate struct {
	Runs  []*verify.Run
	Chain bool // several runs are a chain in any case
	Watch verify.Watch
}

func (c Candidate) isChain() bool { return c.Chain || len(c.Runs) > 1 }

// gated is a candidate whose bundles passed the strict gate.
type gated struct {
	bundles   []*verify.Gated
	chain     bool
	chainRoot string
}

// eligible is step 1.1 and, for a chain, steps C.1 to C.3 (section 8.4.3).
func eligible(ctx context.Context, c Candidate, by gates) (gated, error) {
	g, err := gate(ctx, c, by)
	if err != nil {
		return gated{}, gateFailure(err)
	}
	for _, b := range g.bundles {
		if err := checkArtifacts(b); err != nil {
			return gated{}, g.name(err, b.RunID())
		}
	}
	return g, nil
}

// gates are the strict gate for one run and for a chain.
type gates struct {
	one   func(context.Context, *verify.Run, verify.Watch) (*verify.Gated, error)
	chain func(context.Context, []*verify.Run, verify.Watch) (*verify.GatedChain, error)
}

var (
	wholly    = gates{verify.Gate, verify.GateChain}     // every output is read
	attesting = gates{verify.Attest, verify.AttestChain} // none is
)

// gate is order 1 of section 8.4.3, for all bundles.
func gate(ctx context.Context, c Candidate, by gates) (gated, error) {
	if !c.isChain() && len(c.Runs) == 1 {
		b, err := by.one(ctx, c.Runs[0], c.Watch)
		return gated{bundles: []*verify.Gated{b}}, err
	}
	chain, err := by.chain(ctx, c.Runs, c.Watch)
	if err != nil {
		return gated{}, err
	}
	return gated{slices.Collect(chain.Bundles()), true, chain.Root()}, nil
}

// gateFailure maps a verdict of SPECTRUM-05, and duplicates, to a failure.
func gateFailure(err error) error {
	if errors.Is(err, verify.ErrHoles) || errors.Is(err, verify.ErrDirectories) { // the operator's limit, and no failure of a restore
		return err
	}
	var reject *verify.Reject
	if !errors.As(err, &reject) {
		return Internal(Preflight, err)
	}
	code := VerifyStrictFailed
	if reject.Code == verify.ChainDuplicateRun {
		code = ChainRunIDDuplicate
	}
	f := Fail(code, reject.Details["path"], err)
	return f.in(reject.RunID)
}

// checkArtifacts is orders 2 and 3 of section 8.4.3.
func checkArtifacts(b *verify.Gated) *Failure {
	if code, ok := proofCodes[b.Proof()]; ok {
		return Fail(code.code, "", errors.New(code.text))
	}
	if code, ok := hashesCodes[b.Hashes()]; ok {
		return Fail(code.code, "", errors.New(code.text))
	}
	return nil
}

type codeText struct {
	code Code
	text string
}

var proofCodes = map[verify.ProofFault]codeText{
	verify.ProofMissing:       {ProofMissing, "PROOF.json is missing"},
	verify.ProofMalformed:     {ProofMalformed, "PROOF.json is not valid JSON, or its proof_hash does not fit"},
	verify.ProofResultMissing: {ProofRestorationResultMissing, "PROOF.json: restoration_result is missing or not an object"},
	verify.ProofNotVerified:   {ProofNotVerified, "PROOF.json: restoration_result.verified is not true"},
}

var hashesCodes = map[verify.HashesFault]codeText{
	verify.HashesFileMissing: {OutputHashesMissing, "OUTPUT_HASHES.json is missing"},
	verify.HashesMalformed:   {OutputHashesMalformed, "OUTPUT_HASHES.json is not valid JSON"},
	verify.HashesMissing:     {OutputHashesHashesMissing, "OUTPUT_HASHES.json: hashes is missing or not an object"},
	verify.HashesEmpty:       {OutputHashesHashesEmpty, "OUTPUT_HASHES.json: hashes is empty"},
}

// name adds the run to a failure in a chain.
func (g gated) name(f *Failure, runID string) error {
	if g.chain {
		return f.in(runID)
	}
	return f
}
