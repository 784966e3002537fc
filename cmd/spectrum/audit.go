package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spf13/cobra"
)

func newAudit(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "show and verify the log of commits, rollbacks and releases",
		Long: `audit reads the log of every commit, rollback and release in the state directory.
The log records what began, before anything was written, and how it ended, and
why a candidate was quarantined or released.

Each entry contains the hash of the entry before it, so "audit verify" detects an
entry that was changed, removed or moved. It also compares the log with the signed
savepoints, each of which names its commit, and so detects a log whose end was cut
off, a deleted log and deleted savepoints. Each savepoint also signs the last log
entry before its commit, so a log that was rewritten with new hashes is detected
up to that entry. To detect entries that were removed after the newest savepoint,
or from the log and the savepoints together, compare the head that "audit verify"
prints with one that it printed before.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "show",
			Short: "print the log, one line for each entry",
			Args:  exactly(0),
			RunE:  func(*cobra.Command, []string) error { return app.withLog(app.showLog) },
		},
		&cobra.Command{
			Use:   "verify",
			Short: "check that no entry was changed, removed or moved",
			Args:  exactly(0),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return app.withSavepoints(func(s *savepointCommand) error { return verifyAudit(cmd.Context(), s) })
			},
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

// logger is openLog for the rules that write in the log themselves.
func logger(state *statedir.Dir) action.OpenLog {
	return func() (*audit.Log, error) { return openLog(state) }
}

// showLog prints what can be read. Of a log that was damaged these are the
// events before that.
func (a *app) showLog(log *audit.Log) error {
	if !a.json {
		_, err := log.Read(func(e audit.Entry) error { return a.text(entryText(&e)) })
		return unlessGone(err)
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
	if len(e.Actions) > 0 {
		line += " of " + strings.Join(e.Actions, ",")
	}
	if e.Snapshot != "" {
		line += " snapshot " + e.Snapshot
	}
	if e.Reason != "" {
		line += fmt.Sprintf(" %q", e.Reason)
	}
	if len(e.Lost) > 0 {
		line += " lost " + strings.Join(e.Lost, ",")
	}
	return oneLine(line)
}
