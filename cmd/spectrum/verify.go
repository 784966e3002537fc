package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

type verifyOptions struct {
	law     string
	chain   bool
	buildID string
	trusted bool
}

// laws are the values of --law.
var laws = []string{"strict", "resume", "memory"}

func newVerify(app *app) *cobra.Command {
	var opts verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [--law strict|resume|memory] [--chain] RUN_DIR...",
		Short: "verify a bundle, or a chain of bundles in the order given",
		Long: `verify checks whether run directories contain exactly what their signatures say.

The law is strict (SPECTRUM-05, the default), resume (SPECTRUM-02) or memory
(SPECTRUM-03). Only bundles that pass strict can be mounted or restored.

verify prints on stderr who signed each run and whether you trust that validator.
This is not part of the verdict, unless --require-trusted is given: then the exit
status is 5 if a validator is not pinned.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			return runVerify(cmd, app, opts, runDirs)
		},
	}
	cmd.Flags().StringVar(&opts.law, "law", "strict", "`law` to verify by: strict, resume or memory")
	addChain(cmd, &opts.chain)
	cmd.Flags().StringVar(&opts.buildID, "validator-build-id", "", "required `build` of the bundle, with --law resume")
	cmd.Flags().BoolVar(&opts.trusted, "require-trusted", false, "reject bundles of validators that are not pinned, with exit status 5")
	return cmd
}

func runVerify(cmd *cobra.Command, app *app, opts verifyOptions, runDirs []string) error {
	if err := checkVerify(cmd, opts, runDirs); err != nil {
		return err
	}
	c, err := app.openCandidate(cmd, runDirs, opts.chain)
	if err != nil {
		return err
	}
	defer c.close()
	bar := app.newBar("verifying")
	defer bar.done()
	accepted, err := examine(cmd.Context(), c, func() (acceptance, error) {
		return verifyBy(cmd.Context(), opts, c, bar.verifying(len(c.runs)))
	})
	if err != nil {
		return err
	}
	bar.done()
	app.sayRenamed(signedOf(accepted.bundles))
	app.saySigned(accepted.bundles)
	app.sayHeld(accepted.bundles)
	if opts.trusted {
		if err := app.requireTrusted(accepted.bundles); err != nil {
			return err
		}
	}
	return app.result(accepted.text, accepted.json)
}

// sayHeld names the runs with a wrong block table: the law accepts them, and a preview holds them.
func (a *app) sayHeld(bundles []*verify.Bundle) {
	for _, b := range bundles {
		if _, err := b.Blocks(); err != nil {
			a.tell("spectrum: %s: %s; a preview of it is held", oneLine(preview.RunText(b)), oneLine(err.Error()))
		}
	}
}

func checkVerify(cmd *cobra.Command, opts verifyOptions, runDirs []string) error {
	switch {
	case !slices.Contains(laws, opts.law):
		return usage(cmd, "there is no law %q", opts.law)
	case opts.buildID != "" && opts.law != "resume":
		return usage(cmd, "--validator-build-id requires --law resume")
	case opts.trusted && opts.law != "strict":
		return usage(cmd, "--require-trusted requires --law strict: the other laws check no signature")
	case opts.law == "resume" && (opts.chain || len(runDirs) > 1):
		return usage(cmd, "--law resume verifies one bundle; use --law memory for a chain")
	case len(runDirs) == 0 && !opts.chain && opts.law != "memory":
		return withoutRuns(usage(cmd, "no run directory was given"))
	}
	return nil
}

// acceptance is what is printed of something accepted.
type acceptance struct {
	text    string
	json    map[string]any
	bundles []*verify.Bundle // none of a law without signatures
}

func accepted(root string, fields map[string]any, bundles ...*verify.Bundle) acceptance {
	fields["code"], fields["details"], fields["ok"] = verify.OK, map[string]any{}, true
	return acceptance{strings.TrimSpace(string(verify.OK) + " " + root), fields, bundles}
}

func verifyBy(ctx context.Context, opts verifyOptions, c *candidate, watch verify.Watch) (acceptance, error) {
	switch {
	case opts.law == "resume":
		return unsigned(map[string]any{}, verify.Resume(ctx, c.runs[0], opts.buildID, watch))
	case opts.law == "memory":
		return unsigned(map[string]any{"run_ids": runIDs(c.runs)}, verify.Memory(ctx, c.runs, watch))
	case c.origin.Chain:
		return verifyChain(ctx, c, watch)
	}
	b, err := verify.Strict(ctx, c.runs[0], watch)
	if err != nil {
		return acceptance{}, err
	}
	return accepted(b.Root(), map[string]any{"bundle_root": b.Root()}, b), nil
}

// unsigned is what a law without roots accepted, unless it did not.
func unsigned(fields map[string]any, err error) (acceptance, error) {
	if err != nil {
		return acceptance{}, err
	}
	return accepted("", fields), nil
}

func verifyChain(ctx context.Context, c *candidate, watch verify.Watch) (acceptance, error) {
	chain, err := verify.StrictChain(ctx, c.runs, watch)
	if err != nil {
		return acceptance{}, err
	}
	roots, bundles := make([]string, 0, len(c.runs)), slices.Collect(chain.Bundles())
	for _, b := range bundles {
		roots = append(roots, b.Root())
	}
	return accepted(chain.Root(), map[string]any{
		"bundle_roots": roots, "chain_root": chain.Root(), "run_ids": runIDs(c.runs),
	}, bundles...), nil
}

func runIDs(runs []*verify.Run) []string {
	ids := make([]string, 0, len(runs))
	for _, run := range runs {
		ids = append(ids, run.ID())
	}
	return ids
}
