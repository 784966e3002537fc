package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// diagnosed is what a diagnosis has to be: its health, and words of the rest.
type diagnosed struct {
	name  string
	got   diagnosis
	want  health
	words []string
}

// wantDiagnoses also wants whatever is not well to say what follows.
func wantDiagnoses(t *testing.T, all []diagnosed) {
	t.Helper()
	for _, d := range all {
		c := d.got
		if c.status != d.want || c.id == "" || c.found == "" {
			t.Errorf("%s: %+v, not %s", d.name, c, d.want)
		}
		if c.status != isFine && c.consequence == "" {
			t.Errorf("%s: nothing follows from %+v", d.name, c)
		}
		said := strings.Join([]string{c.found, c.consequence, c.remedy}, "\n")
		for _, word := range d.words {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q is not in %q", d.name, word, said)
			}
		}
	}
}

func TestDoctorKernel(t *testing.T) {
	wantDiagnoses(t, []diagnosed{
		{"kernel", kernelCheck(machine.ParseRelease("6.1.0"), nil), isFine, []string{"6.1.0"}},
		{"old kernel", kernelCheck(machine.ParseRelease("5.4.0-42"), nil), isWarn, []string{"syncfs", "newer kernel"}},
		{"no uname", kernelCheck(machine.Release{}, unix.ENOSYS), isWarn, nil},
		{"proc", procCheck(nil), isFine, nil},
		{"no proc", procCheck(pathsafe.ErrNoProc), isFail, []string{"mount -t proc"}},
		{"openat2", openat2Check(nil), isFine, nil},
		{"no openat2", openat2Check(os.NewSyscallError("openat2", unix.ENOSYS)), isWarn, []string{"function not implemented", "one component at a time", "5.6"}},
	})
}

func TestDoctorMeans(t *testing.T) {
	good := fusemount.Means{Device: "/dev/fuse", Helper: "/usr/bin/fusermount3", Version: "3.14.0", Config: "/etc/fuse.conf"}
	with := func(change func(*fusemount.Means)) fusemount.Means {
		m := good
		change(&m)
		return m
	}
	root := func(m fusemount.Means) fusemount.Means {
		m.Direct = true
		return m
	}
	noDevice := with(func(m *fusemount.Means) {
		m.DeviceErr = fmt.Errorf("%w: %w", fusemount.ErrUnavailable, &os.PathError{Op: "open", Path: "/dev/fuse", Err: unix.ENOENT})
	})
	closed := with(func(m *fusemount.Means) { m.DeviceErr = &os.PathError{Op: "open", Path: "/dev/fuse", Err: unix.EACCES} })
	noHelper := with(func(m *fusemount.Means) { m.Helper, m.Version, m.HelperErr = "", "", fusemount.ErrNoHelper })
	plain := with(func(m *fusemount.Means) { m.HelperErr = fusemount.ErrNotSetuid })
	void := with(func(m *fusemount.Means) { m.HelperErr = fusemount.ErrSetuidVoid })
	alone := with(func(m *fusemount.Means) { m.Shared = fusemount.ErrNotShared })
	cut := with(func(m *fusemount.Means) { m.Shared = fusemount.ErrCutLine })
	hidden := with(func(m *fusemount.Means) {
		m.Shared = &os.PathError{Op: "open", Path: "/etc/fuse.conf", Err: unix.EACCES}
	})
	barred := with(func(m *fusemount.Means) { m.Barred = errors.New("no CAP_SYS_ADMIN") })
	wantDiagnoses(t, []diagnosed{
		{"device", deviceCheck(good), isFine, nil},
		{"no device", deviceCheck(noDevice), isFail, []string{"open /dev/fuse: no such file or directory", "69", "modprobe fuse", "--device /dev/fuse"}},
		{"closed device", deviceCheck(closed), isFail, []string{"permission denied", "chmod 666 /dev/fuse"}},
		{"helper", helperCheck(good), isFine, []string{"3.14.0"}},
		{"silent helper", helperCheck(with(func(m *fusemount.Means) { m.Version = "" })), isFine, []string{"version unknown"}},
		{"no helper", helperCheck(noHelper), isFail, []string{"fusermount3 is not installed", "69", "apt-get install fuse3"}},
		{"no helper, root", helperCheck(root(noHelper)), isWarn, []string{"other users cannot mount", "fuse3"}},
		{"helper of no use", helperCheck(plain), isFail, []string{"not setuid root", "chmod 4755 /usr/bin/fusermount3"}},
		{"helper on nosuid", helperCheck(void), isFail, []string{"nosuid"}},
		{"right", rightCheck(good), isFine, []string{"helper"}},
		{"right of root", rightCheck(root(good)), isFine, []string{"itself"}},
		{"no right", rightCheck(barred), isFail, []string{"CAP_SYS_ADMIN", "--cap-add SYS_ADMIN"}},
		{"shared", sharedCheck(good), isFine, nil},
		{"not shared", sharedCheck(alone), isWarn, []string{"--allow-other", "root only", "echo user_allow_other >>/etc/fuse.conf"}},
		{"not shared, root", sharedCheck(root(alone)), isFine, []string{"root only", "echo user_allow_other >>/etc/fuse.conf"}},
		{"cut line", sharedCheck(cut), isWarn, []string{"does not end", "echo >>/etc/fuse.conf"}},
		{"unreadable", sharedCheck(hidden), isWarn, []string{"permission denied"}},
	})
}

