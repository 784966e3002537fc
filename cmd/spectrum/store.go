package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

// storeHelp is what the help of commands with stores has about their addresses.
const storeHelp = `STORE is file:///DIR, s3://BUCKET/PREFIX, or https://HOST/PATH, which can only be
read. Keys for s3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from the
profile AWS_PROFILE of ~/.aws/credentials; without keys requests are anonymous. For a
server other than Amazon's add "?endpoint=https://HOST". Of BUNDLE_ROOT the first 4 or
more digits are enough, or "latest", where the store can be listed: not by https.`

// patienceFlag is the flag of the patience with a store.
const patienceFlag = "timeout"

// addPatience adds that flag to a command.
func (a *app) addPatience(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&a.patience, patienceFlag, store.Patience, "give up on a store that is silent or slow for this `time`")
}

// What an address must name.
const (
	wholeStore = false
	oneRun     = true
)

// openStore opens the store of an address, which has a bundle root if a run is expected.
func (a *app) openStore(cmd *cobra.Command, text string, run bool) (*store.Store, string, error) {
	if a.patience <= 0 {
		return nil, "", usage(cmd, "--timeout must be more than 0")
	}
	address, err := store.Parse(text)
	if err != nil {
		return nil, "", usage(cmd, "%w", err)
	}
	switch {
	case run && !address.NamesRun():
		return nil, "", &usageError{command: cmd.CommandPath(), err: fmt.Errorf("%q names no run", text), next: "name a run as STORE@BUNDLE_ROOT; \"spectrum ls STORE\" lists them"}
	case !run && address.NamesRun():
		return nil, "", usage(cmd, "%q names a run, where a store is expected", text)
	}
	s, err := store.Open(address, a.patience)
	if err != nil || address.Short == "" {
		return s, address.Root, err
	}
	root, err := s.Find(cmd.Context(), address.Short)
	switch {
	case errors.Is(err, store.ErrUnlisted):
		return nil, "", usage(cmd, "%q: %w: give all 64 digits of the bundle root", text, store.ErrUnlisted)
	case err != nil:
		return nil, "", err
	}
	a.say("%s is run %s", address, root)
	return s, root, nil
}

func newStore(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "check a store of runs, and remove what no run needs",
		Long: `store checks stores, and removes from them what no run needs. "spectrum push" writes
runs to a store, "spectrum ls STORE" lists them.

` + storeHelp,
	}
	cmd.AddCommand(newStoreCheck(app), newStoreGC(app))
	return cmd
}

