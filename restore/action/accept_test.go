package action_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
)

// usedBy is a [preview.Ledger] with an answer of the test.
type usedBy struct {
	answer error
	used   int
}

func (l *usedBy) Use(string) error {
	l.used++
	return l.answer
}

// TestAccept: the lock of the root is taken before the preview is used up, and what keeps either from
// it has the code of its own cause: only a fault of the program or the machine is INTERNAL_ERROR.
func TestAccept(t *testing.T) {
	errLedger := errors.New("the ledger cannot be written")
	internal := func(err error) bool {
		f, is := errors.AsType[*restore.Failure](err)
		return is && f.Code == restore.InternalError && f.Phase == restore.Execute
	}
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) && !internal(err) }
	}
	for name, test := range map[string]struct {
		answer  error                                     // of the ledger
		before  func(*testing.T, *restoretest.Scene)      // before the plan
		between func(t *testing.T, root string)           // after the root was entered
		plan    func(*restoretest.Scene) *restore.Restore // in place of the approved one
		want    func(error) bool
		uses    int
		locks   bool
	}{
		"accepted":        {want: func(err error) bool { return err == nil }, uses: 1, locks: true},
		"used before":     {answer: fs.ErrExist, want: is(preview.ErrUsed), uses: 1, locks: true},
		"ledger":          {answer: errLedger, want: internal, uses: 1, locks: true},
		"ledger, blocked": {answer: errLedger, before: blocks, want: is(errLedger), uses: 1},
		"another root": {want: func(err error) bool {
			f, is := errors.AsType[*restore.Failure](err)
			return is && f.Code == restore.InternalError && f.Phase == restore.Preflight
		}, plan: func(s *restoretest.Scene) *restore.Restore {
			s.RestoreRoot = s.T.TempDir()
			return s.Restore()
		}},
		"overtaken": {want: is(preview.ErrStale), locks: true, between: func(t *testing.T, root string) {
			must(t, os.Mkdir(root+"/.spectrum06_staging_6b6b6b6b-0000-4000-8000-000000000000", 0o700))
		}},
		"busy": {want: is(pathsafe.ErrLocked), locks: true, between: func(t *testing.T, root string) {
			other, _, err := action.Enter(t.Context(), root, action.Entry{Key: restoretest.JournalKey})
			must(t, err)
			t.Cleanup(other.Leave)
			must(t, other.Hold(t.Context()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := restoretest.NewScene(t)
			if test.before != nil {
				test.before(t, s)
			}
			r := s.Restore()
			p, err := preview.New(t.Context(), r, s.Request())
			must(t, err)
			approval, err := restoretest.ApproveRecord(restoretest.Kept(t, p), p, preview.Exactly)
			must(t, err)
			in, _, err := action.Enter(t.Context(), s.RestoreRoot, action.Entry{Key: restoretest.JournalKey})
			must(t, err)
			defer in.Leave()
			if test.between != nil {
				test.between(t, s.RestoreRoot)
			}
			if test.plan != nil {
				r = test.plan(s)
			}
			l := &usedBy{answer: test.answer}
			approved, err := in.Accept(t.Context(), approval, r, l)
			_, unlocked := os.Lstat(filepath.Join(in.Real(), staging.LockName))
			if !test.want(err) || (approved != nil) != (err == nil) || l.used != test.uses || (unlocked == nil) != test.locks {
				t.Errorf("%v, %v; used %d times, lock: %v", approved, err, l.used, unlocked)
			}
		})
	}
}

// blocks puts a file where an output of the scene goes.
func blocks(t *testing.T, s *restoretest.Scene) {
	must(t, os.MkdirAll(s.At("out"), 0o755))
	must(t, os.WriteFile(s.At("out/a.txt"), []byte("in the way"), 0o644))
}
