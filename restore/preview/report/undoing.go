package report

// undoing has the sentences about the rollback of a commit, the content of the snapshot before it, and how
// long that is kept (rollback contract, sections 4.2 and 10.1), for a commit that replaces nothing.
var undoing = []string{
	"Rollback is supported. After the commit, \"spectrum rollback COMMIT_ID\" removes only what the commit created, all or nothing; the commit prints its ID. \"spectrum rollback --dry-run COMMIT_ID\" lists that first.",
	"Before the commit writes anything, a snapshot is taken of the names that it creates. They do not exist yet, so the snapshot holds no content. If it cannot be taken, nothing is committed.",
	"What is edited after the commit is saved in a snapshot of its own before a rollback removes it.",
	"The snapshot before the commit is kept as long as the commit can be undone or brought back; \"spectrum snapshot prune\" does not remove it.",
}

// undoing returns the sentences for this preview.
func (p *Report) undoing() []string {
	if !p.Replaces {
		return undoing
	}
	alsoRemoved, removes := "", ""
	if p.Removes {
		alsoRemoved, removes = " or removed", ", or whose files it removes"
	}
	return []string{
		"Rollback is supported. After the commit, \"spectrum rollback COMMIT_ID\" removes what the commit created and restores what it replaced" + alsoRemoved + ", and changes nothing else, all or nothing; the commit prints its ID. \"spectrum rollback --dry-run COMMIT_ID\" lists that first.",
		"Before the commit writes anything, a snapshot is taken of the names that it creates or replaces" + removes + ": it holds every file that is displaced. If it cannot be taken, nothing is committed.",
		undoing[2], undoing[3],
	}
}
