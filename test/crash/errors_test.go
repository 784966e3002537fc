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
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// errnos are what a call can fail with. EINTR is for one call only: who asks
// again without end must be answered at last.
var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EROFS,
	syscall.EMFILE, syscall.ENOMEM, syscall.ELOOP}

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

// others are the answers that no law knows: the commit did not begin.
var others = []string{"REFUSED", "INTERNAL_ERROR", "APPROVAL_STALE", "SAVEPOINT_INVALID"}

// A fault is an error, once or from a call on.
type fault struct {
	errno  syscall.Errno
	onward bool
}

func (f fault) String() string {
	if f.onward {
		return fmt.Sprintf("%q from there on", f.errno.Error())
	}
	return fmt.Sprintf("%q once", f.errno.Error())
}

// some are three faults for call n, others for each n.
func some(n int) []fault {
	list := []fault{{errnos[n%len(errnos)], false}, {errnos[(n+n/8+3)%len(errnos)], true}}
	if n%2 == 0 {
		list = append(list, fault{syscall.EINTR, false})
	}
	return list
}

// all are all faults, for any call.
func all(int) []fault {
	list := []fault{{syscall.EINTR, false}}
	for _, errno := range errnos {
		list = append(list, fault{errno, false}, fault{errno, true})
	}
	return list
}

func TestErrorsSmall(t *testing.T) {
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Small()), 5, sysfault.Mutating, some)
}

func TestErrorsChain(t *testing.T) {
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Chain(2, 2)...), 17, sysfault.Mutating, some)
}

// TestErrorsReading also fails the calls that only look.
func TestErrorsReading(t *testing.T) {
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Small()), 29, anything, some)
}

// TestErrorsLooking fails the calls that look whether a name is free. That they
// fail does not mean that it is taken.
func TestErrorsLooking(t *testing.T) {
	looking := func(c sysfault.Call) bool {
		return (c.Name == "statx" || c.Name == "newfstatat") && !strings.Contains(c.Path, ".spectrum06_")
	}
	for name, runs := range map[string][]harness.Files{"single": {harness.Small()}, "chain": harness.Chain(2, 2)} {
		t.Run(name, func(t *testing.T) {
			failEverywhere(t, newStage(t, harness.MemoryDir(t), runs...), 3, looking, func(int) []fault {
				return []fault{{syscall.EIO, false}, {syscall.EACCES, false}}
			})
		})
	}
}

func TestLongErrors(t *testing.T) {
	needLong(t)
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Small()), 1, anything, all)
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Single()), 1, sysfault.Mutating, all)
	failEverywhere(t, newStage(t, harness.MemoryDir(t), harness.Chain(2, 2)...), 1, sysfault.Mutating, all)
}

// failEverywhere fails every stride-th of the calls that match, with each of the
// faults that choose names.
func failEverywhere(t *testing.T, st *stage, stride int, match func(sysfault.Call) bool, choose func(n int) []fault) {
	t.Helper()
	sweep(t, func(t *testing.T, i int) bool {
		n := i * stride
		for _, f := range choose(n) {
			s := st.site(t, n, int(f.errno), f.onward)
			var hits []sysfault.Call
			plan := &sysfault.Plan{N: n, Onward: f.onward, Errno: f.errno, Match: beneath(s, match), Before: func(c sysfault.Call) {
				hits = append(hits, c)
			}}
			stamp, err := harness.Stamp(s.Root)
			harness.Must(t, err)
			r := s.Commit(t, plan)
			if r.Fault.Fired == 0 {
				return false
			}
			if phase := r.Answer.Phase; phase != "EXECUTE" && phase != "VERIFY" {
				st.add("refused")
				err = s.Refused(stamp)
			}
			if err := errors.Join(wellSaid(r, hits), err, st.afterError(t, s, r, f)); err != nil {
				t.Errorf("%v: %s\n%v\n%v", f, describe(s, hits[0]), r, err)
				continue
			}
			st.add("runs")
			s.Remove(t)
		}
		return true
	})
	st.want(t, "runs", "failed")
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
	case a.Code == "RESTORE_INTERNAL_ERROR":
		status = []int{70}
	case slices.Contains(codes, a.Code):
		status = []int{1}
	case a.Code == "ROOT_HALTED": // an attempt that cannot be read is in the way
		status = []int{3}
	case a.Code == "INTERNAL_ERROR":
		status = []int{70}
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

// names says whether a text names what a call was about: the file itself, or
// the thing of the attempt that it is a part of.
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
func (st *stage) afterError(t *testing.T, s *harness.Site, r harness.Reply, f fault) error {
	t.Helper()
	halted := r.Answer.Code == harness.RollbackFailed
	switch {
	case halted && !f.onward:
		return errors.New("the rollback failed, though nothing failed in it")
	case halted:
		st.add("halted")
		// It is halted, or where not even that could be written down, the next
		// command recovers.
		if s.Halted(t) != nil {
			if _, err := s.Check(harness.Before, harness.After); err != nil {
				return fmt.Errorf("neither halted nor recovered: %w", err)
			}
			st.add("halt not written down")
		}
	case r.Status != 0:
		st.add("failed")
		if _, err := s.Check(harness.Before); err != nil {
			return err
		}
	default:
		st.add("succeeded")
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
