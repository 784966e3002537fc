package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// rolledBackNow runs "rolledback ROOT BUNDLE_ROOT...": it does what a rollback
// does when it is complete.
func rolledBackNow() {
	app := &app{stdout: os.Stdout, stderr: os.Stderr}
	state, err := app.openState()
	if err == nil {
		r := view.Revoke(context.Background(), state, view.RolledBack{Root: os.Args[1], BundleRoots: os.Args[2:]})
		app.tellRevoked(&r)
		err = r.Err
	}
	os.Exit(app.finish(err))
}

// uniqueRun seals a run that no other test has: what is revoked is looked for on
// the whole machine.
func uniqueRun(t *testing.T) *bundletest.Run {
	t.Helper()
	return bundletest.New(t).Run("run-1", map[string]string{"a": t.TempDir(), "d/b": strings.Repeat("beta", 1<<18)})
}

// revokeNow does what a rollback does when it is complete.
func revokeNow(t *testing.T, of view.RolledBack) view.Revocation {
	t.Helper()
	state, err := statedir.Open(filepath.Join(stateHome(t), "spectrum"))
	check(t, err)
	defer state.Close()
	r := view.Revoke(t.Context(), state, of)
	if r.Err != nil {
		t.Error(r.Err)
	}
	return r
}

// leftOf is why a view was not detached.
func leftOf(r *view.Revocation, dir string) error {
	for _, left := range r.Left {
		if left.Mountpoint == dir {
			return left.Err
		}
	}
	return nil
}

// isDisconnected reports whether an error is what readers of a revoked view get.
func isDisconnected(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOTCONN) || errors.Is(err, syscall.ECONNABORTED)
}

// holder has a file of a view open, has read all of it, and has it in memory too.
type holder struct {
	t    *testing.T
	file *os.File
	dir  *os.File
	mem  []byte
}

func hold(t *testing.T, dir, name string) *holder {
	t.Helper()
	h := &holder{t: t}
	var err error
	h.file, err = os.Open(filepath.Join(dir, name))
	check(t, err)
	h.dir, err = os.Open(dir)
	check(t, err)
	info, err := h.file.Stat()
	check(t, err)
	h.mem, err = unix.Mmap(int(h.file.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	check(t, err)
	t.Cleanup(func() {
		_ = errors.Join(unix.Munmap(h.mem), h.file.Close(), h.dir.Close())
	})
	for _, err := range h.errors() {
		check(t, err)
	}
	return h
}

// errors are those of each way to read: the file, its memory, its attributes, its
// directory.
func (h *holder) errors() []error {
	_, readErr := h.file.ReadAt(make([]byte, 5), 0)
	_, statErr := h.file.Stat()
	_, _ = h.dir.Seek(0, io.SeekStart)
	_, listErr := h.dir.Readdirnames(-1)
	return []error{readErr, touch(h.mem), statErr, listErr}
}

var touched byte // or nothing would be read

// touch reads memory; a page that cannot be had is an I/O error.
func touch(mem []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%v: %w", what, syscall.EIO)
		}
	}()
	for i := 0; i < len(mem); i += os.Getpagesize() {
		touched += mem[i]
	}
	return nil
}

// checkCutOff requires errors in place of everything that was read before.
func (h *holder) checkCutOff() {
	h.t.Helper()
	for i, err := range h.errors() {
		if !isDisconnected(err) {
			h.t.Errorf("way %d to read: %v", i, err)
		}
	}
}