func newStoreCheck(app *app) *cobra.Command {
	var readData bool
	cmd := &cobra.Command{
		Use:   "check [--read-data] STORE",
		Short: "check the runs of a store",
		Long: `check fetches every run of a store without its outputs, verifies what is signed, and
checks that the packs with the outputs are there in their full size. It prints a line
for each problem, and exits with 1 if there is one.

With --read-data it also fetches all outputs and compares them with the signed hashes.
What is found damaged, your next push to this address sends again.

check changes nothing in the store.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, _, err := app.openStore(cmd, args[0], wholeStore)
			if err != nil {
				return err
			}
			return app.checkStore(cmd.Context(), s, readData)
		},
	}
	cmd.Flags().BoolVar(&readData, "read-data", false, "fetch all outputs, and compare them with the signed hashes")
	app.addPatience(cmd)
	return cmd
}

func (a *app) checkStore(ctx context.Context, s *store.Store, readData bool) error {
	runs, err := s.Runs(ctx)
	if err != nil {
		return err
	}
	packs, err := s.Packs(ctx)
	if err != nil {
		return err
	}
	bar := a.newBar("checking")
	defer bar.done()
	var problems []string
	var right store.Right
	for _, of := range runs {
		err := a.withFetched(ctx, s, of.Key, func(run *store.Run, _ *pathsafe.Dir) error {
			for _, pack := range run.Lacks(packs) {
				problems = append(problems, fmt.Sprintf("run %s: %s is missing or not complete", of.Key, pack))
			}
			if !readData {
				return nil
			}
			err := run.Check(ctx, fetching(bar), &right)
			if isOfRun(err) {
				if failed := a.distrust(ctx, s, run); failed != nil {
					return failed
				}
			}
			return err
		})
		if isOfRun(err) {
			problems = append(problems, fmt.Sprintf("run %s: %v", of.Key, err))
			continue
		}
		if err != nil {
			return err
		}
	}
	bar.done()
	return a.toldStore(len(runs), len(packs), problems)
}

// distrust has the record of what this user pushed forget the damaged packs of a run.
func (a *app) distrust(ctx context.Context, s *store.Store, run *store.Run) (err error) {
	record, err := a.openRecord(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, record.Close()) }()
	return run.Distrust(ctx, record)
}

// isOfRun reports whether an error is about a run, and not about the way to the store.
func isOfRun(err error) bool {
	_, isWrong := errors.AsType[*store.WrongError](err)
	_, isReject := errors.AsType[*verify.Reject](err)
	return isWrong || isReject || errors.Is(err, store.ErrMissing)
}

// toldStore reports what a check has found.
func (a *app) toldStore(runs, packs int, problems []string) error {
	if len(problems) == 0 {
		return a.result(fmt.Sprintf("OK %s, %s", numberOf(runs, "run"), numberOf(packs, "pack")), map[string]any{"code": "OK", "ok": true, "packs": packs, "runs": runs})
	}
	if !a.json {
		if err := a.text(strings.Join(problems, "\n")); err != nil {
			return err
		}
	}
	return storeDamaged(problems)
}

func storeDamaged(problems []string) error {
	return &codedError{
		code: codeStoreDamaged, err: fmt.Errorf("the store has %s", numberOf(len(problems), "problem")), details: map[string]any{"problems": jsonTexts(problems)},
		hint: "as the user who will push, run \"spectrum store check --read-data STORE\", then push the runs again from where they were sealed; what cannot be pushed again is lost",
	}
}

func newStoreGC(app *app) *cobra.Command {
	var opts struct {
		grace  time.Duration
		unlock bool
	}
	cmd := &cobra.Command{
		Use:   "gc STORE",
		Short: "remove packs that no run of a store needs",
		Long: `gc removes packs that no run needs: those of pushes that were never completed, and of
runs that you removed (remove the object runs/BUNDLE_ROOT to remove a run).

It works in two phases, so that it never takes a pack from a push. A pack that no run
needs, and that is older than the grace period, is marked. A later gc removes it, when
the mark is older than the grace period too. All times are those of the store's clock.

In a directory gc also removes the unfinished files of pushes that were killed.

If any run cannot be read, gc removes no pack: "spectrum store check" names it.`,
		Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.grace < time.Second {
				return usage(cmd, "--grace must be at least 1s")
			}
			s, _, err := app.openStore(cmd, args[0], wholeStore)
			if err != nil {
				return err
			}
			done, err := s.Collect(cmd.Context(), opts.grace, opts.unlock)
			if err != nil {
				return err
			}
			return app.result(fmt.Sprintf("%s and %s in use; removed %s (%s), marked %d, %d too new",
				numberOf(done.Runs, "run"), numberOf(done.Packs, "pack"), numberOf(done.Removed, "pack"), bytesText(done.Freed), done.Marked, done.Waiting),
				map[string]any{
					"bytes_freed": done.Freed, "code": "OK", "marked": done.Marked, "ok": true, "packs": done.Packs, "removed": done.Removed, "runs": done.Runs, "waiting": done.Waiting,
				})
		},
	}
	cmd.Flags().DurationVar(&opts.grace, "grace", store.Grace, "`time` that a pack without a run is kept, twice; longer than any push")
	cmd.Flags().BoolVar(&opts.unlock, "unlock", false, "take over from a gc that was killed longer ago than the grace period")
	app.addPatience(cmd)
	return cmd
}

// listStore lists the runs of a store.
func (a *app) listStore(cmd *cobra.Command, text string, long bool) error {
	s, _, err := a.openStore(cmd, text, wholeStore)
	if err != nil {
		return err
	}
	runs, err := s.Runs(cmd.Context())
	if err != nil {
		return err
	}
	var lines []string
	records := []any{}
	for _, of := range runs {
		address := s.Address() + "@" + of.Key
		record := map[string]any{"address": jsonText(address), "bundle_root": of.Key, "stored_at": of.Time.UTC().Format(time.RFC3339)}
		line := address
		if long {
			err := a.withFetched(cmd.Context(), s, of.Key, func(run *store.Run, _ *pathsafe.Dir) error {
				completed := "-"
				if t := run.Completed(); !t.IsZero() {
					completed = t.UTC().Format(time.RFC3339)
				}
				line = fmt.Sprintf("%s %s %d %s %s", completed, run.ValidatorID(), run.Len(), words.Path(run.RunID()), address)
				record["completed_at"], record["files"], record["run_id"], record["validator_id"] = completed, run.Len(), jsonText(run.RunID()), run.ValidatorID()
				return nil
			})
			if isOfRun(err) {
				line, record["rejected"] = fmt.Sprintf("rejected %s: %v", address, err), jsonText(err.Error())
			} else if err != nil {
				return err
			}
		}
		lines, records = append(lines, line), append(records, record)
	}
	return a.result(strings.Join(lines, "\n"), map[string]any{"code": "OK", "ok": true, "runs": records})
}

// withFetched calls do with the signed part of a run, in a private directory that is removed afterwards.
func (a *app) withFetched(ctx context.Context, s *store.Store, root string, do func(run *store.Run, project *pathsafe.Dir) error) (err error) {
	b, err := a.newFetched()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	address := s.Address() + "@" + root
	run, err := s.Open(ctx, root, b.dir)
	if err != nil {
		return a.toldFetched(b, err, address)
	}
	return a.toldFetched(b, do(run, b.dir), address)
}

// toldFetched is an error about a run that is fetched into the state directory: by what the user named, and
// not by the private directory there.
func (a *app) toldFetched(b *box, err error, address string) error {
	if err == nil {
		return nil
	}
	if full, is := errors.AsType[*machine.FullError](err); is {
		if state, failed := a.statePath(); failed == nil {
			err = &machine.FullError{Path: state, Of: full.Of, Need: full.Need, Free: full.Free}
		}
		return fmt.Errorf("fetch %s: %w", address, err)
	}
	return b.told(err, "", address)
}

// newFetched makes a private directory for a run that is fetched, in the state directory. Those that
// killed commands left are removed.
func (a *app) newFetched() (*box, error) {
	state, err := a.openState()
	if err != nil {
		return nil, err
	}
	defer state.Close()
	above, err := state.Fetched()
	if err != nil {
		return nil, err
	}
	b, err := newBoxIn(above)
	if err != nil {
		return nil, err
	}
	if err := b.make(); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}
