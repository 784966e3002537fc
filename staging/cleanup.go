package staging

import (
	"maps"
	"slices"
	"strings"
)

// cleanUp is step 8: what is left below staging are the directories that exist
// beneath the root anyway. They go, then the chain manifest, then the journal
// with the staging directory.
func (a *attempt) cleanUp() error {
	u := newUndo(a)
	defer u.close()
	u.returnAsides()
	u.dirs(func(d *plannedDir) bool { return d.top == none })
	u.hold()
	u.manifest()
	if u.err() == nil && a.manifestMark.known {
		u.note(a.manifestName(), a.root.sync())
	}
	if u.err() == nil {
		u.journal()
	}
	return u.err()
}

// journal removes the records and, empty as it is then, the staging directory.
// That this is durable no one has to know: what comes back after a crash says
// what it said before, and is removed again.
func (u *undo) journal() {
	left := u.onlyJournal()
	last := intentName
	if u.phase == phaseCommitted {
		last = committedName
	}
	u.records(left, func(name string) bool { return name == haltedName || name == preparedName })
	if u.phase == phaseCommitted && u.err() == nil { // else PREPARED could outlive COMMITTED, and lead back
		u.note(preparedName, gone(u.stage.sync()))
	}
	u.records(left, func(name string) bool { return name != last })
	u.records(left, func(name string) bool { return name == last })
	if u.err() == nil {
		u.stageDir()
	}
	if u.err() == nil {
		_ = u.root.sync()
	}
}

// onlyJournal returns what is left in staging, which has to be of the journal.
func (u *undo) onlyJournal() map[string]bool {
	names, err := u.stage.names()
	u.note(u.stageName(), gone(err))
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
		if !ofJournal(name) {
			u.note(u.stageName()+"/"+name, errForeign)
		}
	}
	return left
}

func ofJournal(name string) bool {
	return name == haltedName || slices.Contains(journalNames, strings.TrimSuffix(name, newSuffix))
}

// records removes those of the records left that are wanted, as long as all
// goes well: the last of them says how the attempt ended.
func (u *undo) records(left map[string]bool, wanted func(name string) bool) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if u.err() == nil && wanted(name) {
			u.note(name, gone(u.stage.unlink(name)))
			delete(left, name)
		}
	}
}

// stageDir removes the staging directory. What is left in it is foreign.
func (u *undo) stageDir() {
	if u.stageMark.tried {
		u.note(u.stageName(), gone(removeDir(u.root, u.stageName(), &u.stageMark, true)))
	}
}