// TestRollbackRevokesViews: by bundle and by restore root; alone, in a chain, and
// on a volume set. Who holds it gets errors, also for what was read before.
func TestRollbackRevokesViews(t *testing.T) {
	for _, test := range []struct {
		name string
		args func(run, root string) []string
		file string
		of   func(run *bundletest.Run, root string) view.RolledBack
	}{
		{"bundle", func(run, _ string) []string { return []string{run} }, "d/b", ofBundle},
		{"chain", func(run, _ string) []string { return []string{"--chain", run} }, "run-1/d/b", ofBundle},
		{"volume set", func(run, _ string) []string { return []string{"--all", filepath.Dir(run)} }, "run-1/d/b", ofBundle},
		{"root", func(run, root string) []string { return []string{"--restore-root", root, run} }, "d/b", ofRoot},
		{"root by a link", func(run, root string) []string { return []string{"--restore-root", linkTo(t, root), run} }, "d/b", ofRoot},
	} {
		t.Run(test.name, func(t *testing.T) {
			run, root := uniqueRun(t), t.TempDir()
			other := startView(t, uniqueRun(t).Dir)
			v := startView(t, test.args(run.Dir, root)...)
			h := hold(t, v.dir, test.file)
			r := revokeNow(t, test.of(run, root))
			if !slices.Contains(r.Detached, v.dir) || slices.Contains(r.Detached, other.dir) {
				t.Fatalf("%+v", r)
			}
			if isMounted(t, v.dir) {
				t.Error("it is still mounted")
			}
			h.checkCutOff()
			v.checkRevoked()
			if _, err := os.ReadFile(filepath.Join(other.dir, "a")); err != nil || other.status().RolledBack {
				t.Errorf("the other view: %v, %+v", err, other.status())
			}
		})
	}
}

func ofBundle(run *bundletest.Run, _ string) view.RolledBack {
	return view.RolledBack{Root: "/nowhere", BundleRoots: []string{run.BundleRoot()}}
}

func ofRoot(_ *bundletest.Run, root string) view.RolledBack { return view.RolledBack{Root: root} }

func linkTo(t *testing.T, dir string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(dir, link))
	return link
}

// checkRevoked requires the process of the view to end and to report why, and nothing else.
func (v *mounted) checkRevoked() {
	v.t.Helper()
	err := <-v.done
	v.done <- nil
	var exit *exec.ExitError
	if !asExit(err, &exit) || exit.ExitCode() != statusPolicy {
		v.t.Errorf("it ended with %v", err)
	}
	if said := v.said.String(); strings.Count(said, "spectrum: the view was revoked: what it shows was rolled back\n") != 1 {
		v.t.Errorf("it said %s", said)
	}
}

// TestNewViewSaysRolledBack: that there was a rollback, in a member of
// status.json, from then on; also of a view that was not detached.
func TestNewViewSaysRolledBack(t *testing.T) {
	run, root := uniqueRun(t), t.TempDir()
	before := startView(t, run.Dir)
	if before.status().RolledBack {
		t.Error("before")
	}
	all := startView(t, "--all", filepath.Dir(run.Dir))
	state, err := statedir.Open(filepath.Join(stateHome(t), "spectrum"))
	check(t, err)
	defer state.Close()
	check(t, state.MarkRolledBack(root, []string{run.BundleRoot()}))
	for _, v := range []*mounted{before, startView(t, run.Dir), startView(t, "--chain", run.Dir), startView(t, "--restore-root", root, uniqueRun(t).Dir)} {
		if !v.status().RolledBack {
			t.Errorf("%+v", v.status())
		}
	}
	if all.status().RolledBack {
		t.Error("the run has not been entered")
	}
	_, err = os.ReadFile(filepath.Join(all.dir, "run-1/a"))
	check(t, err)
	if s := all.status(); !s.RolledBack || s.Runs["run-1"].(map[string]any)["rolled_back"] != true {
		t.Errorf("%+v", s)
	}
	check(t, os.Chmod(state.Path(), 0o755))
	if v := startView(t, uniqueRun(t).Dir); !v.status().RolledBack {
		t.Error("marks that cannot be trusted say that nothing has happened")
	}
	check(t, os.Chmod(state.Path(), 0o700))
}

