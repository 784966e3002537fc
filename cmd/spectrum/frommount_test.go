package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// proposed is a view of a run, and a restore root for it.
type proposed struct {
	*mounted
	project *bundletest.Project
	run     *bundletest.Run
	root    string
}

// propose mounts a run with a restore root.
func propose(t *testing.T) *proposed {
	t.Helper()
	p := &proposed{project: bundletest.New(t), root: t.TempDir()}
	p.run = p.project.Run("run-1", map[string]string{"a": "alpha", "b": "beta"})
	p.mounted = startView(t, "--restore-root", p.root, p.run.Dir)
	return p
}

var previewID = regexp.MustCompile(`(?m)^preview_id ([0-9a-f]{64})$`)

// shownID is the id of the preview that the view shows.
func (p *proposed) shownID() string {
	p.t.Helper()
	raw, err := os.ReadFile(p.control("preview.md"))
	if err != nil {
		p.t.Fatal(err)
	}
	id := previewID.FindSubmatch(raw)
	if id == nil {
		p.t.Fatalf("no id in %s", raw)
	}
	return string(id[1])
}

// commands are all the ways from this view to a commit.
func (p *proposed) commands() [][]string {
	p.t.Helper()
	made := strings.TrimSpace(must(p.t, "preview", "-q", "--from-mount", p.dir))
	return [][]string{
		{"preview", "--from-mount", p.dir},
		{"preview", "--from-mount", p.dir, "--restore-root", p.root},
		{"commit", "--from-mount", p.dir},
		{"commit", "--preview", made, "--approve", preview.Exactly},
		{"commit", "--preview", p.shownID(), "--approve", preview.Exactly},
	}
}

// tamper lets the view find a change of a source. When it is repaired again only
// the view knows of it: the file has its content and its time.
func (p *proposed) tamper(fix bool) {
	p.t.Helper()
	source := filepath.Join(p.project.Root, "a")
	before, err := os.Stat(source)
	check(p.t, err)
	harness.Flip(p.t, source, 1)
	if _, err := os.ReadFile(filepath.Join(p.dir, "a")); !errors.Is(err, syscall.EIO) {
		p.t.Fatal(err)
	}
	if fix {
		harness.Flip(p.t, source, 1)
		check(p.t, os.Chtimes(source, time.Time{}, before.ModTime()))
	}
}

// rejects requires each command to end with a status and a code, and to leave the restore root
// alone.
func (p *proposed) rejects(commands [][]string, status int, code string) {
	p.t.Helper()
	before := bundletest.Snapshot(p.t, p.root)
	for _, args := range commands {
		stdout, stderr, got := spectrum(p.t, append(args, "--json")...)
		if got != status || !strings.HasPrefix(stdout, `{"code":"`+code+`","details":{},"message":"`) || !strings.HasSuffix(stdout, `","ok":false}`) {
			p.t.Errorf("%q: %d %s\n%s", args, got, stdout, stderr)
		}
	}
	if now := bundletest.Snapshot(p.t, p.root); now != before {
		p.t.Errorf("the restore root changed:\n%s", bundletest.Changes(before, now))
	}
}

// TestNothingIsCommittedOfATamperedView: whatever was approved before, and also
// when the source was repaired in between.
func TestNothingIsCommittedOfATamperedView(t *testing.T) {
	for _, mended := range []bool{false, true} {
		p := propose(t)
		commands := p.commands()
		p.tamper(mended)
		p.rejects(commands, statusRejected, "VIEW_TAMPERED")
		if id := strings.TrimSpace(must(t, "umount", p.dir)); id != "" {
			t.Errorf("umount said %q", id)
		}
		p.rejects(commands[3:], statusApproval, "APPROVAL_STALE")
	}
}

// TestTamperedArtifactCountsToo: a change of PROOF.json, which no signature
// covers, is tampering when the view meets it.
func TestTamperedArtifactCountsToo(t *testing.T) {
	p := propose(t)
	commands := p.commands()
	harness.Flip(t, p.run.Path(bundle.Proof), 3)
	if _, err := os.ReadFile(p.control("runs/run-1/" + bundle.Proof)); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	harness.Flip(t, p.run.Path(bundle.Proof), 3)
	p.rejects(commands, statusRejected, "VIEW_TAMPERED")
}

