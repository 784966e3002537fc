package preview

import (
	"time"

	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// Origin is the location of the candidate, to open it again. The identity of a preview does not bind it, but
// the content of the candidate.
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

// Requested has the options of the operator. The zero Requested requests the default scopes and decides no
// conflict.
type Requested struct {
	Agent     string                       `json:"agent"`     // the agent that would continue; "" if not given
	Scopes    []scope.Scope                `json:"scopes"`    // none: the default ones (protocol section 5)
	Decisions map[string]statement.Verdict `json:"decisions"` // on conflicts of an earlier preview, by their IDs; [Replace] and [Keep] also by that of the item
	// Replace: existing files are replaced; the restore was made so, by restore.ForRootReplacing.
	Replace bool `json:"replace,omitzero"`
}

// Request is the input of a preview beside the restore.
type Request struct {
	Origin  Origin
	Asked   Requested
	Trust   trust.Policy
	Privacy privacy.Rules // names that hold secrets
	// Automatic are names that run by themselves, Followed those that agents follow.
	Automatic, Followed privacy.Rules
	Current             Savepoint // the active one of the restore root
	// Attempts counts the commits that ever began in the restore root: each makes all earlier previews
	// stale.
	Attempts int64
	// Now is the present time: a candidate with a later completion time is flagged. The zero time flags
	// none.
	Now time.Time
	// Warning is a temporary warning, such as that a disk is full; "" for none. The report and the page
	// show it, but the identity does not bind it.
	Warning string
}

// Savepoint is the active savepoint of a restore root. The zero Savepoint is none.
type Savepoint struct {
	ID        string
	Completed time.Time // completion time of its candidate; the zero time if unknown
}

// scopes returns the requested scopes.
func (a *Requested) scopes() []scope.Scope {
	if len(a.Scopes) == 0 {
		return scope.Defaults()
	}
	return a.Scopes
}
