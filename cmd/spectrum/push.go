package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

func newPush(app *app) *cobra.Command {
	var opts pushOptions
	cmd := &cobra.Command{
		Use:   "push RUN_DIR... STORE",
		Short: "copy verified runs to a store",
		Long: `push verifies runs as verify does, copies them with all their outputs to a store,
and prints the address of each, STORE@BUNDLE_ROOT. Anyone who can read the store can
fetch and check a run by its address; the store need not be trusted.

` + storeHelp + `

A run appears in the store when all of it is there. A push that was interrupted
continues where it was when you repeat it. Contents that you pushed to the store
before are not sent again.

With --reseal a run without a signed block table is pushed as a derived bundle with
one: the same outputs and claims, signed by your key, with the bundle root that it is
derived from. Views of it can be lazy. push prints both roots; RUN_DIR stays as it is.

A store shows everything that you push to everyone who may read it, also the paths
and the signer. Nothing is encrypted.`,
		Args: atLeast(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.push(cmd, args[:len(args)-1], args[len(args)-1], opts)
		},
	}
	cmd.Flags().BoolVar(&opts.reseal, "reseal", false, "push runs without a block table as derived bundles with one")
	cmd.Flags().StringVar(&opts.key, "key", "", "key `file` for --reseal (default: key.pem in the state directory)")
	app.addPatience(cmd)
	return cmd
}

type pushOptions struct {
	reseal bool
	key    string
}

func (a *app) push(cmd *cobra.Command, runDirs []string, to string, opts pushOptions) (err error) {
	if opts.key != "" && !opts.reseal {
		return usage(cmd, "--key requires --reseal")
	}
	for _, dir := range runDirs {
		if store.IsAddress(dir) {
			return usage(cmd, "%q is a store, where a run directory is expected", dir)
		}
	}
	s, _, err := a.openStore(cmd, to, wholeStore)
	if err != nil {
		return err
	}
	if strings.HasPrefix(s.Address(), "http") {
		return usage(cmd, "%w", store.ErrReadOnly)
	}
	var key bundle.Key
	if opts.reseal {
		if key, err = a.resealingKey(opts.key); err != nil {
			return err
		}
	}
	c, err := a.openCandidate(cmd, runDirs, false)
	if err != nil {
		return err
	}
	defer c.close()
	bar := a.newBar("verifying")
	defer bar.done()
	bundles, err := examine(cmd.Context(), c, func() (all []*verify.Bundle, err error) {
		watch := bar.verifying(len(c.runs))
		watch.Reread = true
		for _, run := range c.runs {
			b, err := verify.Strict(cmd.Context(), run, watch)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	a.saySigned(bundles)
	if opts.reseal {
		b, err := a.newFetched()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		watch := bar.verifying(len(c.runs))
		watch.Reread = true
		if err := a.reseal(cmd.Context(), c, b, bundles, key, watch); err != nil {
			return err
		}
	}
	return a.pushAll(cmd.Context(), s, bundles, bar)
}

// openRecord opens the record of what this user pushed to a store.
func (a *app) openRecord(s *store.Store) (*store.Record, error) {
	state, err := a.openState()
	if err != nil {
		return nil, err
	}
	defer state.Close()
	records, err := state.Pushed()
	if err != nil {
		return nil, err
	}
	defer records.Close()
	return store.OpenRecord(records, s.Address())
}

// pushAll pushes bundles, one after the other.
func (a *app) pushAll(ctx context.Context, s *store.Store, bundles []*verify.Bundle, bar *bar) (err error) {
	record, err := a.openRecord(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	var lines []string
	var runs []any
	for _, b := range bundles {
		done, err := s.Push(ctx, b, record, store.Watch{
			Begin: func(files int, bytes int64) { bar.begin("uploading", files, bytes) }, Moved: bar.add,
		})
		if err != nil {
			return err
		}
		if done.Existed && done.Packs == 0 {
			a.say("%s is in the store already", b.RunID())
		} else {
			a.say("pushed %s: %s, of which %s were sent in %s", b.RunID(), bytesText(done.Bytes), bytesText(done.Sent), numberOf(done.Packs, "pack"))
		}
		lines = append(lines, done.Address)
		runs = append(runs, map[string]any{
			"address": jsonText(done.Address), "bundle_root": b.Root(), "bytes": done.Bytes, "files": done.Files, "packs": done.Packs, "run_id": jsonText(b.RunID()), "sent": done.Sent,
		})
	}
	bar.done()
	return a.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "runs": runs})
}