func TestDoctorViews(t *testing.T) {
	const path = "/mnt/a view"
	dead := &fusemount.MountpointError{Path: path, Err: fusemount.ErrDeadMount}
	wantDiagnoses(t, []diagnosed{
		{"live", viewCheck(path, nil), isFine, nil},
		{"ended", viewCheck(path, fusemount.ErrNotMounted), isFine, nil},
		{"another's", viewCheck(path, &os.PathError{Err: unix.EACCES}), isFine, nil},
		{"dead", viewCheck(path, dead), isWarn, []string{"dead", "spectrum umount '/mnt/a view'"}},
		{"stuck", viewCheck(path, fmt.Errorf("it does not answer: %w", context.DeadlineExceeded)), isWarn, []string{"does not answer", "spectrum umount '/mnt/a view'"}},
		{"strange", viewCheck(path, unix.EIO), isWarn, []string{"input/output error", "spectrum umount"}},
	})
}

func TestDoctorFileSystems(t *testing.T) {
	d := &directory{path: "/srv/a root", elsewhere: "ELSEWHERE"}
	on := func(kind string, options ...string) diagnosis {
		return d.fileSystem(machine.Volume{Type: kind, Mountpoint: "/srv", Source: "/dev/sda1", Options: options})
	}
	all := []diagnosed{
		{"ext4", on("ext4", "rw"), isFine, []string{`ext4 on "/srv"`}},
		{"no journal", d.fileSystem(machine.Volume{Type: "ext4", Source: "/dev/sda1", NoJournal: true}), isWarn, []string{"without a journal", "power cut", "tune2fs -O has_journal /dev/sda1"}},
		{"vfat", on("vfat"), isWarn, []string{"power cut", "ELSEWHERE"}},
		{"barriers", on("ext4", "nobarrier"), isWarn, []string{"without barriers", "remount,barrier /srv"}},
		{"overlay", on("overlay"), isWarn, []string{"another inode", "container", "ELSEWHERE"}},
		{"volatile", on("overlay", "volatile"), isWarn, []string{"volatile", "power cut"}},
		{"volatile since 6.18", on("overlay", "fsync=volatile"), isWarn, []string{"volatile", "power cut"}},
		{"tmpfs", on("tmpfs"), isWarn, []string{"restart"}},
		{"another", on("zfs"), isWarn, []string{"was not tried"}},
		{"unknown", on(""), isWarn, []string{"unknown", "ELSEWHERE"}},
	}
	for _, kind := range []string{"nfs4", "cifs", "9p", "fuse.sshfs"} {
		all = append(all, diagnosed{kind, on(kind), isWarn, []string{"lock is one of this host"}})
	}
	wantDiagnoses(t, all)
}

func TestDoctorDirectories(t *testing.T) {
	d := &directory{path: "/srv/a root", elsewhere: "ELSEWHERE"}
	rw, ro := machine.Volume{Mountpoint: "/srv"}, machine.Volume{Mountpoint: "/srv", ReadOnly: true}
	space := func(bytes, inodes machine.Space) diagnosis {
		return d.space(machine.Volume{Bytes: bytes, Inodes: inodes})
	}
	const g = 1 << 30
	plenty := machine.Space{Free: 10 * g, Total: 100 * g}
	wantDiagnoses(t, []diagnosed{
		{"writable", d.writable(nil, rw), isFine, nil},
		{"not writable", d.writable(unix.EACCES, rw), isFail, []string{"RESTORE_TARGET_NOT_WRITABLE", "ELSEWHERE"}},
		{"read-only", d.writable(unix.EROFS, ro), isFail, []string{`"/srv" is mounted read-only`, "remount,rw /srv"}},
		{"missing", d.cannotOpen(unix.ENOENT), isFail, []string{"mkdir -p '/srv/a root'"}},
		{"a file", d.cannotOpen(unix.ENOTDIR), isFail, []string{"ELSEWHERE"}},
		{"forbidden", d.cannotOpen(unix.EACCES), isFail, []string{"permission denied"}},
		{"names", d.names(machine.Volume{NameMax: 255}), isFine, nil},
		{"short names", d.names(machine.Volume{NameMax: 143}), isWarn, []string{"143", "ELSEWHERE"}},
		{"space", space(plenty, machine.Space{}), isFine, []string{"10.0 GiB of 100.0 GiB"}},
		{"uncounted", space(machine.Space{}, machine.Space{}), isFine, []string{"does not count"}},
		{"few bytes", space(machine.Space{Free: 63 << 20, Total: g}, machine.Space{}), isWarn, []string{"63.0 MiB", "df -h"}},
		{"a hundredth", space(machine.Space{Free: g / 2, Total: 100 * g}, machine.Space{}), isWarn, nil},
		{"few inodes", space(plenty, machine.Space{Free: 999, Total: 5000}), isWarn, []string{"999 of 5000 inodes", "df -i"}},
		{"a hundredth of inodes", space(plenty, machine.Space{Free: 9000, Total: 1000000}), isWarn, nil},
	})
}

