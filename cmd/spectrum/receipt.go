package main

import (
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// openReceipt opens the directory of the receipt, if one is requested, so that a file that cannot
// be written is rejected before any question or change.
func openReceipt(state *statedir.Dir, opts *commitOptions) (newFile, error) {
	if opts.receipt == "" {
		return newFile{}, nil
	}
	root := opts.restoreRoot
	if opts.preview != "" {
		record, err := loadRecord(state, opts.preview)
		if err != nil {
			return newFile{}, err
		}
		root = record.Origin().RestoreRoot
	}
	return openNew("--receipt", "receipt", opts.receipt, state, root)
}

// kinds are the outputs and the removed files of a commit, by what it did to them: paths beneath
// the restore root, in ascending order. Files that were gone before are in none.
type kinds struct{ created, replaced, identical, removed []string }

func kindsOf(r *restore.Restore) kinds {
	var all kinds
	for run := range r.Plan().Runs() {
		for o := range run.Bundle().Outputs() {
			path := run.Target(o.Path().String())
			switch there := r.Target(path); {
			case there == nil:
				all.created = append(all.created, path)
			case there.Identical:
				all.identical = append(all.identical, path)
			default:
				all.replaced = append(all.replaced, path)
			}
		}
	}
	for _, path := range r.Plan().Removes() {
		if r.Target(path.String()) != nil {
			all.removed = append(all.removed, path.String())
		}
	}
	for _, paths := range [][]string{all.created, all.replaced, all.identical} {
		slices.Sort(paths)
	}
	return all
}

// text describes what was not created; "" if everything was.
func (k kinds) text() string {
	var parts []string
	if len(k.replaced) > 0 {
		parts = append(parts, number(len(k.replaced))+" replaced")
	}
	if len(k.identical) > 0 {
		parts = append(parts, number(len(k.identical))+" identical before")
	}
	if len(k.removed) > 0 {
		parts = append(parts, number(len(k.removed))+" removed")
	}
	if parts == nil {
		return ""
	}
	return ": " + number(len(k.created)) + " created, " + strings.Join(parts, ", ")
}

// writeReceipt writes the receipt, if it is requested: one canonical JSON value. The file appears
// whole or not at all, and replaces none.
func writeReceipt(file newFile, undo string, in *action.Root, approved *preview.Approved, kinds kinds) error {
	if file.dir == nil {
		return nil
	}
	plan, artifacts := approved.Restore().Plan(), []string{}
	for run := range plan.Runs() {
		for _, a := range run.Artifacts() {
			artifacts = append(artifacts, a.Path)
		}
	}
	counts := map[string]int{"created": len(kinds.created), "identical": len(kinds.identical), "replaced": len(kinds.replaced)}
	receipt := map[string]any{
		"bundle_roots": approved.BundleRoots(), "bytes": plan.Bytes(), "commit": in.Commit(),
		"counts":  counts,
		"created": jsonTexts(kinds.created), "form": 1, "identical": jsonTexts(kinds.identical), "preview": approved.PreviewID(),
		"replaced": jsonTexts(kinds.replaced), "restore_root": jsonText(in.Real()), "result_artifacts": jsonTexts(artifacts),
		"savepoint": orNull(in.Savepoint()), "snapshot": orNull(in.SnapshotBefore()), "undo": undo,
	}
	if plan.IsChangeSet() {
		receipt["removed"], counts["removed"] = jsonTexts(kinds.removed), len(kinds.removed)
	}
	raw, err := canonjson.Marshal(receipt)
	if err != nil {
		return err
	}
	return file.dir.WriteFile(file.name, raw, 0o600)
}
