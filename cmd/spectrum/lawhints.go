package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
)

// This file is the next step after each verdict of the laws.

const (
	// resealHint is for artifacts that no seal of this program leaves.
	resealHint = "nothing of this bundle can be used; get the run directory again from where it was sealed, or seal the outputs anew with \"spectrum seal\""
	// forgedHint is for artifacts that were changed after they were signed.
	forgedHint = "the artifacts are not what the validator signed; nothing of this bundle can be used"
	// detailsHint is for codes with details of the verifier.
	detailsHint = "\"spectrum verify RUN_DIR\" shows the verdict and its details"
	// stageRivalHint is for what was put in the place of a staging directory.
	stageRivalHint = "the directory named above is not the staging directory of this attempt, which is empty and may have been moved; find out which process writes there, remove both directories, then preview again"
	// crossingHint is for a target on another mount or subvolume than the root.
	crossingHint = "a restore works within one file system: unmount it, or replace the subvolume by a directory, or restore these files with a restore root inside it; then make a new preview"
	// rivalHint is for changes of other processes to the root during a commit.
	rivalHint = "the attempt left no trace; stop other processes that write there, then make a new preview with \"spectrum preview --restore-root DIR RUN_DIR\""
)

// rejectHints holds a next step for every verdict on a bundle.
var rejectHints = map[verify.Code]string{
	verify.AlgorithmUnsupported: "only ed25519 is known; have it sealed again with \"spectrum seal\"",
	verify.ArtifactExtra:        "a run directory has one identity, one payload and one signature; find out who put the other one there",
	verify.ArtifactMalformed:    resealHint,
	verify.ArtifactMissing:      "not a run directory; name another, or create one with \"spectrum seal\"",
	verify.BundleRootMismatch:   forgedHint,
	verify.ChainDuplicateRun:    "name each run once",
	verify.ChainEmpty:           "name the run directories of the chain, first to last",
	verify.DecisionInvalid:      "the validator has not accepted this run; nothing of it can be used",
	verify.FieldExtra:           resealHint,
	verify.FieldMissing:         resealHint,
	verify.ForbiddenArtifact:    "move the named files away: a run directory holds no logs, temporary files or transcripts",
	verify.HashMismatch:         "nothing of this bundle can be used; get the file again from where it was sealed",
	verify.IdentityInvalid:      forgedHint,
	verify.IdentityMismatch:     forgedHint,
	verify.KeyInvalid:           resealHint,
	verify.OutputMissing:        "get the file again from where it was sealed; if it does not exist, check --project-root, to which output paths are relative",
	verify.RestorationFailed:    "the validator has not verified this run itself; run it again where it was sealed",
	verify.SerializationInvalid: resealHint,
	verify.SignatureIncomplete:  resealHint,
	verify.SignatureInvalid:     forgedHint,
	verify.SignatureMalformed:   resealHint,

	verify.BundleIncomplete:        "not a finished run directory; \"spectrum verify RUN_DIR\" shows what the strict law finds",
	verify.StatusNotSuccess:        "the run failed, or has not ended: STATUS.json says so; run it again where it was sealed",
	verify.CMP01NotPass:            "the run has not passed its own check: STATUS.json says so; run it again where it was sealed",
	verify.ValidatorUnsupported:    "have it sealed again with a version of this law, as \"spectrum seal\" does",
	verify.ValidatorBuildIDMissing: "have it sealed again with \"spectrum seal\", which names its build",
	verify.ValidatorBuildMismatch:  "name the build that it comes from with --validator-build-id, or leave that out",

	verify.InvalidChainReference: "also name the run that made the input, before the run that uses it",
	verify.ChainOrderViolation:   "name the runs in the order in which they were completed",
}