// TestDoctorFeatures: there are words for every feature that is tried, for its
// absence and for its failure.
func TestDoctorFeatures(t *testing.T) {
	root, err := pathsafe.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	findings, err := machine.Probe(context.Background(), root, machine.NewName())
	if err != nil || len(findings) != len(features) {
		t.Errorf("%v, %d of %d", err, len(findings), len(features))
	}
	d := &directory{path: "/srv", elsewhere: "ELSEWHERE"}
	for _, f := range findings {
		there, lacking, broken := d.feature(machine.Finding{Feature: f.Feature}), d.feature(machine.Finding{Feature: f.Feature, Err: unix.EOPNOTSUPP}), d.feature(machine.Finding{Feature: f.Feature, Err: unix.EIO})
		wantDiagnoses(t, []diagnosed{
			{string(f.Feature), there, isFine, nil},
			{string(f.Feature) + " lacks", lacking, features[f.Feature].without, []string{"no: operation not supported"}},
			{string(f.Feature) + " fails", broken, isFail, []string{"input/output error", "dmesg"}},
		})
		if there.consequence != "" || lacking.consequence == "" || (lacking.remedy == "") != (lacking.status == isFine) {
			t.Errorf("%+v, %+v", there, lacking)
		}
	}
	for _, needed := range []machine.Feature{machine.Lock, machine.NoReplace, machine.Mode, machine.FileSync, machine.DirSync, machine.SyncFS} {
		if features[needed].without != isFail {
			t.Errorf("%s is not needed", needed)
		}
	}
}

func TestDoctorTried(t *testing.T) {
	after := func(err error) diagnosis {
		d := &directory{path: "/srv", probe: "PROBE"}
		d.tried(nil, err)
		return d.checks[0]
	}
	full := &directory{path: "/srv", probe: "PROBE"}
	full.add(full.space(machine.Volume{Bytes: machine.Space{Total: 100}}))
	full.tried([]machine.Finding{{Feature: machine.Lock}, {Feature: machine.Mode, Err: unix.ENOSPC}, {Feature: machine.Time, Err: unix.EDQUOT}}, nil)
	if len(full.checks) != 3 {
		t.Errorf("%+v", full.checks)
	}
	wantDiagnoses(t, []diagnosed{
		{"full", full.checks[0], isFail, []string{"0 bytes of", "df -h"}},
		{"untried", full.checks[1], skipped, []string{"no space: mode, time"}},
		{"tried", full.checks[2], isFine, nil},
		{"slow", after(context.DeadlineExceeded), isWarn, []string{"more than 30s"}},
		{"full at once", after(unix.ENOSPC), skipped, []string{"no space left", "df -h"}},
		{"two", after(errors.Join(unix.EIO, unix.ENOTEMPTY)), isFail, []string{"input/output error; directory not empty"}},
	})
}

func TestDoctorClock(t *testing.T) {
	now := time.Now()
	wantDiagnoses(t, []diagnosed{
		{"now", clockCheck(now, latest{}), isFine, nil},
		{"1970", clockCheck(time.Unix(0, 0), latest{}), isWarn, []string{"1970-01-01T00:00:00Z", "before this program was made", "CHAIN_ORDER_VIOLATION", "timedatectl"}},
		{"an hour back", clockCheck(now, latest{7, now.Add(time.Hour)}), isWarn, []string{"before entry 7 of the audit log"}},
		{"a moment back", clockCheck(now, latest{7, now.Add(time.Second / 2)}), isFine, nil},
		{"later", clockCheck(now, latest{7, now.Add(-time.Hour)}), isFine, nil},
	})
	if builtAt().Before(oldest) {
		t.Error(builtAt())
	}
}

