package main

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spf13/cobra"
)

func newLog(app *app) *cobra.Command {
	last := 0
	cmd := &cobra.Command{
		Use:   "log [RESTORE_ROOT]",
		Short: "list the commits and rollbacks of a restore root, or of all, the oldest first",
		Long: `log prints a line for each commit and each rollback that the audit log tells of: when
it began, its ID, and how it ended.

	done        all of it is in place, unless a rollback has undone it since
	incomplete  a rollback that had to leave some of what a commit has made, or could not
	            bring back all that was there before: the commit stands in part
	failed      nothing of it is left in the root
	unfinished  it is at work, or was killed: "spectrum recover" ends it
	halted      it could be neither undone nor completed: a person must act
	released    a person has released the root from it, and what it left stays
	refused     a rollback that could not begin

In the place of RESTORE_ROOT may stand the ID of a commit or rollback, or that of the
savepoint of a commit, or four or more digits of one.

The restore of a snapshot is a rollback too. "spectrum rollback" takes the ID of a commit,
or four or more digits of it. "spectrum audit show" prints the log entry for entry.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 0 {
				return usage(cmd, "--last wants a number of lines")
			}
			return app.listActions(args, last)
		},
	}
	cmd.Flags().IntVarP(&last, "last", "n", 0, "print only the last `N` (0: all)")
	return cmd
}

// listActions prints what a log tells. Of one that was damaged these are the actions before that.
func (a *app) listActions(args []string, last int) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	root, id := "", ""
	if len(args) > 0 {
		if id, err = idNotRoot(state, args[0]); err != nil {
			return err
		}
	}
	if len(args) > 0 && id == "" {
		if root, err = rootArg(args[0]); err == nil {
			root, err = nameOfRoot(state, root, true)
		}
		if err != nil {
			return err
		}
	}
	all, damage := actionsOf(state, root)
	if id != "" {
		all = slices.DeleteFunc(all, func(c *audit.Action) bool { return !isAction(c, id) })
	}
	switch {
	case len(all) > 0 || damage != nil:
	case root == "" && id == "":
		a.say("no commits yet: the audit log of this state directory has none")
	case root != "":
		if err := notKnown(root, "commit", "\"spectrum log\" lists all commits with their roots"); err != nil {
			return err
		}
		a.say("no commits in %q", root)
	}
	if last > 0 && last < len(all) {
		all = all[len(all)-last:]
	}
	lines, records := make([]string, 0, len(all)), make([]any, 0, len(all))
	for _, c := range all {
		lines = append(lines, actionText(c))
		records = append(records, actionFields(c))
	}
	if damage == nil {
		return a.result(strings.Join(lines, "\n"), map[string]any{"actions": records, "code": "OK", "ok": true})
	}
	if !a.json && len(lines) > 0 {
		if err := a.text(strings.Join(lines, "\n")); err != nil {
			return err
		}
	}
	return damage
}

// idNotRoot returns what a word is an ID of, or "" where it is a restore root: a directory of
// this name comes first.
func idNotRoot(state *statedir.Dir, word string) (string, error) {
	if !likeAction.MatchString(word) {
		return "", nil
	}
	root, err := rootArg(word)
	if err != nil {
		return "", err
	}
	if way, err := pathsafe.WayTo(root); err != nil || !way.Missing {
		return "", nil
	}
	all, _ := actionsOf(state, "")
	if slices.ContainsFunc(all, func(c *audit.Action) bool { return isAction(c, word) }) {
		return word, nil
	}
	if namedSo(state, root) != "" {
		return "", nil
	}
	return "", refusedHint(fmt.Errorf("%q is neither a restore root nor the ID of a commit, a rollback or a savepoint", word), "\"spectrum log\" lists all of them; \"spectrum status\" lists the restore roots")
}

// likeAction is what the ID of a commit, a rollback or a savepoint looks like, or its beginning.
var likeAction = regexp.MustCompile(`^[0-9a-f]{4}[0-9a-f-]{0,60}$`)

// isAction reports whether this is the ID of an action or of its savepoint, or the beginning of one.
func isAction(c *audit.Action, id string) bool {
	return strings.HasPrefix(c.ID, id) || strings.HasPrefix(c.Savepoint, id)
}

// actionsOf returns the actions in the root of a name, or in all when that is empty. Those that
// come before a damage of the log are returned with the error.
func actionsOf(state *statedir.Dir, root string) ([]*audit.Action, error) {
	var history audit.History
	_, err := readLog(state, func(e audit.Entry) error {
		if root == "" || e.Root == audit.RootText(root) {
			history.See(&e)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return history.Actions(), err
}

// readLog calls visit with each entry of the audit log, and makes none where there is none: then it is
// fs.ErrNotExist. Of a damaged log it visits what comes before the damage.
func readLog(state *statedir.Dir, visit func(audit.Entry) error) (audit.Head, error) {
	f, err := state.ReadAuditLog()
	if err != nil {
		return audit.Head{}, err
	}
	log := audit.New(f)
	defer log.Close()
	return log.Read(visit)
}

// actionText is an action on one line, with what came from outside at its end.
func actionText(c *audit.Action) string {
	at := c.Began
	if at.IsZero() {
		at = c.Ended
	}
	when, kind := "-", "commit"
	if !at.IsZero() {
		when = at.UTC().Format(time.RFC3339)
	}
	if !c.IsCommit() {
		kind = "rollback"
	}
	state, undoes, brings, stands := outcomeOf(c)
	line := fmt.Sprintf("%s %-8s %s %s", when, kind, c.ID[:min(shortest, len(c.ID))], state)
	if len(stands) > 0 {
		line += fmt.Sprintf(", %s stands in part", strings.Join(shortIDs(stands), " "))
	}
	switch {
	case c.UndoneBy != "":
		line += ", undone by " + c.UndoneBy[:shortest]
	case c.State == audit.Done && len(undoes) > 0:
		line += ", undid " + strings.Join(shortIDs(undoes), " ")
	}
	if c.State == audit.Done && len(brings) > 0 {
		line += ", brought back " + strings.Join(shortIDs(brings), " ")
	}
	line += fmt.Sprintf(" %s", shellQuote(audit.RootOf(c.Root)))
	if c.Operator != "" {
		line += " by " + c.Operator
	}
	if c.Reason != "" && c.Reason != noReason {
		line += ": " + c.Reason
	}
	return oneLine(line)
}

// outcomeOf is how an action has ended, with the commits that it has undone, and brought back; and
// those that it has undone in part, which are neither.
func outcomeOf(c *audit.Action) (state string, undoes, brings, stands []string) {
	state, stands = string(c.State), c.Stands()
	if len(stands) > 0 {
		state = "incomplete"
	}
	inPart := func(id string) bool { return slices.Contains(stands, id) }
	return state, slices.DeleteFunc(slices.Clone(c.Undoes), inPart), slices.DeleteFunc(slices.Clone(c.Brings), inPart), stands
}

func shortIDs(ids []string) []string {
	short := make([]string, 0, len(ids))
	for _, id := range ids {
		short = append(short, id[:min(shortest, len(id))])
	}
	return short
}

func actionFields(c *audit.Action) map[string]any {
	kind, rollback := "commit", any(nil)
	if !c.IsCommit() {
		kind, rollback = "rollback", string(c.Rollback)
	}
	state, undoes, brings, stands := outcomeOf(c)
	return map[string]any{
		"began_at": timeOrNull(c.Began), "brings": jsonTexts(brings), "ended_at": timeOrNull(c.Ended), "id": c.ID, "kind": kind,
		"operator": orNull(c.Operator), "preview": orNull(c.Preview), "reason": orNull(jsonText(c.Reason)), "restore_root": c.Root,
		"rollback": rollback, "savepoint": orNull(c.Savepoint), "snapshot": orNull(c.Snapshot), "stands": jsonTexts(stands), "state": state,
		"uid": int64(c.UID), "undoes": jsonTexts(undoes), "undone_by": orNull(c.UndoneBy),
	}
}

func timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}
