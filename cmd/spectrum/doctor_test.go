package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/preview"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestDoctorVerdict: nothing but mounting is 69, anything else is 1, warnings are 0.
func TestDoctorVerdict(t *testing.T) {
	bad := doctor.Check{ID: "x", Status: doctor.Fail, Found: "bad", Consequence: "it follows", Remedy: "do this"}
	warned := doctor.Check{ID: "x", Status: doctor.Warn, Found: "so so", Consequence: "it follows", Remedy: "do this"}
	for name, test := range map[string]struct {
		sections []doctor.Section
		status   int
		code     string
	}{
		"well":      {[]doctor.Section{{Checks: []doctor.Check{{ID: "x", Status: doctor.OK, Found: "good"}}}}, statusOK, ""},
		"warned of": {[]doctor.Section{{Checks: []doctor.Check{warned}}, {Mounting: true, Checks: []doctor.Check{warned}}}, statusOK, ""},
		"mounting":  {[]doctor.Section{{Checks: []doctor.Check{warned}}, {Mounting: true, Checks: []doctor.Check{bad}}}, statusUnavailable, "MOUNT_UNAVAILABLE"},
		"restoring": {[]doctor.Section{{Checks: []doctor.Check{bad}}}, statusRejected, string(codeUnfit)},
		"both":      {[]doctor.Section{{Mounting: true, Checks: []doctor.Check{bad}}, {Checks: []doctor.Check{bad}}}, statusRejected, string(codeUnfit)},
	} {
		err := (&examined{&app{}, test.sections}).verdict()
		v := verdictOf(err)
		if v.status != test.status {
			t.Errorf("%s: status %d: %v", name, v.status, err)
		}
		if err == nil {
			continue
		}
		raw := string(v.json(err))
		if !strings.Contains(raw, `"code":"`+test.code+`"`) || !strings.Contains(raw, `"details":{"checks":[{`) || !strings.Contains(raw, `"ok":false`) {
			t.Errorf("%s: %s", name, raw)
		}
		if len(v.hints) != 1 || v.hints[0] != "do this" {
			t.Errorf("%s: %q", name, v.hints)
		}
	}
}

// TestDoctorInterrupted sends Ctrl-C before each call that the doctor makes in a
// directory: it ends, and leaves nothing there.
func TestDoctorInterrupted(t *testing.T) {
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inDir := func(c sysfault.Call) bool { return sysfault.Mutating(c) && strings.Contains(c.Path, machine.Prefix) }
	state := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	argv := []string{program, "doctor", "--state-dir", state, dir}
	run := func(plan sysfault.Plan) sysfault.Result {
		t.Helper()
		r, err := sysfault.Run(t.Context(), plan, argv...)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{dir, state} {
			if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
				t.Fatalf("%v, left in %q: %v\n%s", err, path, entries, r.Stderr)
			}
		}
		return r
	}
	const stride = 9
	calls := run(sysfault.Plan{Match: inDir}).Calls
	if calls < 4*stride {
		t.Fatalf("%d calls: this test no longer finds them", calls)
	}
	tried, interrupted := tier.Every(t, stride), 0
	for i := 0; tried.At(i) <= calls; i++ {
		n := tried.At(i)
		r := run(sysfault.Plan{Match: inDir, N: n, Before: func(c sysfault.Call) { _ = syscall.Kill(c.Tid, syscall.SIGINT) }})
		switch r.Status {
		case statusInterrupted:
			interrupted++
		case statusOK: // it was done
		default:
			t.Errorf("call %d: status %d: %s", n, r.Status, r.Stderr)
		}
	}
	if least := tier.Of(1, calls/10, calls/10); interrupted < least {
		t.Errorf("%d of %d calls were interrupted", interrupted, calls)
	}
}

// TestDoctorWithoutCalls: a kernel that lacks a call is found out by the program.
func TestDoctorWithoutCalls(t *testing.T) {
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		errno  syscall.Errno
		id     string
		want   doctor.Health
		status int
	}{
		"openat2":   {unix.ENOSYS, "openat2", doctor.Warn, statusOK},
		"renameat2": {unix.EINVAL, "rename-noreplace", doctor.Fail, statusRejected},
		"syncfs":    {unix.ENOSYS, "syncfs", doctor.Fail, statusRejected},
		"fsync":     {unix.EIO, "fsync", doctor.Fail, statusRejected},
		"flock":     {unix.EBADF, "lock", doctor.Fail, statusRejected},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			plan := sysfault.Plan{N: 1, Onward: true, Errno: test.errno, Match: func(c sysfault.Call) bool { return c.Name == name }}
			r, err := sysfault.Run(t.Context(), plan, program, "doctor", "--state-dir", filepath.Join(dir, "state"), dir)
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("  %-7s %-16s ", test.want, test.id)
			if r.Status != test.status || r.Fired == 0 || !strings.Contains(string(r.Stdout), line) {
				t.Errorf("status %d, %d calls failed, no %q in\n%s%s", r.Status, r.Fired, line, r.Stdout, r.Stderr)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("%v, left: %v", err, entries)
			}
		})
	}
}

// TestLackLeadsToDoctor: a commit that the file system cannot carry out says where
// to look.
func TestLackLeadsToDoctor(t *testing.T) {
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	id := strings.TrimSpace(must(t, "preview", "-q", "--state-dir", state, "--restore-root", root, run.Dir))
	plan := sysfault.Plan{N: 1, Onward: true, Errno: unix.EINVAL, Match: func(c sysfault.Call) bool {
		return c.Name == "renameat2" && strings.Contains(c.Path, "spectrum06")
	}}
	r, err := sysfault.Run(t.Context(), plan, program, "commit", "--state-dir", state, "--preview", id, "--approve", preview.Exactly)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != statusMachine || r.Fired == 0 || !strings.Contains(string(r.Stderr), "\nhint: \"spectrum --state-dir "+state+" doctor RESTORE_ROOT\" shows what its file system lacks\n") {
		t.Errorf("status %d, %d calls failed: %s", r.Status, r.Fired, r.Stderr)
	}
}