// TestDoctorLog: a halt that was ended is none.
func TestDoctorLog(t *testing.T) {
	l := logged{roots: map[string]string{}}
	for i, e := range []audit.Event{
		{Kind: audit.CommitBegin, Action: "a", Root: "/a"}, {Kind: audit.Halted, Action: "a", Root: "/a"}, {Kind: audit.Halted, Action: "a", Root: "/a"},
		{Kind: audit.Halted, Action: "b", Root: "/b"}, {Kind: audit.Released, Action: "b", Root: "/b"},
		{Kind: audit.Halted, Action: "c", Root: "/c"}, {Kind: audit.RolledBack, Action: "c", Root: "/c"},
		{Kind: audit.CommitBegin, Action: "d", Root: "/d"},
	} {
		l.see(&audit.Entry{Event: e, Sequence: int64(i), Time: oldest.Add(time.Duration(i%5) * time.Hour)})
	}
	if len(l.halts) != 1 || l.halts[0] != "a" || l.roots["a"] != "/a" || l.last.entry != 4 {
		t.Errorf("%+v", l)
	}
}

// TestDoctorDoesNotHang: what does not answer is said, and everything else is
// looked at.
func TestDoctorDoesNotHang(t *testing.T) {
	t.Parallel()
	d := &doctor{app: &app{}, patience: time.Millisecond}
	answer := make(chan struct{})
	defer close(answer)
	d.examine(context.Background(), section{title: "stuck", mounting: true}, func(context.Context) []diagnosis {
		<-answer
		return nil
	})
	d.patience = time.Minute
	d.examine(context.Background(), section{title: "well"}, func(context.Context) []diagnosis { return []diagnosis{fine("well", "", "it is")} })
	if len(d.sections) != 2 || len(d.sections[1].checks) != 1 {
		t.Fatalf("%+v", d.sections)
	}
	wantDiagnoses(t, []diagnosed{{"stuck", d.sections[0].checks[0], isFail, []string{"does not answer within 1ms", "findmnt"}}})
}

// TestDoctorVerdict: nothing but mounting is 69, anything else is 1, warnings are 0.
func TestDoctorVerdict(t *testing.T) {
	bad := fine("x", "", "bad").but(isFail, "it follows", "do this")
	warned := fine("x", "", "so so").but(isWarn, "it follows", "do this")
	for name, test := range map[string]struct {
		sections []section
		status   int
		code     string
	}{
		"well":      {[]section{{checks: []diagnosis{fine("x", "", "good")}}}, statusOK, ""},
		"warned of": {[]section{{checks: []diagnosis{warned}}, {mounting: true, checks: []diagnosis{warned}}}, statusOK, ""},
		"mounting":  {[]section{{checks: []diagnosis{warned}}, {mounting: true, checks: []diagnosis{bad}}}, statusUnavailable, "MOUNT_UNAVAILABLE"},
		"restoring": {[]section{{checks: []diagnosis{bad}}}, statusRejected, string(codeUnfit)},
		"both":      {[]section{{mounting: true, checks: []diagnosis{bad}}, {checks: []diagnosis{bad}}}, statusRejected, string(codeUnfit)},
	} {
		err := (&doctor{app: &app{}, sections: test.sections}).verdict()
		if status := statusOf(err); status != test.status {
			t.Errorf("%s: status %d: %v", name, status, err)
		}
		if err == nil {
			continue
		}
		raw := string(errorJSON(err, test.status))
		if !strings.Contains(raw, `"code":"`+test.code+`"`) || !strings.Contains(raw, `"details":{"checks":[{`) || !strings.Contains(raw, `"ok":false`) {
			t.Errorf("%s: %s", name, raw)
		}
		if hints := hintsOf(err); len(hints) != 1 || hints[0] != "do this" {
			t.Errorf("%s: %q", name, hints)
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
		want   health
		status int
	}{
		"openat2":   {unix.ENOSYS, "openat2", isWarn, statusOK},
		"renameat2": {unix.EINVAL, "rename-noreplace", isFail, statusRejected},
		"syncfs":    {unix.ENOSYS, "syncfs", isFail, statusRejected},
		"fsync":     {unix.EIO, "fsync", isFail, statusRejected},
		"flock":     {unix.EBADF, "lock", isFail, statusRejected},
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
	if r.Status != statusMachine || r.Fired == 0 || !strings.Contains(string(r.Stderr), "\nhint: \"spectrum --state-dir "+state+" doctor RESTORE_ROOT\" says what its file system lacks\n") {
		t.Errorf("status %d, %d calls failed: %s", r.Status, r.Fired, r.Stderr)
	}
}
