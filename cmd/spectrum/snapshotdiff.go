package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

func newSnapshotDiff(app *app) *cobra.Command {
	var foreign []string
	cmd := &cobra.Command{
		Use:   "diff ID [OTHER_ID | RESTORE_ROOT]",
		Short: "compare two snapshots, or a snapshot with its root as it is now",
		Long: `diff lists the names that were added, removed or changed between the snapshot ID
and OTHER_ID. Without OTHER_ID it compares ID with its restore root as it is now.
"latest" is the newest snapshot of RESTORE_ROOT, or of the restore root that
contains the working directory. diff compares contents, types, modes, owners,
times, extended attributes, link targets and hard links, but not the times of
directories, which change with their contents.

For a snapshot of some names, such as one from before a commit, it compares only
those names. It writes nothing and takes no lock, so it also works in a halted root
or beside other work. Files that an unfinished commit or rollback keeps in the root
are left out.

The exit status is 1 if anything differs. Write ./NAME for a RESTORE_ROOT that
looks like an ID.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return usage(cmd, "requires the ID of a snapshot, and at most one other ID or a restore root")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotCommand) error { return s.diff(cmd.Context(), args, foreign) })
		},
	}
	foreignFlag(cmd, &foreign)
	return cmd
}

// likeID is what an argument looks like that is the ID of a snapshot, or the beginning of
// one.
var likeID = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

func (s *snapshotCommand) diff(ctx context.Context, args, foreign []string) error {
	if len(args) == 2 && args[0] == latest && s.latestOf == "" && rootHere(s.state) == "" && !likeID.MatchString(args[1]) {
		s.latestOf = s.knownRoot(args[1])
	}
	older, err := s.find(args[0])
	if err != nil {
		return err
	}
	var newer *snapshot.Snapshot
	switch {
	case len(args) == 1:
		var root string
		if root, err = s.state.RootPath(older.Header().Root); err == nil {
			newer, err = s.lookAt(ctx, root, older.Scope())
		}
	case likeID.MatchString(args[1]) || args[1] == latest:
		newer, err = s.find(args[1])
	default:
		var root string
		if root, err = namedRoot(args[1], foreign); err == nil {
			newer, err = s.lookAt(ctx, root, older.Scope())
		}
	}
	if err != nil {
		return err
	}
	all, apart, err := snapshot.Compare(older, newer)
	if err != nil {
		return err
	}
	return s.differences(older, newer, all, apart)
}

// knownRoot returns a word where it is the path of a known restore root, else "".
func (s *snapshotCommand) knownRoot(word string) string {
	path, err := rootArg(word)
	if err != nil {
		return ""
	}
	name, err := nameOfRoot(s.state, path, true)
	if isKnown, unknown := s.state.Names(name); err != nil || unknown != nil || !isKnown {
		return ""
	}
	return word
}

// lookAt looks at a restore root as it is now.
func (s *snapshotCommand) lookAt(ctx context.Context, path string, scope []pathsafe.Path) (*snapshot.Snapshot, error) {
	root, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, refusedHint(err, noRootHint)
	}
	defer root.Close()
	bar := s.newBar("looking at the restore root")
	defer bar.done()
	return s.store.Look(ctx, snapshot.Request{Root: path, Dir: root, Kind: snapshot.Manual, Scope: scope})
}

// differences prints what differs.
func (s *snapshotCommand) differences(older, newer *snapshot.Snapshot, all []snapshot.Difference, apart []string) error {
	s.tellFew(each(apart, "not compared, because one of the two does not cover it: %s"))
	lines, records := []string{}, []any{}
	counts := map[string]int{"added": 0, "changed": 0, "removed": 0}
	for _, d := range all {
		change := changeOf(d.Old, d.New)
		counts[change]++
		lines = append(lines, differenceText(change, &d))
		records = append(records, map[string]any{
			"change": change, "new": thingFields(d.New), "old": thingFields(d.Old), "path": jsonText(d.Path), "what": jsonTexts(d.What),
		})
	}
	with := newer.ID()
	if with == "" {
		with = newer.Header().Root
	}
	fields := map[string]any{
		"counts": counts, "differences": records, "id": older.ID(), "not_compared": jsonTexts(apart), "with": jsonText(with),
	}
	if len(all) == 0 {
		return s.result("OK "+older.ID(), map[string]any{"code": "OK", "details": fields, "ok": true})
	}
	if !s.json {
		last := fmt.Sprintf("DIFFERS %s: %s added, %s removed, %s changed", older.ID(), number(counts["added"]), number(counts["removed"]), number(counts["changed"]))
		if err := s.text(strings.Join(append(words.Few(lines, words.MaxListed), last), "\n")); err != nil {
			return err
		}
	}
	return snapshotDiffers(older.ID(), with, len(all), fields)
}

func snapshotDiffers(older, with string, differing int, details map[string]any) error {
	hint := fmt.Sprintf("\"spectrum snapshot restore %s\" restores its restore root to that state", older[:shortest])
	return &codedError{
		code: codeSnapshotDiffers, details: details, hint: hint,
		err: fmt.Errorf("snapshot %s and %q differ in %s", older[:shortest], with, numberOf(differing, "name")),
	}
}

func changeOf(old, now snapshot.Entry) string {
	switch snapshot.Absent {
	case old.Type:
		return "added"
	case now.Type:
		return "removed"
	}
	return "changed"
}

// differenceText is a difference on one line.
func differenceText(change string, d *snapshot.Difference) string {
	line := change + " " + shortPath(d.Path)
	switch {
	case change == "added":
		line += ": " + thingText(d.New)
	case change == "removed":
		line += ": " + thingText(d.Old)
	case len(d.What) == 0:
		line += fmt.Sprintf(": %s, was %s", thingText(d.New), thingText(d.Old))
	case d.New.Type == snapshot.File && d.Old.Size != d.New.Size:
		line += fmt.Sprintf(": %s (%s, was %s)", strings.Join(d.What, ", "), bytesText(d.New.Size), bytesText(d.Old.Size))
	default:
		line += ": " + strings.Join(d.What, ", ")
	}
	return oneLine(line)
}

// thingText describes an entry.
func thingText(e snapshot.Entry) string {
	switch e.Type {
	case snapshot.File:
		return "file, " + bytesText(e.Size)
	case snapshot.Dir:
		return "directory"
	case snapshot.Link:
		return "link to " + shortPath(e.Target)
	case snapshot.Special:
		return "socket or device"
	case snapshot.Unread, snapshot.Broken:
		return "unreadable"
	}
	return string(e.Type)
}

// thingFields are what a program needs of it; nil of nothing.
func thingFields(e snapshot.Entry) any {
	if e.Type == snapshot.Absent {
		return nil
	}
	fields := map[string]any{"gid": int64(e.GID), "mode": fmt.Sprintf("%04o", e.Mode), "type": string(e.Type), "uid": int64(e.UID)}
	switch e.Type {
	case snapshot.File:
		fields["bytes"], fields["sha256"] = e.Size, fmt.Sprintf("%x", e.Digest)
	case snapshot.Link:
		fields["target"] = jsonText(e.Target)
	}
	return fields
}
