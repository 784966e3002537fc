package main

import (
	"fmt"
	"strings"
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
removed or moved is found. "audit verify" also holds the log against the signed
savepoints, each of which names its commit: so it finds a log whose end was cut,
or that was removed, and savepoints that were taken away. Each savepoint also signs
the last entry before its commit: so a log that was written anew, with all its
hashes, is found up to there. What came after the newest savepoint, and what somebody
has cut from both, only a head shows that "audit verify" printed before.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "show",
			Short: "print the log, one line for each event",
			Args:  exactly(0),
			RunE:  func(*cobra.Command, []string) error { return app.withLog(app.showLog) },
		},
		&cobra.Command{
			Use:   "verify",
			Short: "check that no line was changed, removed or moved, and hold the log against the savepoints",
			Args:  exactly(0),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return app.withSavepoints(func(s *savepointShelf) error { return verifyAudit(cmd.Context(), s) })
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
