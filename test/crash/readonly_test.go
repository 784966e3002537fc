//go:build linux

package crash

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestReadOnly turns the root read-only before each call of a commit. That is an
// error which does not go away, also in the rollback; and then it does.
func TestReadOnly(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	sum := sweep(t, sample.Every(t, 19), restoring(harness.Small()), func(t *testing.T, tr *trials, n int) bool {
		s := tr.site(t, n)
		harness.Must(t, unix.Mount(s.Root, s.Root, "", unix.MS_BIND, ""))
		defer func() { harness.Must(t, unix.Unmount(s.Root, unix.MNT_DETACH)) }()
		var turned error
		var at sysfault.Call
		r := s.Commit(t, &sysfault.Plan{N: n, Match: s.Beneath(harness.Changing), Before: func(c sysfault.Call) {
			at, turned = c, harness.SetReadOnly(s.Root, true)
		}})
		if r.Fault.Fired == 0 {
			return false
		}
		switch {
		case errors.Is(turned, unix.EBUSY): // a file is open for writing
			tr.Add("busy")
		case turned != nil:
			t.Fatal(turned)
		}
		harness.Must(t, harness.SetReadOnly(s.Root, false))
		err := wellSaid(r, nil)
		if r.Answer.Code == harness.RollbackFailed {
			tr.Add("halted")
		} else {
			tr.Add("ended with " + quote(r.Answer.Code))
		}
		again := s.Recover(t, nil)
		state, wrong := s.Recovered(t, harness.Allowed(r, s.ReportSeen())...)
		tr.Add("recovered " + state.String())
		if err := errors.Join(err, wrong); err != nil || again.Status != 0 {
			t.Errorf("read-only before %s\n%v\n%v\n%v", s.Describe(at), r, again, err)
		}
		return true
	})
	sum.Demand(t, "halted", "recovered before", "recovered after")
}
