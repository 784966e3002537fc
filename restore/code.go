package restore

// Code is a failure code of SPECTRUM-06. Codes are law: their text is fixed.
type Code string

// The codes of SPECTRUM-06 section 8.3, in the order of its table.
const (
	VerifyStrictFailed            Code = "RESTORE_VERIFY_STRICT_FAILED"
	ProofMissing                  Code = "RESTORE_PROOF_MISSING"
	ProofMalformed                Code = "RESTORE_PROOF_MALFORMED"
	ProofRestorationResultMissing Code = "RESTORE_PROOF_RESTORATION_RESULT_MISSING"
	ProofNotVerified              Code = "RESTORE_PROOF_NOT_VERIFIED"
	OutputHashesMissing           Code = "RESTORE_OUTPUT_HASHES_MISSING"
	OutputHashesMalformed         Code = "RESTORE_OUTPUT_HASHES_MALFORMED"
	OutputHashesHashesMissing     Code = "RESTORE_OUTPUT_HASHES_HASHES_MISSING"
	OutputHashesHashesEmpty       Code = "RESTORE_OUTPUT_HASHES_HASHES_EMPTY"
	TargetMissing                 Code = "RESTORE_TARGET_MISSING"
	TargetNotAbsolute             Code = "RESTORE_TARGET_NOT_ABSOLUTE"
	TargetNotExist                Code = "RESTORE_TARGET_NOT_EXIST"
	TargetNotDirectory            Code = "RESTORE_TARGET_NOT_DIRECTORY"
	TargetNotWritable             Code = "RESTORE_TARGET_NOT_WRITABLE"
	PathTraversalDetected         Code = "RESTORE_PATH_TRAVERSAL_DETECTED"
	PathNullByteDetected          Code = "RESTORE_PATH_NULL_BYTE_DETECTED"
	SymlinkEscapeDetected         Code = "RESTORE_SYMLINK_ESCAPE_DETECTED"
	SourceMissing                 Code = "RESTORE_SOURCE_MISSING"
	SourceNotRegularFile          Code = "RESTORE_SOURCE_NOT_REGULAR_FILE"
	TargetPathExists              Code = "RESTORE_TARGET_PATH_EXISTS"
	ChainRunIDDuplicate           Code = "RESTORE_CHAIN_RUN_ID_DUPLICATE"
	ChainTargetDirExists          Code = "RESTORE_CHAIN_TARGET_DIR_EXISTS"
	StagingHashMismatch           Code = "RESTORE_STAGING_HASH_MISMATCH"
	FinalizeFailed                Code = "RESTORE_FINALIZE_FAILED"
	OutputMissingAfterRestore     Code = "RESTORE_OUTPUT_MISSING_AFTER_RESTORE"
	HashMismatchAfterRestore      Code = "RESTORE_HASH_MISMATCH_AFTER_RESTORE"
	ResultArtifactWriteFailed     Code = "RESTORE_RESULT_ARTIFACT_WRITE_FAILED"
	RollbackFailed                Code = "RESTORE_ROLLBACK_FAILED"
	InternalError                 Code = "RESTORE_INTERNAL_ERROR"
)

// Phase is a phase of a restore (section 8.1).
type Phase string

// The phases in the order in which they run, which is also their priority.
const (
	Preflight Phase = "PREFLIGHT"
	Planning  Phase = "PLAN"
	Execute   Phase = "EXECUTE"
	Verify    Phase = "VERIFY"
)

// phases is the phase of every code that has only one (section 8.3).
var phases = map[Code]Phase{
	VerifyStrictFailed:            Preflight,
	ProofMissing:                  Preflight,
	ProofMalformed:                Preflight,
	ProofRestorationResultMissing: Preflight,
	ProofNotVerified:              Preflight,
	OutputHashesMissing:           Preflight,
	OutputHashesMalformed:         Preflight,
	OutputHashesHashesMissing:     Preflight,
	OutputHashesHashesEmpty:       Preflight,
	TargetMissing:                 Preflight,
	TargetNotAbsolute:             Preflight,
	TargetNotExist:                Preflight,
	TargetNotDirectory:            Preflight,
	TargetNotWritable:             Preflight,
	PathTraversalDetected:         Preflight,
	PathNullByteDetected:          Preflight,
	SymlinkEscapeDetected:         Preflight,
	SourceMissing:                 Planning,
	SourceNotRegularFile:          Planning,
	TargetPathExists:              Execute,
	ChainRunIDDuplicate:           Preflight,
	ChainTargetDirExists:          Preflight,
	StagingHashMismatch:           Execute,
	FinalizeFailed:                Execute,
	OutputMissingAfterRestore:     Verify,
	HashMismatchAfterRestore:      Verify,
	ResultArtifactWriteFailed:     Verify,
}
