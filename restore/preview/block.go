package preview

import (
	"io/fs"
	"time"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
)

// Block is the decision block (protocol section 13). The preview's identity is computed over
// its canonical form; the order of fields here is ignored. Nothing in it depends on the
// machine or the day: the same inputs give the same block.
type Block struct {
	ArtifactType    string         `json:"artifact_type"`
	ProtocolVersion string         `json:"protocol_version"`
	SourceID        string         `json:"source_savepoint_id"`         // bundle root, in a chain the chain root
	CurrentID       string         `json:"current_active_savepoint_id"` // of the restore root
	Scope           []scope.Scope  `json:"restore_scope"`               // asked for
	Items           []Item         `json:"proposed_restorations"`
	ReferenceOnly   []Item         `json:"reference_only_items"`
	DoNotRestore    []Item         `json:"do_not_restore_items"`
	Conflicts       []Conflict     `json:"conflicts"`
	Privacy         PrivacyReview  `json:"privacy_review"`
	Identity        IdentityReview `json:"identity_review"`
	Approval        Wanted         `json:"approval"`

	Source    Source               `json:"source"`
	Candidate Candidate            `json:"candidate"`
	View      *View                `json:"view"`  // that was looked at, if there was one
	Trust     string               `json:"trust"` // digest of the pinned and the revoked validators
	Root      RootState            `json:"restore_root"`
	Totals    Totals               `json:"totals"`
	Findings  []quarantine.Finding `json:"findings"` // of the rules of quarantine
	Checks    []Check              `json:"state_protection"`
	// Replacement is set if Asked.Replace was requested.
	Replacement *Replacement `json:"replacement,omitzero"`
}