// failureHints holds a next step for every verdict on a restore.
var failureHints = map[restore.Code]string{
	restore.VerifyStrictFailed: detailsHint,

	restore.ProofMissing:                  detailsHint,
	restore.ProofMalformed:                detailsHint,
	restore.ProofRestorationResultMissing: detailsHint,
	restore.ProofNotVerified:              "the validator has not verified this run itself; run it again where it was sealed",
	restore.OutputHashesMissing:           detailsHint,
	restore.OutputHashesMalformed:         detailsHint,
	restore.OutputHashesHashesMissing:     detailsHint,
	restore.OutputHashesHashesEmpty:       "there is nothing to restore: have the outputs sealed with \"spectrum seal\"",

	restore.TargetMissing:      "name it as the last argument, or with --restore-root DIR",
	restore.TargetNotAbsolute:  "give --restore-root as an absolute path",
	restore.TargetNotExist:     "make the directory first; a restore never makes its own root",
	restore.TargetNotDirectory: "name a directory with --restore-root DIR",
	restore.TargetNotWritable:  "name a directory that you can write to with --restore-root DIR, or run as its owner",

	restore.PathTraversalDetected: "nothing of this bundle can be used: no honest seal names such a path; find out who signed it",
	restore.PathNullByteDetected:  "nothing of this bundle can be used: no honest seal names such a path; find out who signed it",
	restore.SymlinkEscapeDetected: "remove the symbolic link that is named, or name another --restore-root DIR",

	restore.SourceMissing:        "it was there a moment ago: make sure that no other process changes the project, then make a new preview with \"spectrum preview --restore-root DIR RUN_DIR\"",
	restore.SourceNotRegularFile: "a restore takes regular files only: replace the link by the file itself, then preview again",
	restore.TargetPathExists:     "a restore replaces existing files only with --replace: a preview with it shows which ones, and a rollback brings them back; or move the existing file away, then preview again",
	restore.ChainRunIDDuplicate:  "name each run once",
	restore.ChainTargetDirExists: "a restore never overwrites; move the directory away, then preview again",

	restore.StagingHashMismatch:       "nothing of the attempt is left; a source file changed, or a disk returns wrong data: \"spectrum verify RUN_DIR\" shows which",
	restore.FinalizeFailed:            rivalHint,
	restore.OutputMissingAfterRestore: rivalHint,
	restore.HashMismatchAfterRestore:  rivalHint,
	restore.ResultArtifactWriteFailed: "nothing of the attempt is left; an output with the name of a result artifact can never be restored; otherwise make sure that the root is writable and that no other process writes there",
	restore.RollbackFailed:            "fix what is named above, then run \"spectrum recover RESTORE_ROOT\"; until then, other commands reject this root",
	restore.InternalError:             "nothing of the attempt is left; fix the problem above, then make a new preview with \"spectrum preview --restore-root DIR RUN_DIR\"",
}

// failureHintsOf are the next steps after a verdict on a restore.
func failureHintsOf(e *restore.Failure) []string {
	hints := known(failureHints[e.Code])
	if abs, err := filepath.Abs(e.Path); e.Code == restore.TargetNotAbsolute && e.Path != "" && err == nil {
		hints = []string{"give --restore-root as an absolute path: " + withRoot(os.Args[1:], e.Path, abs)}
	}
	if e.Code == restore.TargetNotExist && e.Path != "" {
		hints = []string{"a restore never makes its own root: mkdir -p " + shellQuote(e.Path)}
		if meant := nearPath(e.Path); meant != "" {
			hints = append([]string{"did you mean --restore-root " + shellQuote(meant)}, hints...)
		}
	}
	if e.Code == restore.FinalizeFailed && errors.Is(e, pathsafe.ErrCrossesMount) {
		hints = []string{crossingHint}
	}
	return slices.Concat(hints, lackHints(e))
}

// withRoot is a command line, quoted for a shell, with another restore root in the place of one; only the
// flag where the root is not on the line.
func withRoot(args []string, root, other string) string {
	const flag = "--restore-root"
	line, found := []string{"spectrum"}, false
	for n, arg := range args {
		switch {
		case arg == flag+"="+root:
			arg, found = flag+"="+other, true
		case n > 0 && args[n-1] == flag && arg == root:
			arg, found = other, true
		}
		line = append(line, shellQuote(arg))
	}
	if !found {
		return flag + " " + shellQuote(other)
	}
	return strings.Join(line, " ")
}
