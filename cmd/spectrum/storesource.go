package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

// openAddress opens a candidate that is a run in a store. It has no project root: the run is fetched
// into a project of its own.
func (a *app) openAddress(cmd *cobra.Command, o preview.Origin) (*candidate, error) {
	switch {
	case len(o.RunDirs) > 1:
		return nil, usage(cmd, "a run in a store cannot be part of a chain; fetch the runs with \"spectrum pull\" first")
	case cmd.Flags().Changed("project-root"):
		return nil, usage(cmd, "--project-root cannot be combined with a run in a store, which has its own project")
	}
	s, root, err := a.openStore(cmd, o.RunDirs[0], oneRun, store.Patience)
	if err != nil {
		return nil, err
	}
	o.RunDirs = []string{s.Address() + "@" + root}
	return a.fetchCandidate(cmd.Context(), o)
}

// fetchCandidate fetches the run of an address, whole, into a private project in the state directory,
// which is removed when the candidate is closed. Every byte is checked against the signature on the way;
// the candidate is verified like any other one afterwards.
func (a *app) fetchCandidate(ctx context.Context, o preview.Origin) (*candidate, error) {
	address, err := store.Parse(o.RunDirs[0])
	if err != nil {
		return nil, err
	}
	s, err := store.Open(address, store.Patience)
	if err != nil {
		return nil, err
	}
	b, err := a.newFetched()
	if err != nil {
		return nil, err
	}
	bar := a.newBar("fetching")
	defer bar.done()
	run, err := fetchInto(ctx, s, address.Root, b.dir, bar)
	if err != nil {
		return nil, errors.Join(a.toldFetched(b, err, address.String()), b.close())
	}
	opened, err := verify.OpenRun(b.dir, filepath.Join(b.place(), run.RunDir()))
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	opened.Expect(address.Root)
	return &candidate{origin: o, runs: []*verify.Run{opened}, fetched: b}, nil
}
