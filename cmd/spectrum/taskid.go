package main

import (
	"iter"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
)

// taskIDs are the signed task_ids of a plan's runs, in their order.
func taskIDs(plan *restore.Plan) []string {
	ids := []string{}
	for b := range bundlesOf(plan) {
		ids = append(ids, b.TaskID())
	}
	return ids
}

func bundlesOf(plan *restore.Plan) iter.Seq[*verify.Bundle] {
	return func(yield func(*verify.Bundle) bool) {
		for run := range plan.Runs() {
			if !yield(run.Bundle()) {
				return
			}
		}
	}
}

// renamedShown is how many renamed runs are named.
const renamedShown = 20

// sayRenamed names the runs whose directory has another name than the task that was
// signed: a result shows the directory's, or the operator has just typed it.
func (a *app) sayRenamed(bundles iter.Seq[*verify.Bundle]) {
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
