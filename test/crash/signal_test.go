package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestSignals sends signals at random times to a commit of 16 MiB.
func TestSignals(t *testing.T) { signals(t, harness.MemoryDir(t), sample.Of(4, 50, 50), 16, 1<<20) }

func TestLongSignals(t *testing.T) {
	sample.Need(t, sample.Long)
	t.Run("64 MiB", func(t *testing.T) { signals(t, t.TempDir(), 1000, 64, 1<<20) })
	t.Run("1 GiB", func(t *testing.T) { signals(t, t.TempDir(), 50, 64, 16<<20) })
}

// signals sends a signal to each of so many commits, of so many files of this
// size.
func signals(t *testing.T, dir string, trials, files, size int) {
	t.Helper()
	f := harness.Single()
	block := strings.Repeat("0123456789abcdef", size/16)
	for i := range files {
		f["big/"+string(rune('a'+i/26))+string(rune('a'+i%26))] = block
	}
	tr := newTrials(t, dir, f)
	s := tr.site(t, "whole")
	began := time.Now()
	if r := s.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	whole := time.Since(began)
	s.Remove(t)
	dice := sample.Rand(t)
	for n := range trials {
		sig := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}[n%4]
		after := time.Duration(dice.Int64N(int64(whole)))
		if tr.signalled(t, tr.site(t, n), sig, after) == 0 {
			whole = (whole + after) / 2 // too late: the commit is faster than thought
		}
		if t.Failed() {
			return
		}
	}
	tr.Demand(t, "killed", "interrupted", "recovered before")
}

// signalled commits, sends a signal after a while, and recovers. It returns the
// status of the commit.
func (tr *trials) signalled(t *testing.T, s *harness.Site, sig syscall.Signal, after time.Duration) int {
	t.Helper()
	id := s.Preview(t)
	r := tr.send(t, sig, after, harness.CommitArgs(id)...)
	seen := s.ReportSeen()
	var errs []error
	switch {
	case r.Status < 0:
		tr.Add("killed")
	case r.Status == 130:
		// It had the time to tidy up, so nothing is left to recover.
		tr.Add("interrupted")
		_, err := s.Check(harness.Before)
		errs = append(errs, err)
	case r.Status == 0:
		tr.Add("too late")
		_, err := s.Check(harness.After)
		errs = append(errs, err)
	default:
		errs = append(errs, errors.New("an exit status that does not fit"))
	}
	again := s.Recover(t, nil)
	if again.Status != 0 {
		errs = append(errs, errors.New(again.String()))
	}
	state, err := s.Recovered(t, harness.Allowed(r, seen)...)
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Errorf("%v after %v: %v\n%v", sig, after, r, err)
		return r.Status
	}
	tr.Add("recovered " + state.String())
	s.Remove(t)
	return r.Status
}

// send runs a command and sends it a signal after a while. The status of one
// that the signal killed is -1.
func (tr *trials) send(t *testing.T, sig syscall.Signal, after time.Duration, args ...string) harness.Reply {
	t.Helper()
	argv := tr.Argv(args...)
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	harness.Must(t, cmd.Start())
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(sig) })
	defer timer.Stop()
	hung := time.AfterFunc(after+harness.Patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	r := harness.Reply{Args: args, Status: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
	if !hung.Stop() {
		t.Fatalf("%v after %v: it hangs: %v", sig, after, r)
	}
	_ = json.Unmarshal(stdout.Bytes(), &r.Answer)
	return r
}
