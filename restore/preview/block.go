package preview

import (
	"io/fs"
	"time"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
)

// block is the decision block (protocol section 13). The preview's identity is computed over
// its canonical form; the order of fields here is ignored. Nothing in it depends on the
// machine or the day: the same inputs give the same block.
type block struct {
	ArtifactType    string         `json:"artifact_type"`
	ProtocolVersion string         `json:"protocol_version"`
	SourceID        string         `json:"source_savepoint_id"`         // bundle root, in a chain the chain root
	CurrentID       string         `json:"current_active_savepoint_id"` // of the restore root
	Scope           []scope.Scope  `json:"restore_scope"`               // asked for
	Items           []item         `json:"proposed_restorations"`
	ReferenceOnly   []item         `json:"reference_only_items"`
	DoNotRestore    []item         `json:"do_not_restore_items"`
	Conflicts       []conflict     `json:"conflicts"`
	Privacy         privacyReview  `json:"privacy_review"`
	Identity        identityReview `json:"identity_review"`
	Approval        approval       `json:"approval"`

	Source    source               `json:"source"`
	Candidate candidate            `json:"candidate"`
	View      *View                `json:"view"`  // that was looked at, if there was one
	Trust     string               `json:"trust"` // digest of who is pinned and who is revoked
	Root      rootState            `json:"restore_root"`
	Totals    totals               `json:"totals"`
	Findings  []quarantine.Finding `json:"findings"` // of the rules of quarantine
	Checks    []check              `json:"state_protection"`
	// Replacement is what was asked for with Asked.Replace; null and missing without.
	Replacement *replacement `json:"replacement,omitzero"`
}

// source is what the candidate says of itself (protocol section 8.1). What it
// does not say is "unknown".
type source struct {
	Title    string `json:"title"`
	Parent   string `json:"parent_savepoint_id"`
	Agent    string `json:"created_by_agent"`
	Receiver string `json:"intended_receiving_agent"`
	Project  string `json:"project"`
	Version  string `json:"savepoint_version"`
	Date     string `json:"date"`
	Status   string `json:"artifact_status"`
	Transfer string `json:"transfer_mode"`
	Privacy  string `json:"privacy_level"`
}

// candidate is what would be restored, and who vouches for it.
type candidate struct {
	ChainRoot *string        `json:"chain_root"`
	Runs      []candidateRun `json:"runs"`
	Unsigned  []string       `json:"unsigned_artifacts"` // decision D16
	// Directories are those on the way to outputs, with what their sources grant: a
	// directory that a restore makes gets no more, and never more than 0755.
	Directories []grantedDir `json:"directories"`
}

type grantedDir struct {
	Path string `json:"item"` // beneath the restore root; "." is that itself
	Mode string `json:"mode"` // permission bits, four octal digits
}

type candidateRun struct {
	RunID       string `json:"run_id"`  // the name of a directory: not signed
	TaskID      string `json:"task_id"` // signed
	BundleRoot  string `json:"bundle_root"`
	ValidatorID string `json:"validator_id"`
	Standing    string `json:"validator_standing"` // with the operator: "unknown", "pinned" or "own"
}

// item is one output, or one removal of a change set (protocol sections 8.3 to 8.5). Each of a
// candidate has a number, in path order, whichever list it is in.
type item struct {
	ID     string      `json:"restore_id"`
	Path   string      `json:"item"` // beneath the restore root
	Scope  scope.Scope `json:"scope"`
	Label  label       `json:"label"`
	Class  class       `json:"class"`
	Reason string      `json:"reason"` // "" when the label says it all
	Runs   string      `json:"runs"`   // why it may run by itself, "" for no reason to think so
	SHA256 string      `json:"sha256"`
	Bytes  int64       `json:"bytes"`
	Mode   string      `json:"mode"`     // permission bits, four octal digits
	Time   string      `json:"modified"` // RFC 3339, to the nanosecond
	// Before is the existing file that is replaced or removed.
	Before *before `json:"replaces,omitzero"`

	free    bool // nothing hinders it: what is there is the same, or is replaced or removed
	follow  bool // agents follow a file of this name
	opens   bool // it replaces a file that other users had less access to
	removed bool // nothing shall be there
	// signedBits: it is of a change set, which signs which outputs are executable.
	signedBits bool
	diverged   string // what is there, in words, where it is not what a change set started from; "" where it is
	overruled  class  // of what has diverged: the class that it has if the operator says so
	number     int    // of ID
	run        int    // place of its run in the candidate
	path       string // beneath the project root
	perm       fs.FileMode
	output     verify.Output // the zero Output of what is removed
}

// label is a retention label (protocol section 7).
type label string

