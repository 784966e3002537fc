package action_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
)

// A fault happens during a commit, and the law has a code for the outcome.
type fault struct {
	name string
	on   string // the phase of package staging at whose beginning it happens; "" is between approval and commit
	do   func(s *scene)

	code  restore.Code
	cause restore.Code // of a failed rollback
	phase restore.Phase
	path  string // of the failure: an output of the last run

	chainPath string // of the failure in a chain, where it is another

	only    string   // the mode, where there is only one
	foreign []string // what stays because of another process, as targets of the last run
	lost    []string // what another process removed from the root
	quiet   bool     // nothing was written at all: no time changed
}

const (
	stagePhase    = staging.PhaseStage
	syncPhase     = staging.PhaseSync
	finalizePhase = staging.PhaseFinalize
	verifyPhase   = staging.PhaseVerify
	publishPhase  = staging.PhasePublish
)

// stagingDir stands for the name of the staging directory, which each attempt
// has anew.
const stagingDir = "the staging directory"

// want is the failure that the law asks for.
func (f fault) want(s *scene) restore.Failure {
	w := restore.Failure{Code: f.code, Phase: f.phase, Cause: f.cause}
	switch {
	case f.path == "" || f.path == stagingDir:
		w.Path = f.path
	case s.chain && f.chainPath != "":
		w.Path = f.chainPath
	default:
		w.Path = s.target(f.path)
	}
	return w
}

// write replaces the content of a source.
func write(path, content string) func(*scene) {
	return func(s *scene) { must(s.t, os.WriteFile(s.source(path), []byte(content), 0o644)) }
}

// source replaces a source by something else.
func source(path string, with func(name string) error) func(*scene) {
	return func(s *scene) {
		must(s.t, os.RemoveAll(s.source(path)))
		must(s.t, with(s.source(path)))
	}
}

func nothing(string) error { return nil }

