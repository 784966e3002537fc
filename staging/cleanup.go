package staging

import "context"

// cleanUp is step 8: what is left below staging are the directories that exist
// beneath the root anyway. They go, then staging, then the chain manifest.
func (a *attempt) cleanUp(context.Context) *Error {
	u := newUndo(a)
	defer u.close()
	u.dirs(func(d *plannedDir) bool { return d.top == none })
	u.stageDir()
	u.manifest()
	if err := u.err(); err != nil {
		return fail(StepCleanup, a.stageName(), err)
	}
	return fail(StepCleanup, a.stageName(), a.root.sync())
}