const (
	restoreActive     label = "restore_active"
	retainReference   label = "retain_reference"
	doNotRestore      label = "do_not_restore"
	needsConfirmation label = "requires_operator_confirmation"
	inConflict        label = "conflict_with_current_state"
	privacyRestricted label = "privacy_restricted"
	nontransferable   label = "identity_layer_nontransferable"
	historicalOnly    label = "historical_only"
	superseded        label = "superseded"
	operatorApproved  label = "operator_approved"
	operatorRejected  label = "operator_rejected"
)

// class is how a target stands to the restore root, by content.
type class string

const (
	create    class = "create"    // nothing is there
	identical class = "identical" // a regular file with the same bytes is there
	different class = "conflict"  // something else is there
	replaces  class = "replace"   // a regular file is there, and is replaced
	removes   class = "remove"    // a regular file is there, and is removed
	diverged  class = "diverged"  // something else is there than a change set started from
	blocked   class = "blocked"   // nothing can be put there
)

// conflict is one entry of the conflict register (protocol sections 8.6 and 9).
type conflict struct {
	ID         string       `json:"conflict_id"`
	Type       conflictType `json:"type"`
	Path       string       `json:"item"`        // what it is about
	Items      []string     `json:"restore_ids"` // none: it is about the whole candidate
	Current    string       `json:"current_state"`
	Claim      string       `json:"savepoint_claim"`
	Authority  string       `json:"authority_comparison"`
	Risk       string       `json:"risk"`
	Resolution string       `json:"recommended_resolution"`
	Decision   string       `json:"operator_decision"` // "pending", or a verdict

	items    []int // numbers of Items
	byName   bool  // only the statement itself can acknowledge it, by its ID
	diverged bool  // its item has diverged: see [Replace] and [Keep]
}

// conflictType is a type of conflict (protocol section 9).
type conflictType string

const (
	stateConflict      conflictType = "state_conflict"
	identityConflict   conflictType = "identity_conflict"
	authorityConflict  conflictType = "authority_conflict"
	privacyConflict    conflictType = "privacy_conflict"
	versionConflict    conflictType = "version_conflict"
	sourceConflict     conflictType = "source_of_truth_conflict"
	scopeConflict      conflictType = "scope_conflict"
	timingConflict     conflictType = "timing_conflict"
	staleContext       conflictType = "stale_context_risk"
	preferenceConflict conflictType = "operator_preference_conflict"
)

// pending is the decision on an undecided conflict.
const pending = "pending"

type privacyReview struct {
	Present  *bool  `json:"restricted_context_present"` // nil: none was found, and the signer has not declared scopes
	Approval bool   `json:"operator_approval_required"`
	Adequate bool   `json:"privacy_level_adequate"`
	Proposed int    `json:"restricted_items_proposed"`
	Items    int    `json:"restricted_items"`
	Rules    string `json:"rules"`           // digest of the names that usually hold secrets
	Runs     string `json:"automatic_rules"` // digest of the names that run by themselves
}

type identityReview struct {
	Same      *bool  `json:"same_agent_candidate"`   // nil: not both have said who they are
	Known     bool   `json:"agents_known"`           // both have said who they are
	Present   *bool  `json:"identity_layer_present"` // nil: none was found, and the signer has not declared scopes
	Allowed   bool   `json:"identity_layer_restoration_allowed"`
	Proposed  int    `json:"identity_items_proposed"`
	Items     int    `json:"identity_items"`
	Possible  int    `json:"possible_identity_items"` // by name alone
	Rules     string `json:"rules"`                   // digest of the names that agents follow
	Candidate string `json:"candidate_agent"`
	Operator  string `json:"operator_agent"`
}

type approval struct {
	Status    string   `json:"status"`         // "pending"
	Required  []string `json:"required_items"` // ids to decide
	Statement string   `json:"statement"`      // that approves what is recommended; "" when nothing can be
	Plan      string   `json:"plan"`           // what that statement approves, in words
}

// rootState is the restore root as it was observed.
type rootState struct {
	Path     string   `json:"path"`      // as it was given
	Real     string   `json:"real_path"` // of the directory that it led to
	Owner    uint32   `json:"owner"`     // user id
	State    string   `json:"state"`     // see observe
	Warnings []string `json:"warnings"`  // decision D17
}

type totals struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`
	Proposed int   `json:"proposed_files"`
	Restore  int64 `json:"proposed_bytes"`
}

// check is one line of the state protection check (protocol sections 8.8 and
// 14), with what it rests on.
type check struct {
	Question string `json:"question"`
	Answer   string `json:"answer"` // "yes", "no" or "after the commit"
	Evidence string `json:"evidence"`
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
