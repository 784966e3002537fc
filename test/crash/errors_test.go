package crash

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// codes are those of section 8.3 of the law that a commit can end with when a
// call fails. That something exists already is none of them.
var codes = []string{
	"RESTORE_VERIFY_STRICT_FAILED", "RESTORE_PROOF_MISSING", "RESTORE_OUTPUT_HASHES_MISSING",
	"RESTORE_TARGET_NOT_EXIST", "RESTORE_TARGET_NOT_DIRECTORY", "RESTORE_TARGET_NOT_WRITABLE",
	"RESTORE_SYMLINK_ESCAPE_DETECTED", "RESTORE_SOURCE_MISSING", "RESTORE_SOURCE_NOT_REGULAR_FILE",
	"RESTORE_STAGING_HASH_MISMATCH",
	"RESTORE_FINALIZE_FAILED", "RESTORE_OUTPUT_MISSING_AFTER_RESTORE", "RESTORE_HASH_MISMATCH_AFTER_RESTORE",
	"RESTORE_RESULT_ARTIFACT_WRITE_FAILED", harness.RollbackFailed, "RESTORE_INTERNAL_ERROR",
}

// others are the answers that no law knows: the commit did not begin, or recover has ended all and names damage.
var others = []string{"REFUSED", "MACHINE_FAULT", "APPROVAL_STALE", "SAVEPOINT_INVALID", "STATE_DAMAGED"}

func TestErrorsSmall(t *testing.T) {
	failEverywhere(t, restoring(harness.Small()), sample.Thin(t, 29, 5), sysfault.Mutating, rotating(1))
}

func TestErrorsChain(t *testing.T) {
	failEverywhere(t, restoring(harness.Chain(2, 2)...), sample.Thin(t, 61, 7), sysfault.Mutating, rotating(1))
}

// TestErrorsReading fails calls that only look; of these a sweep tries one of five.
func TestErrorsReading(t *testing.T) {
	failEverywhere(t, restoring(harness.Small()), sample.Thin(t, 47, 23), func(c sysfault.Call) bool { return !sysfault.Mutating(c) }, rotating(1))
}

// TestErrorsLooking fails the calls that look whether a name is free. That they
// fail does not mean that it is taken.
func TestErrorsLooking(t *testing.T) {
	looking := func(c sysfault.Call) bool {
		return (c.Name == "statx" || c.Name == "newfstatat") && !strings.Contains(c.Path, ".spectrum06_")
	}
	for name, runs := range map[string][]harness.Files{"single": {harness.Small()}, "chain": harness.Chain(2, 2)} {
		t.Run(name, func(t *testing.T) {
			failEverywhere(t, restoring(runs...), sample.Thin(t, 41, 23), looking, func(int) []harness.Fault {
				return []harness.Fault{{Errno: syscall.EIO}, {Errno: syscall.EACCES}}
			})
		})
	}
}

func TestLongErrors(t *testing.T) {
	sample.Need(t, sample.Long)
	all := func(int) []harness.Fault { return harness.AllFaults() }
	failEverywhere(t, restoring(harness.Small()), sample.All, harness.Anything, all)
	failEverywhere(t, restoring(harness.Single()), sample.All, sysfault.Mutating, all)
	failEverywhere(t, restoring(harness.Chain(2, 2)...), sample.All, sysfault.Mutating, all)
}

// rotating chooses so many kinds of faults for each call, others for the next.
func rotating(kinds int) func(n int) []harness.Fault {
	return func(n int) []harness.Fault { return harness.FaultsAt(n, kinds) }
}

// failEverywhere fails the calls of a stride that match, each with the faults that choose
// names.
func failEverywhere(t *testing.T, made maker, stride sample.Stride, match func(sysfault.Call) bool, choose func(n int) []harness.Fault) {
	t.Helper()
	sum := sweep(t, stride, made, func(t *testing.T, tr *trials, n int) bool {
		for _, f := range choose(n) {
			s := tr.site(t, n, int(f.Errno), f.Onward)
			var hits []sysfault.Call
			plan := &sysfault.Plan{N: n, Onward: f.Onward, Errno: f.Errno, Match: s.Beneath(match), Before: func(c sysfault.Call) {
				hits = append(hits, c)
			}}
			stamp, err := harness.Stamp(s.Root)
			harness.Must(t, err)
			r := s.Commit(t, plan)
			if r.Fault.Fired == 0 {
				return false
			}
			if phase := r.Answer.Phase; phase != "EXECUTE" && phase != "VERIFY" {
				tr.Add("refused")
				err = s.Refused(stamp)
			}
			if err := errors.Join(wellSaid(r, hits), err, tr.afterError(t, s, r, f)); err != nil {
				t.Errorf("%v: %s\n%v\n%v", f, s.Describe(hits[0]), r, err)
				continue
			}
			tr.Add("runs")
			s.Remove(t)
		}
		return true
	})
	sum.Demand(t, "runs", "failed")
}

