package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/staging"
)

// text is the state of a root for people.
func (st *rootStatus) text() string {
	lines := []string{shellQuote(st.path)}
	if st.name != st.path {
		lines[0] += ", known as " + shellQuote(st.name)
	}
	add := func(label, format string, args ...any) {
		lines = append(lines, oneLine(fmt.Sprintf("  %-10s ", label)+fmt.Sprintf(format, args...)))
	}
	path := foreignOption(st.path) + shellQuote(st.path)
	add("state", "%s", st.stateText(path))
	for _, at := range st.beside {
		add("beside", "also halted for preview, commit and prune, because %s, which shares directories with it, is halted: \"spectrum status %s\"", shellQuote(at), shellQuote(at))
	}
	add("savepoint", "%s", st.savepointText())
	if undo := st.undoText(path); undo != "" {
		add("to undo", "%s", undo)
	}
	if st.whole == nil {
		add("snapshot", "none of the whole root; \"spectrum snapshot take %s\" takes one", path)
	} else {
		add("snapshot", "%s of %s, %s, %s", st.whole.ID[:shortest], st.whole.Time.UTC().Format(time.RFC3339), numberOf(st.whole.Files, "file"), bytesText(st.whole.Bytes))
	}
	if len(st.previews) > 0 {
		add("previews", "%s; a commit rejects one if what it shows has changed since", strings.Join(shortIDs(st.previews), " "))
	}
	if len(st.removed) > 0 {
		add("", "candidate removed, so no commit is possible: %s", strings.Join(shortIDs(st.removed), " "))
	}
	for _, line := range st.again {
		add("to review", "%s", line)
	}
	for _, at := range st.views {
		add("view", "%s", shellQuote(at))
	}
	for _, at := range st.silent {
		add("view", "%s does not report what it shows", shellQuote(at))
	}
	if len(st.held) > 0 {
		add("held", "%s: \"spectrum quarantine show %s\" shows why", strings.Join(shortIDs(st.held), " "), st.held[0][:shortest])
	}
	if st.state != rootGone {
		add("space", "%s free; for the state directory %s free", bytesText(st.free), bytesText(st.stateFree))
	}
	for _, err := range st.unknown {
		add("not known", "%s", err.Error())
	}
	return strings.Join(lines, "\n")
}

// stateText is the state of a root, and the command that ends it. Path is that of the root, for a command.
func (st *rootStatus) stateText(path string) string {
	switch {
	case st.state == rootHalted && len(st.halted) == 0:
		return fmt.Sprintf("halted for preview, commit and prune: %s; a rollback that succeeds or \"spectrum recover --acknowledge %s\" ends the halt", st.bar.what(), path)
	case st.state == rootHalted:
		return fmt.Sprintf("halted by %s: \"spectrum recover %s\" tries again", strings.Join(shortIDs(st.halted), " "), path)
	case st.state == rootUnfinished && len(st.unfinished) == 1 && st.unfinished[0] == staging.LockName:
		return fmt.Sprintf("unfinished: a command is running, or was killed before it changed anything; if it was killed, \"spectrum recover %s\" removes its lock", path)
	case st.state == rootUnfinished:
		return fmt.Sprintf("unfinished: a command is running, or was killed; if it was killed, run \"spectrum recover %s\"", path)
	case st.state == rootGone:
		return fmt.Sprintf("gone: the directory does not exist; \"spectrum snapshot list %s\" lists the snapshots that can restore it", path)
	case st.state == rootIncomplete:
		return st.stays.text(foreignOption(st.path))
	case st.state == rootDamaged:
		return fmt.Sprintf("damaged: the record of the newest commit cannot be used; \"spectrum recover %s\" shows how to continue", path)
	case st.stranger != "":
		return fmt.Sprintf("clean: the state directory %s has no record of it; --state-dir names another one", shellQuote(st.stranger))
	}
	return "clean"
}

// savepointText is the active savepoint, and what has changed since.
func (st *rootStatus) savepointText() string {
	switch {
	case st.isLostUndone:
		return fmt.Sprintf("lost: that of commit %s, which was undone by the restore of a snapshot from before it", st.lost.ID[:shortest])
	case st.lost != nil:
		return fmt.Sprintf("lost: that of commit %s, which is in place; \"spectrum rollback %[1]s\" names what can still undo it", st.lost.ID[:shortest])
	case st.tipError != nil:
		return "not known: " + st.tipError.Error()
	case st.tip == nil:
		return "none: no commit is in place"
	}
	text := fmt.Sprintf("%s of %s, commit %s, ", st.tip.ID()[:shortest], st.tip.Created().UTC().Format(time.RFC3339), st.tip.Attempt()[:shortest])
	if st.state == rootGone {
		return text + numberOf(st.files, "file")
	}
	if !st.isCompared {
		return text + numberOf(st.files, "file") + ", and it is not known whether they have changed since"
	}
	if len(st.drifts) == 0 {
		return text + numberOf(st.files, "file") + ", none has changed since"
	}
	return text + fmt.Sprintf("%s not as committed: \"spectrum savepoint verify %s\" lists them", words.Of(len(st.drifts), st.files, "file"), st.tip.ID()[:shortest])
}

func (st *rootStatus) fields() map[string]any {
	drifts, errs := []any{}, []string{}
	for _, d := range st.drifts {
		drifts = append(drifts, map[string]any{"path": d.Path, "state": string(d.State)})
	}
	for _, err := range st.unknown {
		errs = append(errs, err.Error())
	}
	tip, whole := any(nil), any(nil)
	if st.tip != nil {
		tip = map[string]any{"attempt": st.tip.Attempt(), "created_at": timeOrNull(st.tip.Created()), "files": st.files, "id": st.tip.ID()}
	}
	if st.whole != nil {
		whole = snapshotFields(*st.whole)
	}
	bar, lost := any(nil), any(nil)
	if st.lost != nil {
		lost = st.lost.ID
	}
	if st.bar != nil {
		bar = st.bar.fields()
	}
	return map[string]any{
		"drift": drifts, "errors": jsonTexts(errs), "free_bytes": st.free, "halted": jsonTexts(st.halted), "halted_beside": jsonTexts(st.beside), "incomplete": jsonTexts(st.stays.commits), "held": jsonTexts(st.held),
		"previews": jsonTexts(st.previews), "restore_root": jsonText(st.path), "rollback_refused": bar, "known_as": jsonText(st.name), "savepoint": tip, "savepoint_lost": lost,
		"silent_views": jsonTexts(st.silent), "snapshot": whole, "state": st.state, "state_free_bytes": st.stateFree, "unfinished": jsonTexts(st.unfinished), "views": jsonTexts(st.views),
	}
}
