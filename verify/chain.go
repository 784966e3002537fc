package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Chain is a chain of verified bundles. It can only be made by verifying.
type Chain struct {
	bundles []*Bundle
	root    string
}

// StrictChain verifies a chain by SPECTRUM-05: the chain's own checks, every
// bundle in chain order, then the chain root. All or nothing.
func StrictChain(ctx context.Context, runs []*Run, watch Watch) (*Chain, error) {
	if err := checkRunIDs(runs); err != nil {
		return nil, err
	}
	c := &Chain{}
	for _, run := range runs {
		b, err := Strict(ctx, run, watch)
		if err != nil {
			return nil, rejectIn(err, run)
		}
		c.bundles = append(c.bundles, b)
	}
	root, err := chainRoot(c.bundles)
	if err != nil {
		return nil, err
	}
	c.root = root
	return c, nil
}

// Bundles yields the bundles in chain order.
func (c *Chain) Bundles() iter.Seq[*Bundle] { return slices.Values(c.bundles) }

// Root is the chain root, 64 lower-case hex digits.
func (c *Chain) Root() string { return c.root }

// checkRunIDs applies the checks that a chain has before its bundles.
func checkRunIDs(runs []*Run) error {
	if len(runs) == 0 {
		return &Reject{Code: ChainEmpty, Message: "the chain has no run"}
	}
	seen := make(map[string]bool, len(runs))
	for _, run := range runs {
		if seen[run.id] {
			return &Reject{
				Code:    ChainDuplicateRun,
				Message: fmt.Sprintf("two runs of the chain have the id %q", run.id),
				RunID:   run.id,
			}
		}
		seen[run.id] = true
	}
	return nil
}

func chainRoot(bundles []*Bundle) (string, error) {
	var roots, ids []string
	for _, b := range bundles {
		roots, ids = append(roots, b.root), append(ids, b.runID)
	}
	root, err := bundle.ChainRoot(roots, ids)
	if err != nil {
		return "", &Reject{Code: SerializationInvalid, Message: "a run id cannot be written as JSON: " + err.Error()}
	}
	return root, nil
}

// rejectIn names the run that a verdict is about.
func rejectIn(err error, run *Run) error {
	var reject *Reject
	if errors.As(err, &reject) {
		return reject.in(run.id)
	}
	return err
}
