package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

// openAddress opens a candidate that is a run in a store. It has no project root: the run is fetched
// into a project of its own; without its outputs if it is to be looked at lazily.
func (a *app) openAddress(cmd *cobra.Command, o preview.Origin, lazy bool) (*candidate, error) {
	switch {
	case len(o.RunDirs) > 1:
		return nil, usage(cmd, "a run in a store cannot be part of a chain; fetch the runs with \"spectrum pull\" first")
	case cmd.Flags().Changed("project-root"):
		return nil, usage(cmd, "--project-root cannot be combined with a run in a store, which has its own project")
	}
	s, root, err := a.openStore(cmd, o.RunDirs[0], oneRun)
	if err != nil {
		return nil, err
	}
	return a.fetchCandidate(cmd.Context(), s, root, o, lazy)
}

// reopenAddress opens the candidate of a preview that is a run in a store.
func (a *app) reopenAddress(ctx context.Context, o preview.Origin) (*candidate, error) {
	address, err := store.Parse(o.RunDirs[0])
	if err != nil {
		return nil, err
	}
	s, err := store.Open(address, a.patience)
	if err != nil {
		return nil, err
	}
	return a.fetchCandidate(ctx, s, address.Root, o, false)
}

// fetchCandidate fetches a run in a store, whole, into a private project in the state directory, which is
// removed when the candidate is closed. Every byte is checked against the signature on the way; the
// candidate is verified like any other one afterwards. One that is to be looked at lazily is fetched
// without its outputs.
func (a *app) fetchCandidate(ctx context.Context, s *store.Store, root string, o preview.Origin, lazy bool) (*candidate, error) {
	address := s.Address() + "@" + root
	o.RunDirs = []string{address}
	b, err := a.newFetched()
	if err != nil {
		return nil, err
	}
	bar := a.newBar("fetching")
	defer bar.done()
	c := &candidate{origin: o, fetched: b}
	run, err := s.Open(ctx, root, b.dir)
	switch {
	case err == nil && lazy:
		c.far = run
	case err == nil:
		err = run.Pull(ctx, b.dir, fetching(bar))
	}
	if err != nil {
		return nil, errors.Join(a.toldFetched(b, err, address), b.close())
	}
	opened, err := verify.OpenRun(b.dir, filepath.Join(b.place(), run.RunDir()))
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	opened.Expect(root)
	c.runs = []*verify.Run{opened}
	return c, nil
}

// hasTables reports whether each run has a signed block table.
func hasTables(attested *restore.Attested) bool {
	for run := range attested.Runs() {
		if table, _ := run.Bundle().Blocks(); table == nil {
			return false
		}
	}
	return true
}

// fetchRest fetches the outputs of a run without a signed block table: there is no other way to check them.
func (a *app) fetchRest(ctx context.Context, c *candidate, bar *bar) error {
	a.say("the run has no signed block table: all of it is fetched first")
	err := c.far.Pull(ctx, c.fetched.dir, fetching(bar))
	c.far = nil
	return a.toldFetched(c.fetched, err, c.origin.RunDirs[0])
}

// outputs is where the outputs of a candidate come from that is looked at lazily.
func (c *candidate) outputs(attested *restore.Attested) (view.Outputs, error) {
	if c.far == nil {
		return view.ProjectOutputs{}, nil
	}
	ranges, err := c.far.Ranges(func(yield func(int64) bool) {
		for run := range attested.Runs() {
			for o := range run.Bundle().Outputs() {
				if signed, _ := o.Attributes(); !yield(signed.Size) {
					return
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	c.ranges, c.far = ranges, nil
	return storeOutputs{ranges}, nil
}

// storeOutputs are the outputs of a run in a store, which has signed sizes.
type storeOutputs struct{ ranges *store.Ranges }

var _ view.Outputs = storeOutputs{}

// Facts is not called: all attributes are signed.
func (storeOutputs) Facts(o verify.AttestedOutput) (fusefs.Facts, error) {
	return fusefs.Facts{}, fmt.Errorf("%q has no signed size", o.Name())
}

// Open opens an output for reading by ranges. It sends no request.
func (s storeOutputs) Open(o verify.AttestedOutput) (fusefs.Content, int64, error) {
	signed, _ := o.Attributes()
	return s.ranges.Open(o.Number()), signed.Size, nil
}

// Wrong names the store and the pack.
func (s storeOutputs) Wrong(o verify.AttestedOutput, err error) error {
	return s.ranges.Wrong(o.Number(), o.Name(), err)
}
