package main

import (
	"iter"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
)

// taskIDs are the signed task_ids of a candidate's runs, in their order.
func taskIDs(bundles iter.Seq[view.Signed]) []string {
	ids := []string{}
	for b := range bundles {
		ids = append(ids, b.TaskID())
	}
	return ids
}

// signedOf are verified bundles.
func signedOf(bundles []*verify.Bundle) iter.Seq[view.Signed] {
	return func(yield func(view.Signed) bool) {
		for _, b := range bundles {
			if !yield(b) {
				return
			}
		}
	}
}

// renamedShown is how many renamed runs are named.
const renamedShown = 20

// sayRenamed names the runs whose directory has another name than the task that was
// signed: a result shows the directory's, or the operator has just typed it.
func (a *app) sayRenamed(bundles iter.Seq[view.Signed]) {
	n := 0
	for b := range bundles {
		if !preview.IsRenamed(b) {
			continue
		}
		if n++; n <= renamedShown {
			a.say("spectrum: %s: the name of a directory is not signed", oneLine(preview.RunText(b)))
		}
	}
	if n > renamedShown {
		a.say("spectrum: %s with another name than the signed task_id", numberOf(n-renamedShown, "more run"))
	}
}
