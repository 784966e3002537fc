package main

// A code names a verdict of this program's own, in no law, as JSON shows it (a
// promise to scripts). Those of the laws are in packages verify and restore.
type code string

// Damage that recover finds among what is kept of a restore root.
const codeStateDamaged code = "STATE_DAMAGED"

// Codes of commands that were rejected for their arguments or their environment.
const (
	codeUsage       code = "USAGE"
	codeRefused     code = "REFUSED"
	codeUnavailable code = "MOUNT_UNAVAILABLE"
	codeOverlay     code = "OVERLAY_UNAVAILABLE"
	codeRun         code = "RUN_FAILED"
	codeNoGit       code = "GIT_UNAVAILABLE"
	codeInternal    code = "INTERNAL_ERROR"
	codeMachine     code = "MACHINE_FAULT"
	codeInterrupted code = "INTERRUPTED"
)

// Codes about a restore root, a view or a candidate.
const (
	codeLocked      code = "ROOT_LOCKED"
	codeHalted      code = "ROOT_HALTED"
	codeForeign     code = "ROOT_FOREIGN"
	codeTampered    code = "VIEW_TAMPERED"
	codeQuarantined code = "CANDIDATE_QUARANTINED"
	codeRevoked     code = "VALIDATOR_REVOKED"
	codeNotTrusted  code = "VALIDATOR_NOT_TRUSTED"
	codeHoles       code = "CANDIDATE_TOO_SPARSE"
	codeSparse      code = "FILE_TOO_SPARSE"
)

// The codes of an approval, and of the release of a halted root.
const (
	codeApprovalRequired        code = "APPROVAL_REQUIRED"
	codeApprovalVague           code = "APPROVAL_VAGUE"
	codeApprovalUnfit           code = "APPROVAL_UNFIT"
	codeApprovalIncomplete      code = "APPROVAL_INCOMPLETE"
	codeApprovalStale           code = "APPROVAL_STALE"
	codeApprovalUsed            code = "APPROVAL_USED"
	codeApprovalInvalid         code = "APPROVAL_INVALID"
	codeAcknowledgementRequired code = "ACKNOWLEDGEMENT_REQUIRED"
	codeAcknowledgementUnfit    code = "ACKNOWLEDGEMENT_UNFIT"
)

// Codes of the log, and of savepoints and log entries without their counterpart.
const (
	codeAuditDamaged     code = "AUDIT_DAMAGED"
	codeAuditCut         code = "AUDIT_CUT"
	codeAuditRewritten   code = "AUDIT_REWRITTEN"
	codeSavepointMissing code = "SAVEPOINT_MISSING"
	codeHistory          code = "HISTORY_DAMAGED"
)

// The codes of a savepoint that is not what it was.
const (
	codeDrifted code = "SAVEPOINT_DRIFTED"
	codeInvalid code = "SAVEPOINT_INVALID"
)

// The codes of a snapshot that is not what was put there, and of a root that none
// can be taken of.
const (
	codeSnapshotDamaged code = "SNAPSHOT_DAMAGED"
	codeSnapshotRefused code = "SNAPSHOT_REFUSED"
)

// The codes of a rollback that did not happen.
const (
	codeLater      code = "ROLLBACK_LATER_COMMITS"
	codeNoSnapshot code = "ROLLBACK_NO_SNAPSHOT"
	codeNotUndone  code = "ROLLBACK_REFUSED"
	// some files of the commit remain, so the commit is not undone; or some files could not be
	// read, and stay as they are
	codeInPart code = "ROLLBACK_INCOMPLETE"
)

// The codes of looking: a machine that lacks what a restore needs, and a restore root
// that is not what a restore would make of it.
const (
	codeUnfit   code = "MACHINE_UNFIT"
	codeDiffers code = "ROOT_DIFFERS"
	// of "snapshot diff"
	codeSnapshotDiffers code = "SNAPSHOT_DIFFERS"
)

// The codes of stores.
const (
	codeStoreFault    code = "STORE_FAULT"    // the network, the server, or a missing pack
	codeStoreTampered code = "STORE_TAMPERED" // bytes that are not those that were signed
	codeStoreNoRun    code = "STORE_NO_RUN"
	codeStoreDamaged  code = "STORE_DAMAGED" // of "store check"
	codeStoreLocked   code = "STORE_LOCKED"  // by another "store gc"
)