// TestCommitOfWhatTheViewShows: the id in preview.md is good for one commit,
// from wherever it is given, and what is written is what was seen.
func TestCommitOfWhatTheViewShows(t *testing.T) {
	project, root, work := bundletest.New(t), t.TempDir(), t.TempDir()
	run := project.Run("run-1", map[string]string{"a": "alpha", "d/b": "beta"})
	if err := os.Mkdir(filepath.Join(work, "view"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "mount", "--restore-root", root, run.Dir, "view")
	cmd.Dir = work
	p := &proposed{startViewBy(t, cmd, filepath.Join(work, "view")), project, run, root}
	must(t, "commit", "--preview", p.shownID(), "--approve", preview.Exactly)
	runIn(t, "", "diff", "-r", p.dir, p.root)
	if stdout, _, status := spectrum(t, "commit", "--preview", p.shownID(), "--approve", preview.Exactly); status != statusApproval {
		t.Errorf("a second time: %d %s", status, stdout)
	}
}

// TestViewInItsPlace: approvals are for the view that was looked at, not for
// what is there now.
func TestViewInItsPlace(t *testing.T) {
	places := map[string]func(p *proposed){
		"nothing":      func(*proposed) {},
		"no directory": func(p *proposed) { check(t, os.Remove(p.dir)) },
		"a link to another view": func(p *proposed) {
			check(t, os.Remove(p.dir))
			check(t, os.Symlink(startView(t, p.run.Dir).dir, p.dir))
		},
		"another view": func(p *proposed) { startViewBy(t, command(t, "mount", p.run.Dir, p.dir), p.dir) },
		"another view that found tampering": func(p *proposed) {
			startViewBy(t, command(t, "mount", p.run.Dir, p.dir), p.dir)
			p.tamper(true)
		},
		"many runs": func(p *proposed) {
			startViewBy(t, command(t, "mount", "--all", filepath.Dir(p.run.Dir), p.dir), p.dir)
		},
		"another file system": func(p *proposed) { check(t, unix.Mount("none", p.dir, "tmpfs", 0, "")) },
		"a file system with its control files": func(p *proposed) {
			check(t, unix.Mount("none", p.dir, "tmpfs", 0, ""))
			check(t, os.Mkdir(filepath.Join(p.dir, ".spectrum"), 0o755))
			check(t, os.WriteFile(p.control("status.json"), []byte(`{"tampered":false}`), 0o644))
		},
	}
	for name, put := range places {
		t.Run(name, func(t *testing.T) {
			p := propose(t)
			commands := p.commands()[3:]
			if _, err := p.stop(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			put(p)
			p.rejects(commands, statusApproval, "APPROVAL_STALE")
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFoundWhileACommitWaits: what the view finds, or its end, counts until the
// first byte is written, also while the commit waits for the restore root.
func TestFoundWhileACommitWaits(t *testing.T) {
	meanwhile := map[string]func(p *proposed){
		"VIEW_TAMPERED":  func(p *proposed) { p.tamper(true) },
		"APPROVAL_STALE": func(p *proposed) { must(t, "umount", p.dir) },
	}
	for code, do := range meanwhile {
		p := propose(t)
		before := bundletest.Snapshot(t, p.root)
		was, err := os.Stat(p.root)
		check(t, err)
		lock, err := os.Create(filepath.Join(p.root, staging.LockName))
		check(t, err)
		defer lock.Close()
		check(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
		project := countOpens(t, p.project.Root)
		cmd := command(t, "commit", "--json", "--lock-timeout", "2m", "--preview", p.shownID(), "--approve", preview.Exactly)
		var stdout strings.Builder
		cmd.Stdout = &stdout
		check(t, cmd.Start())
		harness.Eventually(t, "the view was asked", func() bool { return project.count() > 0 })
		do(p)
		check(t, lock.Close())
		err = cmd.Wait()
		if err == nil || !strings.Contains(stdout.String(), `"code":"`+code+`"`) {
			t.Errorf("%v: %s; want %s", err, &stdout, code)
		}
		if _, err := os.Lstat(lock.Name()); err == nil {
			t.Error("the lock is left")
		}
		check(t, os.Chtimes(p.root, was.ModTime(), was.ModTime()))
		if now := bundletest.Snapshot(t, p.root); now != before {
			t.Errorf("the restore root changed:\n%s", bundletest.Changes(before, now))
		}
	}
}

// TestDeadView: a view whose server was killed vouches for nothing.
func TestDeadView(t *testing.T) {
	p := propose(t)
	commands := p.commands()
	if _, err := p.stop(syscall.SIGKILL); err == nil {
		t.Error("it survived")
	}
	p.rejects(commands[:3], statusRejected, "REFUSED")
	p.rejects(commands[3:], statusApproval, "APPROVAL_STALE")
	must(t, "umount", p.dir)
}

// TestResealedAfterMounting: the run directory holds another bundle than the
// view shows, a good one.
func TestResealedAfterMounting(t *testing.T) {
	p := propose(t)
	commands := p.commands()
	p.project.Write("a", "another")
	p.run.EditHashes(func(hashes map[string]any) { hashes["a"] = bundletest.Hash("another") })
	must(t, "verify", p.run.Dir)
	p.rejects(commands[:3], statusRejected, "REFUSED")
	p.rejects(commands[3:], statusApproval, "APPROVAL_STALE")
}

// TestNoCandidateInTheView: what --from-mount can be given that shows none.
func TestNoCandidateInTheView(t *testing.T) {
	p := propose(t)
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o644))
	link := filepath.Join(t.TempDir(), "loop")
	check(t, os.Symlink(link, link))
	all := startView(t, "--all", filepath.Dir(p.run.Dir))
	refused := []string{t.TempDir(), file, link, filepath.Join(p.dir, "none"), p.control(""), "/proc", "/", all.dir, filepath.Join(all.dir, "run-1")}
	for _, path := range refused {
		p.rejects([][]string{
			{"preview", "--from-mount", path, "--restore-root", p.root},
			{"commit", "--from-mount", path, "--restore-root", p.root},
		}, statusRejected, "REFUSED")
	}
	for _, also := range [][]string{{p.run.Dir}, {"--chain"}, {"--project-root", p.project.Root}} {
		p.rejects([][]string{
			append([]string{"preview", "--from-mount", p.dir}, also...),
			append([]string{"commit", "--from-mount", p.dir}, also...),
			append([]string{"commit", "--preview", "x", "--approve", "y", "--from-mount", p.dir}, also...),
		}, statusUsage, "USAGE")
	}
	p.rejects([][]string{{"commit", "--from-mount", p.dir, "--approve", preview.Exactly}}, statusUsage, "USAGE")
}

// TestForgedControlBehindABind: inside a run of a chain a bundle may have a
// ".spectrum" of its own; mounted by itself it is not a view.
func TestForgedControlBehindABind(t *testing.T) {
	project, bind := bundletest.New(t), t.TempDir()
	hidden := project.Run("run-2", map[string]string{"b": "never seen before"})
	forged := project.Run("run-1", map[string]string{
		".spectrum/status.json":    `{"tampered":false,"view_id":"x"}`,
		".spectrum/candidate.json": fmt.Sprintf(`{"project_root":%q,"run_dirs":[%q],"runs":[]}`, project.Root, hidden.Dir),
	})
	p := &proposed{startView(t, "--chain", forged.Dir), project, forged, t.TempDir()}
	check(t, unix.Mount(filepath.Join(p.dir, "run-1"), bind, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(bind, unix.MNT_DETACH) })
	p.rejects([][]string{{"preview", "--from-mount", bind, "--restore-root", p.root}}, statusRejected, "REFUSED")
}

// TestStateApartFromTheViewsRoot: the restore root that the view knows is kept
// clear of as well as one that is given.
func TestStateApartFromTheViewsRoot(t *testing.T) {
	p := propose(t)
	state := filepath.Join(p.root, "state")
	p.rejects([][]string{
		{"preview", "--from-mount", p.dir, "--restore-root", p.root, "--state-dir", state},
		{"preview", "--from-mount", p.dir, "--state-dir", state},
		{"commit", "--from-mount", p.dir, "--state-dir", state},
	}, statusRejected, "REFUSED")
}

// TestForgedPreviewOfAView: a kept preview cannot be freed from its view.
func TestForgedPreviewOfAView(t *testing.T) {
	p := propose(t)
	id := p.shownID()
	kept := filepath.Join(stateHome(t), "spectrum", "previews", id+".json")
	raw, err := os.ReadFile(kept)
	check(t, err)
	freed := regexp.MustCompile(`"view":\{[^}]*\}`).ReplaceAll(raw, []byte(`"view":null`))
	if len(freed) == len(raw) {
		t.Fatalf("no view in %s", raw)
	}
	check(t, os.WriteFile(kept, freed, 0o600))
	p.rejects([][]string{{"commit", "--preview", id, "--approve", preview.Exactly}}, statusApproval, "APPROVAL_INVALID")
}

// TestMountpointThatJSONCannotHold: a preview that cannot name its view is not
// made; the view itself does not mind.
func TestMountpointThatJSONCannotHold(t *testing.T) {
	p := propose(t)
	odd := filepath.Join(t.TempDir(), "m\xff")
	check(t, os.Mkdir(odd, 0o755))
	p.rejects([][]string{{"mount", "--restore-root", p.root, p.run.Dir, odd}}, statusRejected, "REFUSED")
	if isMounted(t, odd) {
		t.Fatal("it is mounted")
	}
	startViewBy(t, command(t, "mount", p.run.Dir, odd), odd)
	p.rejects([][]string{{"preview", "--from-mount", odd, "--restore-root", p.root}}, statusRejected, "REFUSED")
}

// TestRunDirThatJSONCannotHold: the view shows it, and its candidate.json cannot
// say where it is: it leads nowhere, and not to another one.
func TestRunDirThatJSONCannotHold(t *testing.T) {
	p := propose(t)
	odd := p.project.Run("r\xff", map[string]string{"a": "alpha"})
	p.project.Run("r\uFFFD", map[string]string{"b": "another run, of the name that is told"})
	v := startView(t, odd.Dir)
	before := bundletest.Snapshot(t, p.root)
	for _, name := range []string{"preview", "commit"} {
		if stdout, stderr, status := spectrum(t, name, "--json", "--from-mount", v.dir, "--restore-root", p.root); status != statusRejected {
			t.Errorf("%d: %s%s", status, stdout, stderr)
		}
	}
	if now := bundletest.Snapshot(t, p.root); now != before {
		t.Errorf("the restore root changed:\n%s", bundletest.Changes(before, now))
	}
}

// TestViewInsideItsRestoreRoot: a view that was mounted there without saying so
// is in the way, and is not written to.
func TestViewInsideItsRestoreRoot(t *testing.T) {
	project, root := bundletest.New(t), t.TempDir()
	run := project.Run("run-1", map[string]string{"v/a": "alpha", "b": "beta"})
	inside := filepath.Join(root, "v")
	check(t, os.Mkdir(inside, 0o755))
	v := startViewBy(t, command(t, "mount", run.Dir, inside), inside)
	stdout, stderr, status := spectrum(t, "preview", "-q", "--from-mount", v.dir, "--restore-root", root)
	if status == 0 {
		stdout, stderr, status = spectrum(t, "commit", "--json", "--preview", strings.TrimSpace(stdout), "--approve", preview.Exactly)
	}
	if status != statusRejected {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	if got := names(t, root); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestNextViewOnTheSpot: the kernel gives the numbers of a mount again. A server
// that is late to notice its end leaves the next view alone.
func TestNextViewOnTheSpot(t *testing.T) {
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	late := startView(t, run.Dir)
	harness.Freeze(t, late.cmd.Process.Pid)
	check(t, unix.Unmount(late.dir, unix.MNT_DETACH))
	next := startViewBy(t, command(t, "mount", run.Dir, late.dir), late.dir)
	check(t, late.cmd.Process.Signal(syscall.SIGCONT))
	err := <-late.done
	late.done <- err
	if err != nil {
		t.Errorf("%v: %s", err, late.said)
	}
	if got, err := os.ReadFile(filepath.Join(next.dir, "a")); err != nil || string(got) != "alpha" {
		t.Errorf("the next view: %q, %v", got, err)
	}
}

// TestViewOfAnotherUser: what the server of another user says is not asked for,
// not even by root. It has a mount namespace and a FUSE device of its own.
func TestViewOfAnotherUser(t *testing.T) {
	p := propose(t)
	dir := t.TempDir()
	for _, open := range []string{p.project.Root, dir} {
		for ; open != os.TempDir() && open != "/"; open = filepath.Dir(open) {
			check(t, os.Chmod(open, 0o755))
		}
	}
	exe, err := os.Executable()
	check(t, err)
	runIn(t, dir, "cp", exe, "spectrum")
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-ec", `
		mknod -m 666 fuse c 10 229
		mount --bind fuse /dev/fuse
		mkdir -m 700 view home root
		chown 65534:65534 view home
		export XDG_STATE_HOME=$PWD/home
		user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
		user ./spectrum mount -q --daemon "$0" view
		user cat view/a
		export XDG_STATE_HOME=$PWD/root
		for command in preview commit; do
			./spectrum $command --json --from-mount view --restore-root "$1" 2>/dev/null || echo " $?"
		done
		user ./spectrum umount -q view`, p.run.Dir, p.root)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	want := regexp.MustCompile(`^alpha(\{"code":"MACHINE_FAULT","details":\{\},"message":"mount point \S+: the view there was mounted by another user","ok":false\} 74\n){2}$`)
	if err != nil || !want.Match(out) {
		t.Errorf("%v: %s", err, out)
	}
}
