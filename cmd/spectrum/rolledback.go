package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// rollbackReport is what a rollback has done.
type rollbackReport struct {
	kind    audit.Rollback
	what    string // "rollback" or "restore"
	done    action.Done
	commits []savepoint.Savepoint
	unread  []string // ids of later commits whose savepoints cannot be read
	files   int
	changed []string
	left    []action.Left
	target  *snapshot.Snapshot // that was restored; nil for none
	passed  []snapshot.Passed  // that were passed over to find it
	changes []action.Change
	parted  []action.Parted
	rights  rights          // of the restored files
	spaces  []action.Space  // of a dry run
	open    []pathsafe.Path // of a dry run
	edits   []action.Edit   // between commits that are undone
	inPart  bool            // the commits are not undone, because some of their files remain

	unreadable bool            // the snapshot is not restored in full, since some of what is there could not be read
	only       []pathsafe.Path // the requested ones; nil for all
}

// rolledBack prints what was changed, or would be.
func (a *app) rolledBack(in *action.Root, r rollbackReport) error {
	if r.done.Action == "" {
		return a.foreseen(in, r)
	}
	before := r.done.Snapshot.ID()[:shortest]
	a.tellUnread(r.unread)
	attempts := []string{}
	for _, sp := range r.commits {
		attempts = append(attempts, sp.Attempt())
		switch {
		case r.inPart:
		case r.lacksSomeOf(sp):
			a.say("no longer in place: commit %s, savepoint %s; the files of it that could not be removed are listed as staying", sp.Attempt(), sp.ID())
		default:
			a.say("undone: commit %s, savepoint %s", sp.Attempt(), sp.ID())
		}
	}
	if r.target != nil {
		for _, line := range words.Few(r.named(), words.MaxNamed) {
			a.say("%s", line)
		}
	}
	a.tellFew(each(r.changed, "%s had been edited since the commit; your version was removed and saved in snapshot "+before))
	a.tellFew(editLines(r.edits))
	a.tellFew(partedLines(r.parted, "came back"))
	r.rights.tell(a, true)
	goneKept := r.keptGone()
	a.tellFew(each(goneKept, "%s, which an earlier command had kept, was removed; what was in it is in snapshot "+before))
	a.tellBeside(in, r.kind != audit.Emergency)
	var keptLines []string
	for _, k := range r.done.Kept {
		keptLines = append(keptLines, keptLine(in.Real(), k))
	}
	a.tellFew(keptLines)
	keptEarlier := a.tellKeptBefore(in, in.KeptBefore(context.Background(), attempts))
	a.tellFew(leftLines(r.left))
	a.say("to undo this %s: \"spectrum snapshot restore %s%s\"", r.what, foreignOption(in.Real()), before)
	fields := r.fields(in, attempts, goneKept)
	fields["action"], fields["other_views"], fields["snapshot"] = r.done.Action, foreignViews(a.foreign), r.done.Snapshot.ID()
	fields["target"], fields["views"] = orNull(r.targetID()), jsonTexts(a.detached)
	if len(r.done.Kept) > 0 {
		fields["kept"] = keptFields(in.Real(), r.done.Kept)
	}
	if len(keptEarlier) > 0 {
		fields["kept_before"] = jsonTexts(keptEarlier)
	}
	if r.inPart {
		return stillStands(attempts[len(attempts)-1], in.Real(), len(attempts) > 1, r.left, fields)
	}
	if r.unreadable {
		return r.notInFull(in, fields)
	}
	if err := a.result(fmt.Sprintf("OK %s: %s", r.done.Action, r.counts()), fields); err != nil {
		return &doneError{fmt.Sprintf("%s %s of %q is complete", r.what, r.done.Action, in.Real()), "its result could not be printed", r.what, err}
	}
	return nil
}

// fields are what the results of a rollback and of its dry run have in common.
func (r *rollbackReport) fields(in *action.Root, commits, goneKept []string) map[string]any {
	fields := map[string]any{
		"affected": commits, "changed": jsonTexts(r.changed), "code": "OK", "counts": r.counts().fields(), "files": r.files, "left": leftFields(r.left), "ok": true,
		"passed": passedFields(in, r.passed), "restore_root": jsonText(in.Path()), "rollback": string(r.kind),
	}
	if len(r.edits) > 0 {
		fields["edits"] = editFields(r.edits)
	}
	if len(r.parted) > 0 {
		fields["parted"] = partedFields(r.parted)
	}
	r.rights.addTo(fields)
	if len(goneKept) > 0 {
		fields["kept_removed"] = jsonTexts(goneKept)
	}
	if len(r.unread) > 0 {
		fields["unread"] = r.unread
	}
	return fields
}