// rival makes a file beneath the root where the last run would put one.
func rival(path string) func(*scene) {
	return func(s *scene) {
		name := s.at(s.target(path))
		must(s.t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(s.t, os.WriteFile(name, []byte("rival"), 0o600))
	}
}

// instead puts a rival's file in the place of a target that was restored.
func instead(path string) func(*scene) {
	return func(s *scene) {
		must(s.t, os.WriteFile(s.at("rival"), []byte("rival"), 0o600))
		must(s.t, os.Rename(s.at("rival"), s.at(s.target(path))))
	}
}

func removeTarget(path string) func(*scene) {
	return func(s *scene) { must(s.t, os.RemoveAll(s.at(s.target(path)))) }
}

func both(a, b func(*scene)) func(*scene) {
	return func(s *scene) {
		a(s)
		b(s)
	}
}

// overwrite changes a file in its place: the same inode, the same size.
func overwrite(name func(s *scene) string) func(*scene) {
	return func(s *scene) {
		f, err := os.OpenFile(name(s), os.O_WRONLY, 0)
		must(s.t, err)
		_, err = f.WriteAt([]byte("!"), 0)
		must(s.t, errors.Join(err, f.Close()))
	}
}

const (
	execute = restore.Execute
	check   = restore.Verify
)

// sourceFaults: 76, what happens to sources after the approval. Staging checks
// what it wrote and believes the source in nothing.
var sourceFaults = []fault{
	{name: "76 source changed", do: write("new/a.txt", "ALPHA\n"), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "74 source grown", do: write("new/a.txt", "alpha\n+"), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "74 source grown by far", do: write("new/a.txt", "alpha\n"+strings.Repeat("x", 1<<20)), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "75 source cut", do: write("new/a.txt", "alpha"), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "75 source emptied", do: write("new/a.txt", ""), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "empty source filled", do: write("new/sub/empty", "x"), code: restore.StagingHashMismatch, phase: execute, path: "new/sub/empty"},
	{name: "first of two sources", do: both(write("top.txt", "TOP\n"), write("new/sub/b.txt", "BETA\n")), code: restore.StagingHashMismatch, phase: execute, path: "new/sub/b.txt"},
	{name: "source changed while staging begins", on: stagePhase, do: write("new/a.txt", "ALPHA\n"), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	// no copy of these has the signed hash
	{name: "source removed", do: source("new/a.txt", nothing), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "source a FIFO", do: source("new/a.txt", harness.FIFO), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "source a directory", do: source("new/a.txt", harness.Directory), code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "source a link to the same", do: func(s *scene) {
		must(s.t, os.Rename(s.source("new/a.txt"), s.source("new/real")))
		must(s.t, os.Symlink("real", s.source("new/a.txt")))
	}, code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
	{name: "parent of a source a link out", do: func(s *scene) {
		must(s.t, os.Rename(s.source("new"), s.source("real")))
		must(s.t, os.Symlink(s.source("real"), s.source("new")))
	}, code: restore.StagingHashMismatch, phase: execute, path: "new/a.txt"},
}

// rootFaults: what happens to the root after the approval, before anything is
// written. It stays as it is to the last time stamp.
var rootFaults = []fault{
	{name: "target made", do: rival("new/a.txt"), code: restore.TargetPathExists, phase: execute, path: "new/a.txt", foreign: []string{"new", "new/a.txt"}, quiet: true, chainPath: "run-2"},
	{name: "target made as a directory", do: func(s *scene) { must(s.t, os.MkdirAll(s.at(s.target("top.txt")), 0o755)) },
		code: restore.TargetPathExists, phase: execute, path: "top.txt", foreign: []string{"top.txt"}, quiet: true, chainPath: "run-2"},
	{name: "parent made as a file", do: rival("new"), code: restore.TargetPathExists, phase: execute, path: "new/a.txt", foreign: []string{"new"}, quiet: true, chainPath: "run-2"},
	{name: "result artifact made", do: rival(restore.ReportName), code: restore.TargetPathExists, phase: execute, path: restore.ReportName, foreign: []string{restore.ReportName}, quiet: true, chainPath: "run-2"},
	{name: "parent became a link out", only: "single", do: func(s *scene) {
		must(s.t, os.Rename(s.at("existing"), s.at("moved")))
		must(s.t, os.Symlink("/tmp", s.at("existing")))
	}, code: restore.InternalError, phase: execute, foreign: []string{"existing", "moved", "moved/keep.txt"}, lost: []string{"existing", "existing/keep.txt"}, quiet: true},
	{name: "mounted on a parent", only: "single", do: func(s *scene) { s.mount("existing", "") },
		code: restore.InternalError, phase: execute, quiet: true},
	{name: "made immutable", do: func(s *scene) { freeze(s, ".") }, code: restore.InternalError, phase: execute, quiet: true},
}

// finalizeFaults happen when everything is staged and nothing is moved.
var finalizeFaults = []fault{
	{name: "staged copy removed", on: finalizePhase, only: "single", do: func(s *scene) { must(s.t, os.Remove(s.staged("top.txt"))) },
		code: restore.FinalizeFailed, phase: execute, path: "top.txt"},
	{name: "staging directory removed", on: finalizePhase, do: func(s *scene) { must(s.t, os.RemoveAll(s.staging())) },
		code: restore.FinalizeFailed, phase: execute, path: "existing/f.txt", chainPath: "run-1"},
	{name: "parent removed", on: finalizePhase, only: "single", do: func(s *scene) { must(s.t, os.RemoveAll(s.at("existing"))) },
		code: restore.FinalizeFailed, phase: execute, path: "existing/f.txt", lost: []string{"existing", "existing/keep.txt"}},
	{name: "parent made immutable", on: finalizePhase, only: "single", do: func(s *scene) { freeze(s, "existing") },
		code: restore.FinalizeFailed, phase: execute, path: "existing/f.txt"},
	{name: "empty directory in the way", on: finalizePhase, only: "single", do: func(s *scene) { must(s.t, os.Mkdir(s.at("new"), 0o700)) },
		code: restore.FinalizeFailed, phase: execute, path: "new", foreign: []string{"new"}},
	{name: "run directory in the way", on: finalizePhase, only: "chain", do: func(s *scene) { must(s.t, os.MkdirAll(s.at("run-2/new"), 0o700)) },
		code: restore.FinalizeFailed, phase: execute, path: "new", chainPath: "run-2", foreign: []string{"new"}},
	{name: "directory with something else in the way", on: finalizePhase, do: rival("new/x"),
		code: restore.FinalizeFailed, phase: execute, path: "new", chainPath: "run-2", foreign: []string{"new", "new/x"}},
	// another process made the target
	{name: "target made", on: finalizePhase, do: rival("new/a.txt"),
		code: restore.RollbackFailed, cause: restore.FinalizeFailed, phase: execute, path: "new", chainPath: "run-2", foreign: []string{"new", "new/a.txt"}},
	{name: "target made at the top", on: finalizePhase, only: "single", do: rival("top.txt"),
		code: restore.RollbackFailed, cause: restore.FinalizeFailed, phase: execute, path: "top.txt", foreign: []string{"top.txt"}},
	{name: "root made immutable", on: finalizePhase, do: func(s *scene) { freeze(s, ".") },
		code: restore.RollbackFailed, cause: restore.FinalizeFailed, phase: execute, path: "new", chainPath: "run-1"},
}

// verifyFaults happen when everything is moved and nothing is checked, or
// published.
var verifyFaults = []fault{
	{name: "target removed", on: verifyPhase, do: removeTarget("new/a.txt"), code: restore.OutputMissingAfterRestore, phase: check, path: "new/a.txt"},
	{name: "target at the top removed", on: verifyPhase, do: removeTarget("top.txt"), code: restore.OutputMissingAfterRestore, phase: check, path: "top.txt"},
	{name: "directory removed", on: verifyPhase, do: removeTarget("new"), code: restore.OutputMissingAfterRestore, phase: check, path: "new/a.txt"},
	{name: "target overwritten", on: verifyPhase, do: overwrite(func(s *scene) string { return s.at(s.target("new/a.txt")) }),
		code: restore.HashMismatchAfterRestore, phase: check, path: "new/a.txt"},
	{name: "staged copy overwritten after its check", on: syncPhase, do: overwrite(func(s *scene) string { return s.staged("new/a.txt") }),
		code: restore.HashMismatchAfterRestore, phase: check, path: "new/a.txt"},
	{name: "staged copy replaced after its check", on: syncPhase, do: func(s *scene) {
		must(s.t, os.Remove(s.staged("new/a.txt")))
		must(s.t, os.WriteFile(s.staged("new/a.txt"), []byte("rival"), 0o600))
	}, code: restore.RollbackFailed, cause: restore.HashMismatchAfterRestore, phase: check, path: "new/a.txt", foreign: []string{"new", "new/a.txt"}},
	// something foreign where ours was, or beside it
	{name: "target replaced", on: verifyPhase, do: instead("new/a.txt"),
		code: restore.RollbackFailed, cause: restore.HashMismatchAfterRestore, phase: check, path: "new/a.txt", foreign: []string{"new", "new/a.txt"}},
	{name: "target replaced by a FIFO", on: verifyPhase, do: func(s *scene) {
		removeTarget("top.txt")(s)
		must(s.t, harness.FIFO(s.at(s.target("top.txt"))))
	}, code: restore.RollbackFailed, cause: restore.HashMismatchAfterRestore, phase: check, path: "top.txt", foreign: []string{"top.txt"}},
	{name: "target replaced by a link out", on: verifyPhase, do: func(s *scene) {
		removeTarget("top.txt")(s)
		must(s.t, os.Symlink(s.source("top.txt"), s.at(s.target("top.txt"))))
	}, code: restore.RollbackFailed, cause: restore.HashMismatchAfterRestore, phase: check, path: "top.txt", foreign: []string{"top.txt"}},
	{name: "target removed, something foreign beside it", on: verifyPhase, do: both(removeTarget("new/a.txt"), rival("new/sub/x")),
		code: restore.RollbackFailed, cause: restore.OutputMissingAfterRestore, phase: check, path: "new/a.txt", foreign: []string{"new", "new/sub", "new/sub/x"}},
}

// publishFaults happen when everything is checked and no artifact is written.
var publishFaults = []fault{
	{name: "directory of an artifact removed", on: publishPhase, only: "chain", do: func(s *scene) { must(s.t, os.RemoveAll(s.at("run-2"))) },
		code: restore.ResultArtifactWriteFailed, phase: check, path: restore.ManifestName},
	{name: "manifest made", on: publishPhase, do: rival(restore.ManifestName),
		code: restore.RollbackFailed, cause: restore.ResultArtifactWriteFailed, phase: check, path: restore.ManifestName, foreign: []string{restore.ManifestName}},
	{name: "report made", on: publishPhase, do: rival(restore.ReportName),
		code: restore.RollbackFailed, cause: restore.ResultArtifactWriteFailed, phase: check, path: restore.ReportName, foreign: []string{restore.ReportName}},
	{name: "report made as a directory", on: publishPhase, do: func(s *scene) { must(s.t, os.Mkdir(s.at(s.target(restore.ReportName)), 0o755)) },
		code: restore.RollbackFailed, cause: restore.ResultArtifactWriteFailed, phase: check, path: restore.ReportName, foreign: []string{restore.ReportName}},
}

func faults() (all []fault) {
	for _, group := range [][]fault{sourceFaults, rootFaults, finalizeFaults, verifyFaults, publishFaults} {
		all = append(all, group...)
	}
	return all
}

// freeze makes a directory beneath the root immutable.
func freeze(s *scene, path string) {
	harness.SetImmutable(s.t, s.at(path), true)
	s.undo(func() { harness.SetImmutable(s.t, s.at(path), false) })
}