// TestStoppedViewBlocksNothing: it cannot be asked what it shows, so it stays, and
// is reported; the others are detached meanwhile. It is not run beside other tests that
// ask all views: what a view has answered before, the kernel keeps, and a stopped view
// that is known to show the bundle is cut off.
func TestStoppedViewBlocksNothing(t *testing.T) {
	run := uniqueRun(t)
	stopped, alive := startView(t, run.Dir), startView(t, run.Dir)
	harness.Freeze(t, stopped.cmd.Process.Pid)
	resume := func() { _ = stopped.cmd.Process.Signal(syscall.SIGCONT) }
	t.Cleanup(resume)
	r := revokeNow(t, ofBundle(run, ""))
	if !slices.Contains(r.Detached, alive.dir) || slices.Contains(r.Detached, stopped.dir) {
		t.Fatalf("%+v", r)
	}
	alive.checkRevoked()
	if err := leftOf(&r, stopped.dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stopped view: %v", err)
	}
	resume()
	harness.Eventually(t, "it answers again", func() bool { s, err := stopped.readStatus(); return err == nil && s.RolledBack })
}

// TestStoppedViewIsCutOff: one that is known to show it, and does not obey, is
// ended from outside.
func TestStoppedViewIsCutOff(t *testing.T) {
	t.Parallel()
	run := uniqueRun(t)
	v := startView(t, run.Dir)
	keepInMemory(t, v.control("shown.json"))
	v.status()
	file, err := os.Open(filepath.Join(v.dir, "a"))
	check(t, err)
	defer file.Close()
	harness.Freeze(t, v.cmd.Process.Pid)
	t.Cleanup(func() { _ = v.cmd.Process.Signal(syscall.SIGCONT) })
	state, err := statedir.Open(filepath.Join(stateHome(t), "spectrum"))
	check(t, err)
	defer state.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // enough to ask what it shows, also on a busy machine
	defer cancel()
	r := view.Revoke(ctx, state, ofBundle(run, ""))
	if !slices.Contains(r.Detached, v.dir) || isMounted(t, v.dir) {
		t.Fatalf("%+v, mounted %v", r, isMounted(t, v.dir)) // a read would never be answered
	}
	if _, err := file.Read(make([]byte, 1)); !isDisconnected(err) {
		t.Errorf("read: %v", err)
	}
	check(t, v.cmd.Process.Signal(syscall.SIGCONT))
	if err := <-v.done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	v.done <- nil
}

// keepInMemory has the kernel keep a file that it has read, whatever other tests do to its
// caches: one that is open and mapped.
func keepInMemory(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	t.Cleanup(func() { _ = f.Close() })
	st, err := f.Stat()
	check(t, err)
	pages, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_POPULATE)
	check(t, err)
	t.Cleanup(func() { _ = unix.Munmap(pages) })
	_, err = io.Copy(io.Discard, f)
	check(t, err)
}

// TestDeadViewIsReported: the user that served it cannot be found out.
func TestDeadViewIsReported(t *testing.T) {
	run := uniqueRun(t)
	v := startView(t, run.Dir)
	check(t, v.cmd.Process.Kill())
	if err := <-v.done; err == nil {
		t.Error("it was killed, and ended well")
	}
	v.done <- nil
	r := revokeNow(t, ofBundle(run, ""))
	if err := leftOf(&r, v.dir); !errors.Is(err, fusemount.ErrDeadMount) {
		t.Errorf("%+v", r)
	}
	must(t, "umount", v.dir)
}

// TestDaemonIsRevoked: nothing of it is left, and its log says what it was.
func TestDaemonIsRevoked(t *testing.T) {
	run, dir := uniqueRun(t), t.TempDir()
	unmountAfter(t, dir)
	must(t, "mount", "--daemon", run.Dir, dir)
	h := hold(t, dir, "d/b")
	if r := revokeNow(t, ofBundle(run, "")); !slices.Contains(r.Detached, dir) {
		t.Fatalf("%+v", r)
	}
	h.checkCutOff()
	harness.Eventually(t, "the end of the server", func() bool { return len(background(t)) == 0 })
	log, err := os.ReadFile(filepath.Join(stateHome(t), "spectrum", "view.log"))
	check(t, err)
	if !strings.Contains(string(log), "the view was revoked") {
		t.Errorf("the log: %s", log)
	}
	_, stderr, status := spectrum(t, "preview", "--from-mount", dir)
	if status != statusRejected || !strings.Contains(stderr, "nothing is mounted there\nhint: ") {
		t.Errorf("from the view that is gone: %d %s", status, stderr)
	}
}

