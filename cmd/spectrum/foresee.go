package main

import (
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// foreseen prints what a rollback or a restore would do.
func (a *app) foreseen(in *action.Root, r rollbackReport) error {
	lines, commits := []string{}, []string{}
	verb := "undo"
	if r.inPart {
		verb = "undo in part"
	}
	for _, sp := range r.commits {
		lines = append(lines, fmt.Sprintf("%s commit %s, savepoint %s", verb, sp.Attempt(), sp.ID()))
		commits = append(commits, sp.Attempt())
	}
	changes := []any{}
	for _, c := range r.changes {
		lines = append(lines, oneLine(changeText(c)))
		changes = append(changes, map[string]any{
			"change": string(c.Kind), "new": contentFields(c.New), "old": contentFields(c.Old), "path": jsonText(c.Path),
		})
	}
	lines = words.Few(lines, words.MaxListed)
	lines = append(lines, words.Few(each(r.changed, "edited since the commit: %s; your version would be removed and saved in a snapshot"), words.MaxNamed)...)
	lines = append(lines, words.Few(editLines(r.edits), words.MaxNamed)...)
	lines = append(lines, words.Few(partedLines(r.parted, "would come back"), words.MaxNamed)...)
	lines = append(lines, words.Few(r.rights.programLines(false), words.MaxNamed)...)
	lines = append(lines, words.Few(r.rights.ownerLines(false), words.MaxNamed)...)
	goneKept := r.keptGone()
	lines = append(lines, words.Few(each(goneKept, "kept by an earlier command: %s; its content would be saved in the snapshot that is taken first"), words.MaxNamed)...)
	open := []string{}
	for _, path := range r.open {
		open = append(open, path.String())
	}
	lines = append(lines, words.Few(each(open, "%s may be open for writing by another process; it would be kept in a directory beside it"), words.MaxNamed)...)
	lines = append(lines, words.Few(leftLines(r.left), words.MaxNamed)...)
	a.tellBeside(in, r.kind != audit.Emergency)
	a.tellUnread(r.unread)
	before, spaces := r.done.Snapshot.Header(), []any{}
	lines = append(lines, fmt.Sprintf("a snapshot would be taken first: %s, %s", numberOf(before.Files, "file"), bytesText(before.Bytes)))
	for _, s := range r.spaces {
		lines = append(lines, fmt.Sprintf("%s: about %s needed, %s free", spaceText(s), bytesText(max(r.written(s), int64(s.Need.Bytes))), bytesText(int64(s.Free.Bytes)))) //nolint:gosec // no file system has so many
		spaces = append(spaces, map[string]any{"free_bytes": int64(s.Free.Bytes), "needed_bytes": int64(s.Need.Bytes), "of": jsonTexts(spaceOf(s))})                        //nolint:gosec // the same
	}
	lines = append(lines, fmt.Sprintf("OK dry run: %s; nothing was changed", r.counts()))
	fields := r.fields(in, commits, goneKept)
	fields["changes"], fields["dry_run"], fields["open"], fields["space"] = changes, true, jsonTexts(open), spaces
	fields["snapshot_before"] = map[string]any{"bytes": before.Bytes, "files": before.Files, "names": before.Names, "whole": before.Whole}
	if (r.inPart || r.unreadable) && !a.json {
		if err := a.text(strings.Join(lines[:len(lines)-1], "\n")); err != nil {
			return err
		}
	}
	switch {
	case r.inPart:
		return stillStands(commits[len(commits)-1], in.Real(), len(commits) > 1, r.left, fields)
	case r.unreadable:
		return r.notInFull(in, fields)
	}
	return a.result(strings.Join(lines, "\n"), fields)
}

// written is how many bytes of content a rollback and the snapshot before it write to a file
// system. Its blocks may be more, and those that are shared or kept already less.
func (r *rollbackReport) written(s action.Space) (n int64) {
	if s.State {
		n += r.done.Snapshot.Header().Bytes
	}
	for _, c := range r.changes {
		if s.Root && (c.Kind == action.Created || c.Kind == action.Replaced) {
			n += c.New.Bytes
		}
	}
	return n
}

// each formats a line for each path.
func each(paths []string, format string) (lines []string) {
	for _, path := range paths {
		lines = append(lines, fmt.Sprintf(format, shortPath(path)))
	}
	return lines
}

// leftLines name the entries that stay, with the reason.
func leftLines(left []action.Left) (lines []string) {
	for _, l := range left {
		lines = append(lines, fmt.Sprintf("%s stays: %s", shortPath(l.Path), words.Cut(oneLine(l.Why))))
	}
	return lines
}

// editLines name what was edited between two commits, and where it is.
func editLines(edits []action.Edit) (lines []string) {
	for _, e := range edits {
		lines = append(lines, fmt.Sprintf("%s had been edited before a later commit replaced it; that version does not come back: it is in snapshot %s", shortPath(e.Path), e.Snapshot[:shortest]))
	}
	return lines
}

func editFields(edits []action.Edit) []any {
	all := []any{}
	for _, e := range edits {
		all = append(all, map[string]any{"path": jsonText(e.Path), "snapshot": e.Snapshot})
	}
	return all
}

// partedLines name files with several hard links of which not all are restored.
func partedLines(parted []action.Parted, comes string) (lines []string) {
	for _, p := range parted {
		as := "a file of its own"
		if p.Back > 1 {
			as = fmt.Sprintf("one file of %d names", p.Back)
		}
		lines = append(lines, fmt.Sprintf("%s had %d names (hard links): it %s as %s, and the other names keep the file that they have", shortPath(p.Path), p.Names, comes, as))
	}
	return lines
}

func partedFields(parted []action.Parted) []any {
	all := []any{}
	for _, p := range parted {
		all = append(all, map[string]any{"names": p.Names, "path": jsonText(p.Path), "restored": p.Back})
	}
	return all
}

// leftFields are the same for a program.
func leftFields(left []action.Left) []any {
	all := []any{}
	for _, l := range left {
		fields := map[string]any{"path": jsonText(l.Path), "why": jsonText(l.Why)}
		if l.Fixed != "" {
			fields["chattr"] = jsonText(l.Fixed)
		}
		all = append(all, fields)
	}
	return all
}

// changeText is a change on one line.
func changeText(c action.Change) string {
	path := shortPath(c.Path)
	if c.Path == "" {
		path = "."
	}
	switch c.Kind {
	case action.Removed:
		return "remove " + path + ": " + contentText(c.Old)
	case action.Created:
		return "create " + path + ": " + contentText(c.New)
	case action.Replaced:
		return fmt.Sprintf("replace %s: %s, by %s", path, contentText(c.Old), contentText(c.New))
	}
	return "set mode, owner and attributes of " + path
}

// contentText describes an entry and its size.
func contentText(c action.Content) string {
	switch c.Type {
	case snapshot.File:
		return "file, " + bytesText(c.Bytes)
	case snapshot.Dir:
		return fmt.Sprintf("directory with %s, %s", numberOf(c.Files, "file"), bytesText(c.Bytes))
	}
	return string(c.Type)
}

// contentFields are what a program needs of it; nil of nothing.
func contentFields(c action.Content) any {
	if c.Names == 0 {
		return nil
	}
	return map[string]any{"bytes": c.Bytes, "files": c.Files, "names": c.Names, "type": string(c.Type)}
}

func spaceOf(s action.Space) (of []string) {
	if s.Root {
		of = append(of, "restore root")
	}
	if s.State {
		of = append(of, "state directory")
	}
	return of
}

func spaceText(s action.Space) string {
	return "file system of the " + strings.Join(spaceOf(s), " and the ")
}
