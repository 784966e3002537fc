package main

import (
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spf13/cobra"
)

func newAudit(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "the log of what was done to restore roots",
		Long: `audit reads the log of every commit, rollback and release in the state
directory: what began, before anything was written, and how it ended; and what
held a candidate back, and why no longer. Each line
is bound to the one before it by its hash, so that a line that was changed,
removed or moved is found. Somebody who may write the log can also cut its end,
or write it anew: compare with a head that "audit verify" printed before.`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "show",
			Short: "print the log, one line for each event",
			Args:  asUsage(cobra.NoArgs),
			RunE:  func(*cobra.Command, []string) error { return app.withLog(app.showLog) },
		},
		&cobra.Command{
			Use:   "verify",
			Short: "check that no line was changed, removed or moved",
			Args:  asUsage(cobra.NoArgs),
			RunE:  func(*cobra.Command, []string) error { return app.withLog(app.verifyLog) },
		})
	return cmd
}

// withLog runs do with the audit log of the state directory.
func (a *app) withLog(do func(*audit.Log) error) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	log, err := openLog(state)
	if err != nil {
		return err
	}
	defer log.Close()
	return do(log)
}

func openLog(state *statedir.Dir) (*audit.Log, error) {
	f, err := state.AuditLog()
	if err != nil {
		return nil, err
	}
	return audit.New(f), nil
}

// showLog prints what can be read. Of a log that was damaged these are the
// events before that.
func (a *app) showLog(log *audit.Log) error {
	if !a.json {
		_, err := log.Read(func(e audit.Entry) error { return a.text(entryText(&e)) })
		return err
	}
	var entries []any
	head, err := log.Read(func(e audit.Entry) error {
		entries = append(entries, e.Fields())
		return nil
	})
	if err != nil {
		return err
	}
	return a.result("", map[string]any{"code": "OK", "entries": entries, "head": head.Hash, "ok": true})
}

// entryText is an event on one line. What came from outside is quoted.
func entryText(e *audit.Entry) string {
	kind := string(e.Kind)
	if e.Rollback != "" {
		kind += " " + string(e.Rollback)
	}
	who := e.Operator
	if who == "" {
		who = fmt.Sprint(e.UID)
	}
	line := fmt.Sprintf("%d %s %s %s %s %q", e.Sequence, e.Time.Format(time.RFC3339), who, kind, e.Action, e.Root)
	if e.Candidate != "" {
		line += " " + e.Candidate
	}
	if e.Reason != "" {
		line += fmt.Sprintf(" %q", e.Reason)
	}
	return oneLine(line)
}

func (a *app) verifyLog(log *audit.Log) error {
	head, err := log.Read(func(audit.Entry) error { return nil })
	if err != nil {
		return err
	}
	if head.Tail > 0 {
		a.say("spectrum: the log ends with %d bytes of a line that was never finished; the next event names them", head.Tail)
	}
	return a.result(fmt.Sprintf("OK %d entries, head %s", head.Sequence, head.Hash), map[string]any{
		"code": "OK", "details": map[string]any{}, "entries": head.Sequence, "head": head.Hash, "ok": true,
		"open": head.Open, "tail_bytes": head.Tail, "torn": head.Tears,
	})
}