// TestPreviewOfARevokedView is approved too late.
func TestPreviewOfARevokedView(t *testing.T) {
	p := propose(t)
	id := p.shownID()
	if r := revokeNow(t, view.RolledBack{Root: p.root}); !slices.Contains(r.Detached, p.dir) {
		t.Fatalf("%+v", r)
	}
	p.checkRevoked()
	p.rejects([][]string{{"commit", "--preview", id, "--approve", "Approved: commit the restore preview exactly as proposed."}}, statusApproval, "APPROVAL_STALE")
	p.rejects([][]string{{"preview", "--from-mount", p.dir}, {"commit", "--from-mount", p.dir}}, statusRejected, "REFUSED")
}

// TestCopiesGoToo: a bind mount of a revoked view does not stay.
func TestCopiesGoToo(t *testing.T) {
	run, bind := uniqueRun(t), t.TempDir()
	v := startView(t, run.Dir)
	check(t, unix.Mount(v.dir, bind, "", unix.MS_BIND, ""))
	defer func() { _ = unix.Unmount(bind, unix.MNT_DETACH) }()
	r := revokeNow(t, ofBundle(run, ""))
	if isMounted(t, v.dir) || isMounted(t, bind) || !slices.Contains(r.Detached, v.dir) {
		t.Fatalf("mounted %v, %v; %+v", isMounted(t, v.dir), isMounted(t, bind), r)
	}
	v.checkRevoked()
}

// TestReadersAtWork reads all the while: there is data or an error, and after the
// view.Revocation errors alone.
func TestReadersAtWork(t *testing.T) {
	run := uniqueRun(t)
	v := startView(t, run.Dir)
	file, err := os.Open(filepath.Join(v.dir, "d/b"))
	check(t, err)
	defer file.Close()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := int64(0); !isClosed(stop); i++ {
			buf := make([]byte, 4)
			if _, err := file.ReadAt(buf, i*4096%(1<<20)); err == nil && string(buf) != "beta" {
				t.Errorf("it read %q", buf)
			}
		}
	}()
	revokeNow(t, ofBundle(run, ""))
	for off := int64(0); off < 1<<20; off += 4096 {
		if _, err := file.ReadAt(make([]byte, 4), off); !isDisconnected(err) {
			t.Fatalf("offset %d: %v", off, err)
		}
	}
	close(stop)
	<-ended
	v.checkRevoked()
}

// TestRevocationTells: one line for each view, and what to do.
func TestRevocationTells(t *testing.T) {
	var said strings.Builder
	r := view.Revocation{Detached: []string{"/a"}, Left: []view.Left{{Mountpoint: "/b", Err: errors.New("x\ny")}}}
	(&app{stderr: &said}).tellRevoked(&r)
	want := "detached the view on \"/a\"\n" +
		"spectrum: the view on \"/b\" may show what was rolled back, and was not detached: x\\ny\n" +
		"hint: \"spectrum umount MOUNTPOINT\" unmounts a view when no process uses it, or when its server has died\n"
	if said.String() != want {
		t.Errorf("%s", &said)
	}
}

// TestMarksThatFail do not keep the views.
func TestMarksThatFail(t *testing.T) {
	run := uniqueRun(t)
	v := startView(t, run.Dir)
	state, err := statedir.Open(filepath.Join(stateHome(t), "spectrum"))
	check(t, err)
	check(t, state.Close())
	r := view.Revoke(t.Context(), state, ofBundle(run, "/x"))
	if r.Err == nil || !slices.Contains(r.Detached, v.dir) {
		t.Fatalf("%+v", r)
	}
	v.checkRevoked()
}