// wellSaid checks how a command ended: in time, without a panic, with one code,
// the status that belongs to it, and the name of what failed.
func wellSaid(r harness.Reply, hits []sysfault.Call) error {
	a := r.Answer
	var errs []error
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Hung {
		complain("it hangs")
	}
	if strings.Contains(r.Stderr, "panic") || strings.Contains(r.Stderr, "goroutine ") {
		complain("it panics")
	}
	var status []int
	switch {
	case a.OK:
		status = []int{0}
	case a.Code == harness.RollbackFailed:
		status = []int{3}
		if !slices.Contains(codes, a.Cause) {
			complain("the cause is %q", a.Cause)
		}
	case a.Code == "ROOT_LOCKED" && slices.ContainsFunc(hits, func(c sysfault.Call) bool { return filepath.Base(c.Path) == harness.Lock }):
		status = []int{1} // the error is the answer for a link, or of what others may not open, in its place
	case a.Code == "RESTORE_INTERNAL_ERROR", a.Code == "MACHINE_FAULT":
		status = []int{74}
	case slices.Contains(codes, a.Code) && (a.Phase == "EXECUTE" || a.Phase == "VERIFY"):
		status = []int{1, 74}
	case a.Code == "RESTORE_TARGET_NOT_WRITABLE": // no right to write, or a read-only file system
		status = []int{1, 74}
	case slices.Contains(codes, a.Code):
		status = []int{1}
	case a.Code == "ROOT_HALTED": // an attempt that cannot be read is in the way
		status = []int{3}
	case slices.Contains(others, a.Code):
		status = []int{1, 4}
	default:
		complain("%q is no code", a.Code)
	}
	if !slices.Contains(status, r.Status) {
		complain("exit %d for %q", r.Status, a.Code)
	}
	if a.Cause != "" && a.Code != harness.RollbackFailed {
		complain("cause %q of %q", a.Cause, a.Code)
	}
	if !a.OK && len(hits) > 0 && !slices.ContainsFunc(hits, func(c sysfault.Call) bool { return names(r.Stderr, c) }) {
		complain("nothing on stderr names %q", hits[0].Path)
	}
	return errors.Join(errs...)
}

// holdName is where an attempt keeps its artifacts, by their numbers.
const holdName = ".spectrum06_artifacts"

// names reports whether a text names what a call was about: the file itself, or the thing of the
// attempt that it is a part of.
func names(text string, c sysfault.Call) bool {
	for _, path := range []string{c.Path, c.To} {
		base := filepath.Base(strings.TrimSuffix(path, " (deleted)"))
		switch {
		case strings.HasPrefix(base, "#"): // by its inode number
			base = "unnamed file"
		case filepath.Base(filepath.Dir(path)) == holdName && !strings.Contains(text, holdName):
			base = "RESTORE_"
		case strings.HasPrefix(base, ".spectrum06_"):
			base = ".spectrum06_"
		}
		if path != "" && strings.Contains(text, base) {
			return true
		}
	}
	return false
}

// afterError checks the root after a commit with a fault, and recovers.
func (tr *trials) afterError(t *testing.T, s *harness.Site, r harness.Reply, f harness.Fault) error {
	t.Helper()
	halted := r.Answer.Code == harness.RollbackFailed
	switch {
	case halted && !f.Onward:
		return errors.New("the rollback failed, though nothing failed in it")
	case halted:
		tr.Add("halted")
		// It is halted, or where not even that could be written down, the next
		// command recovers.
		if s.Halted(t) != nil {
			if _, err := s.Check(harness.Before, harness.After); err != nil {
				return fmt.Errorf("neither halted nor recovered: %w", err)
			}
			tr.Add("halt not written down")
		}
	case r.Status != 0:
		tr.Add("failed")
		if _, err := s.Check(harness.Before); err != nil {
			return err
		}
	default:
		tr.Add("succeeded")
		if _, err := s.Check(harness.After); err != nil && !strings.Contains(r.Stderr, "could not be removed") {
			return err
		}
	}
	if again := s.Recover(t, nil); again.Status != 0 {
		return fmt.Errorf("recover: %v", again)
	}
	_, err := s.Recovered(t, harness.Allowed(r, s.ReportSeen())...)
	return err
}