// Source has the declarations of the candidate about itself (protocol section 8.1). A missing one is
// "unknown".
type Source struct {
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

// Candidate names the runs that would be restored, and their signers.
type Candidate struct {
	ChainRoot *string        `json:"chain_root"`
	Runs      []CandidateRun `json:"runs"`
	Unsigned  []string       `json:"unsigned_artifacts"` // artifacts that no signature covers, such as PROOF.json
	// Directories are those on the way to outputs, with what their sources grant: a
	// directory that a restore makes gets no more, and never more than 0755.
	Directories []GrantedDir `json:"directories"`
}

// GrantedDir is a directory on the way to an output.
type GrantedDir struct {
	Path string `json:"item"` // beneath the restore root; "." is that itself
	Mode string `json:"mode"` // permission bits, four octal digits
}

// CandidateRun is a run of the candidate.
type CandidateRun struct {
	RunID       string `json:"run_id"`  // the name of a directory: not signed
	TaskID      string `json:"task_id"` // signed
	BundleRoot  string `json:"bundle_root"`
	ValidatorID string `json:"validator_id"`
	Standing    string `json:"validator_standing"` // with the operator: "unknown", "pinned" or "own"
}

// Item is one output, or one removal of a change set (protocol sections 8.3 to 8.5). Each of a
// candidate has a number, in path order, whichever list it is in.
type Item struct {
	ID     string      `json:"restore_id"`
	Path   string      `json:"item"` // beneath the restore root
	Scope  scope.Scope `json:"scope"`
	Label  Label       `json:"label"`
	Class  Class       `json:"class"`
	Reason string      `json:"reason"` // "" if the label is enough
	Runs   string      `json:"runs"`   // why it may run by itself, "" for no reason to think so
	SHA256 string      `json:"sha256"`
	Bytes  int64       `json:"bytes"`
	Mode   string      `json:"mode"`     // permission bits, four octal digits
	Time   string      `json:"modified"` // RFC 3339, to the nanosecond
	// Before is the existing file that is replaced or removed.
	Before *Before `json:"replaces,omitzero"`

	Number  int  `json:"-"` // of ID
	Follow  bool `json:"-"` // agents follow a file of this name
	Opens   bool `json:"-"` // it replaces a file that other users had less access to
	Removed bool `json:"-"` // nothing shall be there

	free bool // nothing hinders it: what is there is the same, or is replaced or removed
	// signedBits: it is of a change set, which signs which outputs are executable.
	signedBits bool
	signedMode bool   // it is of a run with a block table, which signs permission bits
	diverged   string // what is there, in words, where it is not what a change set started from; "" where it is
	overruled  Class  // of a diverged item: its class if the operator overrules the conflict
	run        int    // place of its run in the candidate
	path       string // beneath the project root
	perm       fs.FileMode
	output     verify.Output // the zero Output of what is removed
}

// Label is a retention label (protocol section 7).
type Label string

// The labels.
const (
	RestoreActive     Label = "restore_active"
	RetainReference   Label = "retain_reference"
	DoNotRestore      Label = "do_not_restore"
	NeedsConfirmation Label = "requires_operator_confirmation"
	InConflict        Label = "conflict_with_current_state"
	PrivacyRestricted Label = "privacy_restricted"
	Nontransferable   Label = "identity_layer_nontransferable"
	HistoricalOnly    Label = "historical_only"
	Superseded        Label = "superseded"
	OperatorApproved  Label = "operator_approved"
	OperatorRejected  Label = "operator_rejected"
)

// Class is the relation of an item to the existing target, by content.
type Class string

// The classes.
const (
	Create    Class = "create"    // nothing is there
	Identical Class = "identical" // a regular file with the same bytes is there
	Different Class = "conflict"  // something else is there
	Replaces  Class = "replace"   // a regular file is there, and is replaced
	Removes   Class = "remove"    // a regular file is there, and is removed
	Diverged  Class = "diverged"  // something else is there than a change set started from
	Blocked   Class = "blocked"   // nothing can be put there
)

// Conflict is one entry of the conflict register (protocol sections 8.6 and 9).
type Conflict struct {
	ID         string       `json:"conflict_id"`
	Type       ConflictType `json:"type"`
	Path       string       `json:"item"`            // the path, validator, scope or run of the conflict
	Items      []string     `json:"restore_ids"`     // none: the conflict concerns the whole candidate
	Places     []Place      `json:"places,omitzero"` // that another user controls, of an authority conflict
	Current    string       `json:"current_state"`
	Claim      string       `json:"savepoint_claim"`
	Authority  string       `json:"authority_comparison"`
	Risk       string       `json:"risk"`
	Resolution string       `json:"recommended_resolution"`
	Decision   string       `json:"operator_decision"` // "pending", or a verdict

	Numbers  []int `json:"-"` // numbers of Items
	ByName   bool  `json:"-"` // only the statement itself can acknowledge it, by its ID
	Diverged bool  `json:"-"` // its item has diverged: see [Replace] and [Keep]
}

// ConflictType is a type of conflict (protocol section 9).
type ConflictType string

// The types of conflict.
const (
	StateConflict      ConflictType = "state_conflict"
	IdentityConflict   ConflictType = "identity_conflict"
	AuthorityConflict  ConflictType = "authority_conflict"
	PrivacyConflict    ConflictType = "privacy_conflict"
	VersionConflict    ConflictType = "version_conflict"
	SourceConflict     ConflictType = "source_of_truth_conflict"
	ScopeConflict      ConflictType = "scope_conflict"
	TimingConflict     ConflictType = "timing_conflict"
	StaleContext       ConflictType = "stale_context_risk"
	PreferenceConflict ConflictType = "operator_preference_conflict"
)

// Undecided is the decision on an undecided conflict.
const Undecided = "pending"

// PrivacyReview is the privacy review (protocol section 8.7).
type PrivacyReview struct {
	Present  *bool  `json:"restricted_context_present"` // nil: none was found, and the signer has not declared scopes
	Approval bool   `json:"operator_approval_required"`
	Adequate bool   `json:"privacy_level_adequate"`
	Proposed int    `json:"restricted_items_proposed"`
	Items    int    `json:"restricted_items"`
	Rules    string `json:"rules"`           // digest of the names that usually hold secrets
	Runs     string `json:"automatic_rules"` // digest of the names that run by themselves
}

// IdentityReview is the identity review (protocol section 8.7).
type IdentityReview struct {
	Same      *bool  `json:"same_agent_candidate"`   // nil if the candidate or the operator has not named an agent
	Known     bool   `json:"agents_known"`           // the candidate and the operator have both named an agent
	Present   *bool  `json:"identity_layer_present"` // nil: none was found, and the signer has not declared scopes
	Allowed   bool   `json:"identity_layer_restoration_allowed"`
	Proposed  int    `json:"identity_items_proposed"`
	Items     int    `json:"identity_items"`
	Possible  int    `json:"possible_identity_items"` // by name alone
	Rules     string `json:"rules"`                   // digest of the names that agents follow
	Candidate string `json:"candidate_agent"`
	Operator  string `json:"operator_agent"`
}

// Wanted is the approval that the preview requests (protocol section 8.9).
type Wanted struct {
	Status    string   `json:"status"`         // "pending"
	Required  []string `json:"required_items"` // ids to decide
	Statement string   `json:"statement"`      // that approves what is recommended; "" when nothing can be
	Plan      string   `json:"plan"`           // what that statement approves, in words
}

// RootState is the restore root as it was observed.
type RootState struct {
	Path     string   `json:"path"`      // as it was given
	Real     string   `json:"real_path"` // of the directory that it led to
	Owner    uint32   `json:"owner"`     // user id
	State    string   `json:"state"`     // see observe
	Warnings []string `json:"warnings"`  // see warnings
}

// Totals count the items and their bytes.
type Totals struct {
	Files    int   `json:"files"`
	Bytes    int64 `json:"bytes"`
	Proposed int   `json:"proposed_files"`
	Restore  int64 `json:"proposed_bytes"`
}

// Check is one line of the state protection check (protocol sections 8.8 and
// 14), with what it rests on.
type Check struct {
	Question string `json:"question"`
	Answer   string `json:"answer"` // "yes", "no" or "after the commit"
	Evidence string `json:"evidence"`
}

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
