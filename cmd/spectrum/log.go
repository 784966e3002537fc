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
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spf13/cobra"
)

func newLog(app *app) *cobra.Command {
	last := 0
	cmd := &cobra.Command{
		Use:   "log [ID|latest] [RESTORE_ROOT]",
		Short: "list the commits and rollbacks of a restore root, or of all, oldest first",
		Long: `log prints one line for each commit and each rollback in the audit log: when it
began, its ID, and how it ended.

    done        completed; a later rollback may have undone it
    incomplete  a rollback that could not remove or bring back everything: part
                of the commit is still there
    failed      undone; nothing of it is left in the root
    unfinished  still running, or killed: "spectrum recover" ends it
    halted      could be neither undone nor completed: a person must act
    released    an operator released the root, and what was left stays
    refused     a rollback that could not begin

ID is the ID of a commit or a rollback, or of the savepoint of a commit, or the
first four or more digits of one. "latest" is the newest line of RESTORE_ROOT, of
the restore root that contains the working directory, or of all.

The restore of a snapshot is listed as a rollback. "spectrum audit show" prints
every entry of the log.`,
		Args: atMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if last < 0 {
				return usage(cmd, "--last requires a number of lines")
			}
			return app.listActions(args, last)
		},
	}
	cmd.Flags().IntVarP(&last, "last", "n", 0, "print only the last `N` (0: all)")
	return cmd
}

// listActions prints the actions of a log; of a damaged log, those before the damage.
func (a *app) listActions(args []string, last int) error {
	state, err := a.openState()
	if err != nil {
		return err
	}
	defer state.Close()
	root, id, err := a.loggedOf(state, args)
	if err != nil {
		return err
	}
	all, damage := actionsOf(state, root)
	if id == latest {
		id, all = "", all[max(0, len(all)-1):]
	}
	if id != "" {
		all = slices.DeleteFunc(all, func(c *audit.Action) bool { return !isAction(c, id) })
	}
	switch {
	case len(all) > 0 || damage != nil:
	case root == "" && id == "":
		a.say("no commits yet: the audit log of this state directory has none")
	case root != "":
		if err := notKnown(state, root, "commit"); err != nil {
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

// loggedOf returns the name of the restore root and the ID that the arguments are; "" for none.
func (a *app) loggedOf(state *statedir.Dir, args []string) (root, id string, err error) {
	if len(args) == 0 {
		return "", "", nil
	}
	path := args[len(args)-1]
	switch {
	case args[0] == latest:
		id = latest
	case len(args) == 2 && !likeAction.MatchString(args[0]):
		return "", "", refusedHint(fmt.Errorf("%q is not the ID of a commit, a rollback or a savepoint, of four digits or more", args[0]), "the ID comes first, and the restore root last")
	case len(args) == 2:
		id = args[0]
	default:
		id, err = idNotRoot(state, args[0])
	}
	if len(args) == 1 && id != "" {
		path = ""
		if id == latest {
			path = rootHere(state)
		}
	}
	if err != nil || path == "" {
		return "", id, err
	}
	if root, err = rootArg(path); err == nil {
		root, err = nameOfRoot(state, root, true)
	}
	return root, id, err
}

// idNotRoot returns the action with an ID, or "" if the word is a restore root: a directory of this
// name has precedence.
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
	if state.MovedRoot(root) != "" {
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

// actionsOf returns the actions in the root of a name, or in all roots if it is empty. Those before
// a damage of the log are returned with the error.
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

// readLog calls visit with each entry of the audit log. If there is no log it returns
// fs.ErrNotExist and makes none. Of a damaged log it visits the entries before the damage.
func readLog(state *statedir.Dir, visit func(audit.Entry) error) (audit.Head, error) {
	f, err := state.ReadAuditLog()
	if err != nil {
		return audit.Head{}, err
	}
	log := audit.New(f)
	defer log.Close()
	return log.Read(visit)
}

// logOf is readLog for the rules that read the log themselves.
func logOf(state *statedir.Dir) action.ReadLog {
	return func(visit func(audit.Entry) error) (audit.Head, error) { return readLog(state, visit) }
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
		line += fmt.Sprintf(", part of %s is still in place", strings.Join(shortIDs(stands), " "))
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
	if reason := givenReason(c); reason != "" {
		line += ": " + reason
	}
	return oneLine(line)
}

// outcomeOf is how an action has ended, with the commits that it has undone, and brought back; and
// those that it has undone in part, which are neither.
func outcomeOf(c *audit.Action) (state string, undoes, brings, stands []string) {
	state, stands = string(c.State), c.PartlyUndone()
	if len(stands) > 0 {
		state = "incomplete"
	}
	inPart := func(id string) bool { return slices.Contains(stands, id) }
	return state, slices.DeleteFunc(slices.Clone(c.Undoes), inPart), slices.DeleteFunc(slices.Clone(c.Brings), inPart), stands
}

// givenReason is the reason that the operator gave; "" for none.
func givenReason(c *audit.Action) string {
	if c.Reason == noReason {
		return ""
	}
	return c.Reason
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
		"operator": orNull(c.Operator), "preview": orNull(c.Preview), "reason": orNull(jsonText(givenReason(c))), "restore_root": c.Root,
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
