package main

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spf13/cobra"
)

func newSnapshotShow(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID|latest [RESTORE_ROOT]",
		Short: "print the header of a snapshot and the files in it",
		Long: `show prints the header of a snapshot, and one line for each name in it: type, mode,
owner and group, size in bytes, and path. It does not read contents; "spectrum
snapshot verify" does.`,
		Args: exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return app.withSnapshots(func(s *snapshotCommand) error { return s.show(args[0]) })
		},
	}
}

func (s *snapshotCommand) show(id string) error {
	found, err := s.find(id)
	if err != nil {
		return err
	}
	h := found.Header()
	if !s.json {
		return unlessGone(s.writeLines(shownLines(found, &h, s.kindOf(h.Action))))
	}
	fields, entries := snapshotFields(h), []any{}
	for e := range found.Entries() {
		entries = append(entries, map[string]any{
			"gid": int64(e.GID), "kept": e.Type.Kept(), "mode": fmt.Sprintf("%04o", e.Mode), "path": jsonText(e.Path), "size": e.Size,
			"target": orNull(jsonText(e.Target)), "time": e.ModTime.UTC().Format(time.RFC3339Nano), "type": string(e.Type), "uid": int64(e.UID),
		})
	}
	fields["entries"], fields["code"], fields["ok"] = entries, "OK", true
	return s.result("", fields)
}

// shownLines are the header of a snapshot, and a line for each name.
func shownLines(found *snapshot.Snapshot, h *snapshot.Header, kind string) iter.Seq[string] {
	return func(yield func(string) bool) {
		covers := "all of it"
		if !h.Whole {
			covers = numberOf(h.Names, "name") + " of it"
		}
		top := []string{
			"snapshot " + h.ID, fmt.Sprintf("of %q: %s", h.Root, covers), fmt.Sprintf("taken %s, %s", h.Time.Format(time.RFC3339), h.Kind),
			fmt.Sprintf("holds %s, %s", numberOf(h.Files, "file"), bytesText(h.Bytes)),
		}
		if h.Action != "" {
			top = append(top, "before "+kind+" "+h.Action)
		}
		if h.Reason != "" {
			top = append(top, fmt.Sprintf("because %q", h.Reason))
		}
		if h.Unread > 0 {
			top = append(top, "without "+numberOf(h.Unread, "unreadable name"))
		}
		for _, line := range top {
			if !yield(oneLine(line)) {
				return
			}
		}
		for e := range found.Entries() {
			line := fmt.Sprintf("%s %04o %d:%d %d %s", e.Type, e.Mode, e.UID, e.GID, e.Size, shellQuote(cmp.Or(e.Path, ".")))
			if e.Target != "" {
				line += " -> " + shellQuote(e.Target)
			}
			if !yield(oneLine(line)) {
				return
			}
		}
	}
}
