package preview

import (
	"time"

	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// Origin says where the candidate was found, so that it can be found again. It
// is not part of what is approved: the identity of a preview binds what the
// candidate is, wherever it lies.
type Origin struct {
	ProjectRoot string   `json:"project_root"` // absolute; "" for a run in a store
	RunDirs     []string `json:"run_dirs"`     // absolute, in chain order; or the address of a run in a store
	Chain       bool     `json:"chain"`
	RestoreRoot string   `json:"restore_root"` // as it was given
	View        *View    `json:"view"`         // the view that was looked at, if there was one
	// Savepoint is the ID of the savepoint of this host that the run directory is of; "" for none.
	Savepoint string `json:"savepoint,omitzero"`
}

// from returns the project root, or the address of a run that was fetched from a store.
func (o Origin) from() string {
	if o.ProjectRoot == "" && len(o.RunDirs) == 1 {
		return o.RunDirs[0]
	}
	return o.ProjectRoot
}

// View names a mounted view.
type View struct {
	Mountpoint string `json:"mountpoint"` // absolute
	ID         string `json:"view_id"`
}

// Requested is what the operator asks of a preview. The zero Asked asks for the
// default scopes and has decided nothing.
type Requested struct {
	Agent     string                       `json:"agent"`     // the agent that would continue; "" if not given
	Scopes    []scope.Scope                `json:"scopes"`    // none: the default ones (protocol section 5)
	Decisions map[string]statement.Verdict `json:"decisions"` // on conflicts of an earlier preview, by their IDs; [Replace] and [Keep] also by that of the item
	// Replace: existing files are replaced; the restore was made so, by restore.ForRootReplacing.
	Replace bool `json:"replace,omitzero"`
}

// Request is everything that a preview is made of beside the restore.
type Request struct {
	Origin  Origin
	Asked   Requested
	Trust   trust.Policy
	Privacy privacy.Rules // names that hold secrets
	// Automatic are names that run by themselves, Followed those that agents follow.
	Automatic, Followed privacy.Rules
	Current             Savepoint // the active one of the restore root
	// Attempts counts the commits that ever began in the restore root: each
	// makes all previews void that were made before it.
	Attempts int64
	// Now is when the preview is made: a candidate that says it was completed later is
	// flagged. The zero time flags none.
	Now time.Time
	// Warning is of the day, such as that a disk is full; "" for none. The report and the page
	// have it, and not the decision block: the same question on the same state keeps its
	// identity.
	Warning string
}

// Savepoint is what a preview has to know of one. The zero Savepoint is none.
type Savepoint struct {
	ID        string
	Completed time.Time // of the candidate that it was made of; the zero time where that is not known
}

// scopes are the scopes that are asked for.
func (a *Requested) scopes() []scope.Scope {
	if len(a.Scopes) == 0 {
		return scope.Defaults()
	}
	return a.Scopes
}