// nothingDiffers reports that a root equals a snapshot already: nothing was changed or logged.
func (a *app) nothingDiffers(in *action.Root, r restoreRequest, left []action.Left) error {
	a.tellFew(leftLines(left))
	report := rollbackReport{kind: r.kind, target: r.target, left: left}
	return a.result(fmt.Sprintf("OK nothing differs from snapshot %s; nothing was changed", r.target.ID()[:shortest]), map[string]any{
		"action": nil, "affected": []any{}, "changed": []any{}, "code": "OK", "counts": report.counts().fields(), "files": 0, "left": leftFields(left), "ok": true,
		"other_views": []any{}, "restore_root": jsonText(in.Path()), "rollback": string(r.kind), "snapshot": nil, "target": r.target.ID(), "views": []any{}, "passed": passedFields(in, r.passed),
	})
}

// stillStands is the error of a rollback that left some files of its commits: the commits are not
// undone, and the same command continues later. More: later commits are undone too. Fields are the
// details.
func stillStands(commit, real string, more bool, left []action.Left, fields map[string]any) error {
	delete(fields, "code")
	delete(fields, "ok")
	var paths, dirs []string
	away, gone := 0, 0
	for _, l := range left {
		if !l.Committed {
			continue
		}
		paths = append(paths, l.Path)
		if l.Away {
			away++
		}
		if l.Missing != "" {
			gone++
			dirs = append(dirs, shellQuote(filepath.Join(real, l.Missing)))
		}
	}
	later := ""
	if more {
		later = "--with-later "
	}
	what, does := "cannot be removed", "removes it too"
	first := "make the named files readable and their directories writable, or continue as root, or move away what the disk cannot read"
	if away == len(paths) {
		what, does, first = "does not come back", "does the rest", "move the named files away"
		if away > 1 {
			what = "do not come back"
		}
	}
	if again := "make the missing directories again (mkdir -p " + strings.Join(slices.Compact(dirs), " ") + ")"; gone > 0 && gone == len(paths) {
		first = again
	} else if gone > 0 {
		first = again + ", and " + first
	}
	return &codedError{
		code: codeInPart, details: fields,
		err:  fmt.Errorf("commit %s is not undone: %s of it %s: %s", commit, numberOf(len(paths), "name"), what, words.List(paths)),
		hint: fmt.Sprintf("%s; then \"spectrum rollback %s%s%s\" %s", looseHint(real, left, first), later, foreignOption(real), commit, does),
	}
}

// notInFull is the verdict on the restore of a snapshot that had to leave what could not be read:
// the same command does the rest once it can. Fields are the details.
func (r *rollbackReport) notInFull(in *action.Root, fields map[string]any) error {
	delete(fields, "code")
	delete(fields, "ok")
	paths, why := notDoneOf(r.left)
	again := "spectrum rollback --emergency " + foreignOption(in.Real()) + shellQuote(in.Real())
	if r.kind != audit.Emergency {
		again = "spectrum snapshot restore " + foreignOption(in.Real())
		if slices.ContainsFunc(r.only, func(p pathsafe.Path) bool { return strings.HasPrefix(p.String(), "-") }) {
			again += "-- "
		}
		again += r.targetID()[:shortest]
		for _, p := range r.only {
			again += " " + shellQuote(p.String())
		}
	}
	return &codedError{
		code: codeInPart, details: fields,
		err:  fmt.Errorf("snapshot %s is not restored in full: %s left that %s: %s", r.targetID()[:shortest], numberOf(len(paths), "name"), why, words.List(paths)),
		hint: fmt.Sprintf("%s; then \"%s\" does the rest", looseHint(in.Real(), r.left, "make the named files readable, or continue as root, or move away what the disk cannot read"), again),
	}
}

// keptGone are the directories of what earlier commands have kept that go.
func (r *rollbackReport) keptGone() (paths []string) {
	for _, c := range r.changes {
		stays := slices.ContainsFunc(r.left, func(l action.Left) bool { return l.Path == c.Path })
		if c.Kind == action.Removed && staging.IsKept(c.Path) && !stays {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

func (r *rollbackReport) targetID() string {
	if r.target == nil {
		return ""
	}
	return r.target.ID()
}

func jsonTexts(all []string) []string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = jsonText(s)
	}
	return texts
}
