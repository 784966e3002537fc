package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Chain is a chain of verified bundles. Only verification constructs it.
type Chain struct {
	bundles []*Bundle
	root    string
}

// StrictChain verifies a chain by SPECTRUM-05: the chain's own checks, every
// bundle in chain order, then the chain root. All or nothing.
func StrictChain(ctx context.Context, runs []*Run, watch Watch) (*Chain, error) {
	bundles, err := inChainOrder(runs, func(run *Run) (*Bundle, error) { return Strict(ctx, run, watch) })
	if err != nil {
		return nil, err
	}
	root, err := chainRoot(bundles)
	if err != nil {
		return nil, err
	}
	return &Chain{bundles, root}, nil
}

// inChainOrder applies the checks that a chain has before its bundles, then
// verifies every bundle in chain order; the first failure names its run.
func inChainOrder[T any](runs []*Run, verify func(*Run) (T, error)) ([]T, error) {
	if err := checkRunIDs(runs); err != nil {
		return nil, err
	}
	bundles := make([]T, len(runs))
	for i, run := range runs {
		b, err := verify(run)
		run.Close()
		if err != nil {
			return nil, rejectIn(err, run)
		}
		bundles[i] = b
	}
	return bundles, nil
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
