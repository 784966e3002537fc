package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"golang.org/x/sys/unix"
)

// diagnosed is what a Check has to be: its Health, and words of the rest.
type diagnosed struct {
	name  string
	got   Check
	want  Health
	words []string
}

// wantDiagnoses also requires a consequence for every diagnosis that is not well.
func wantDiagnoses(t *testing.T, all []diagnosed) {
	t.Helper()
	for _, d := range all {
		c := d.got
		if c.Status != d.want || c.ID == "" || c.Found == "" {
			t.Errorf("%s: %+v, not %s", d.name, c, d.want)
		}
		if c.Status != OK && c.Consequence == "" {
			t.Errorf("%s: nothing follows from %+v", d.name, c)
		}
		said := strings.Join([]string{c.Found, c.Consequence, c.Remedy}, "\n")
		for _, word := range d.words {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q is not in %q", d.name, word, said)
			}
		}
	}
}

func TestDoctorKernel(t *testing.T) {
	wantDiagnoses(t, []diagnosed{
		{"kernel", kernelCheck(machine.ParseRelease("6.1.0"), nil), OK, []string{"6.1.0"}},
		{"old kernel", kernelCheck(machine.ParseRelease("5.4.0-42"), nil), Warn, []string{"syncfs", "newer kernel"}},
		{"no uname", kernelCheck(machine.Release{}, unix.ENOSYS), Warn, nil},
		{"proc", procCheck(nil), OK, nil},
		{"no proc", procCheck(pathsafe.ErrNoProc), Fail, []string{"mount -t proc"}},
		{"openat2", openat2Check(nil), OK, nil},
		{"no openat2", openat2Check(os.NewSyscallError("openat2", unix.ENOSYS)), Warn, []string{"function not implemented", "one component at a time", "5.6"}},
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
	barred := with(func(m *fusemount.Means) { m.Denied = errors.New("no CAP_SYS_ADMIN") })
	wantDiagnoses(t, []diagnosed{
		{"device", deviceCheck(good), OK, nil},
		{"no device", deviceCheck(noDevice), Fail, []string{"open /dev/fuse: no such file or directory", "69", "modprobe fuse", "--device /dev/fuse"}},
		{"closed device", deviceCheck(closed), Fail, []string{"permission denied", "chmod 666 /dev/fuse"}},
		{"helper", helperCheck(good), OK, []string{"3.14.0"}},
		{"silent helper", helperCheck(with(func(m *fusemount.Means) { m.Version = "" })), OK, []string{"version unknown"}},
		{"no helper", helperCheck(noHelper), Fail, []string{"fusermount3 is not installed", "69", "apt-get install fuse3"}},
		{"no helper, root", helperCheck(root(noHelper)), Warn, []string{"other users cannot mount", "fuse3"}},
		{"helper of no use", helperCheck(plain), Fail, []string{"not setuid root", "chmod 4755 /usr/bin/fusermount3"}},
		{"helper on nosuid", helperCheck(void), Fail, []string{"nosuid"}},
		{"right", rightCheck(good), OK, []string{"helper"}},
		{"right of root", rightCheck(root(good)), OK, []string{"itself"}},
		{"no right", rightCheck(barred), Fail, []string{"CAP_SYS_ADMIN", "--cap-add SYS_ADMIN"}},
		{"shared", sharedCheck(good), OK, nil},
		{"not shared", sharedCheck(alone), Warn, []string{"--allow-other", "root only", "echo user_allow_other >>/etc/fuse.conf"}},
		{"not shared, root", sharedCheck(root(alone)), OK, []string{"root only", "echo user_allow_other >>/etc/fuse.conf"}},
		{"cut line", sharedCheck(cut), Warn, []string{"has no newline", "echo >>/etc/fuse.conf"}},
		{"unreadable", sharedCheck(hidden), Warn, []string{"permission denied"}},
	})
}

func TestDoctorViews(t *testing.T) {
	const path = "/mnt/a view"
	dead := &fusemount.MountpointError{Path: path, Err: fusemount.ErrDeadMount}
	wantDiagnoses(t, []diagnosed{
		{"live", viewCheck(path, nil), OK, nil},
		{"ended", viewCheck(path, fusemount.ErrNotMounted), OK, nil},
		{"another's", viewCheck(path, &os.PathError{Err: unix.EACCES}), OK, nil},
		{"dead", viewCheck(path, dead), Warn, []string{"dead", "spectrum umount '/mnt/a view'"}},
		{"stuck", viewCheck(path, fmt.Errorf("it does not answer: %w", context.DeadlineExceeded)), Warn, []string{"does not answer", "spectrum umount '/mnt/a view'"}},
		{"strange", viewCheck(path, unix.EIO), Warn, []string{"input/output error", "spectrum umount"}},
	})
}

func TestDoctorFileSystems(t *testing.T) {
	d := &directory{path: "/srv/a root", elsewhere: "ELSEWHERE"}
	on := func(kind string, options ...string) Check {
		return d.fileSystem(machine.Volume{Type: kind, Mountpoint: "/srv", Source: "/dev/sda1", Options: options})
	}
	all := []diagnosed{
		{"ext4", on("ext4", "rw"), OK, []string{`ext4 on "/srv"`}},
		{"no journal", d.fileSystem(machine.Volume{Type: "ext4", Source: "/dev/sda1", NoJournal: true}), Warn, []string{"without a journal", "power cut", "tune2fs -O has_journal /dev/sda1"}},
		{"vfat", on("vfat"), Warn, []string{"power cut", "ELSEWHERE"}},
		{"barriers", on("ext4", "nobarrier"), Warn, []string{"without barriers", "remount,barrier /srv"}},
		{"overlay", on("overlay"), Warn, []string{"new inode", "container", "ELSEWHERE"}},
		{"volatile", on("overlay", "volatile"), Warn, []string{"volatile", "power cut"}},
		{"volatile since 6.18", on("overlay", "fsync=volatile"), Warn, []string{"volatile", "power cut"}},
		{"tmpfs", on("tmpfs"), Warn, []string{"restart"}},
		{"another", on("zfs"), Warn, []string{"was not tested"}},
		{"unknown", on(""), Warn, []string{"unknown", "ELSEWHERE"}},
	}
	for _, kind := range []string{"nfs4", "cifs", "9p", "fuse.sshfs"} {
		all = append(all, diagnosed{kind, on(kind), Warn, []string{"locks do not work across hosts"}})
	}
	wantDiagnoses(t, all)
}

func TestDoctorDirectories(t *testing.T) {
	d := &directory{path: "/srv/a root", elsewhere: "ELSEWHERE"}
	rw, ro := machine.Volume{Mountpoint: "/srv"}, machine.Volume{Mountpoint: "/srv", ReadOnly: true}
	space := func(bytes, inodes machine.Space) Check {
		return d.space(machine.Volume{Bytes: bytes, Inodes: inodes})
	}
	const g = 1 << 30
	plenty := machine.Space{Free: 10 * g, Total: 100 * g}
	wantDiagnoses(t, []diagnosed{
		{"writable", d.writable(nil, rw), OK, nil},
		{"not writable", d.writable(unix.EACCES, rw), Fail, []string{"RESTORE_TARGET_NOT_WRITABLE", "ELSEWHERE"}},
		{"read-only", d.writable(unix.EROFS, ro), Fail, []string{`"/srv" is mounted read-only`, "remount,rw /srv"}},
		{"missing", d.cannotOpen(unix.ENOENT), Fail, []string{"mkdir -p '/srv/a root'"}},
		{"a file", d.cannotOpen(unix.ENOTDIR), Fail, []string{"ELSEWHERE"}},
		{"forbidden", d.cannotOpen(unix.EACCES), Fail, []string{"permission denied"}},
		{"names", d.names(machine.Volume{NameMax: 255}), OK, nil},
		{"short names", d.names(machine.Volume{NameMax: 143}), Warn, []string{"143", "ELSEWHERE"}},
		{"space", space(plenty, machine.Space{}), OK, []string{"10.0 GiB of 100.0 GiB"}},
		{"uncounted", space(machine.Space{}, machine.Space{}), OK, []string{"does not count"}},
		{"few bytes", space(machine.Space{Free: 63 << 20, Total: g}, machine.Space{}), Warn, []string{"63.0 MiB", "df -h"}},
		{"a hundredth", space(machine.Space{Free: g / 2, Total: 100 * g}, machine.Space{}), Warn, nil},
		{"few inodes", space(plenty, machine.Space{Free: 999, Total: 5000}), Warn, []string{"999 of 5000 inodes", "df -i"}},
		{"a hundredth of inodes", space(plenty, machine.Space{Free: 9000, Total: 1000000}), Warn, nil},
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
			{string(f.Feature), there, OK, nil},
			{string(f.Feature) + " lacks", lacking, features[f.Feature].without, []string{"no: operation not supported"}},
			{string(f.Feature) + " fails", broken, Fail, []string{"input/output error", "dmesg"}},
		})
		if there.Consequence != "" || lacking.Consequence == "" || (lacking.Remedy == "") != (lacking.Status == OK) {
			t.Errorf("%+v, %+v", there, lacking)
		}
	}
	for _, needed := range []machine.Feature{machine.Lock, machine.NoReplace, machine.Mode, machine.FileSync, machine.DirSync, machine.SyncFS} {
		if features[needed].without != Fail {
			t.Errorf("%s is not needed", needed)
		}
	}
}

func TestDoctorTried(t *testing.T) {
	after := func(err error) Check {
		d := &directory{path: "/srv", probe: "PROBE", patience: 30 * time.Second}
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
		{"full", full.checks[0], Fail, []string{"0 bytes of", "df -h"}},
		{"untried", full.checks[1], Skipped, []string{"no space: mode, time"}},
		{"tried", full.checks[2], OK, nil},
		{"slow", after(context.DeadlineExceeded), Warn, []string{"more than 30s"}},
		{"full at once", after(unix.ENOSPC), Skipped, []string{"no space left", "df -h"}},
		{"two", after(errors.Join(unix.EIO, unix.ENOTEMPTY)), Fail, []string{"input/output error; directory not empty"}},
	})
}

func TestDoctorClock(t *testing.T) {
	now := time.Now()
	wantDiagnoses(t, []diagnosed{
		{"now", clockCheck(now, audit.Attempts{}), OK, nil},
		{"1970", clockCheck(time.Unix(0, 0), audit.Attempts{}), Warn, []string{"1970-01-01T00:00:00Z", "before this program was made", "CHAIN_ORDER_VIOLATION", "timedatectl"}},
		{"an hour back", clockCheck(now, audit.Attempts{Entry: 7, Newest: now.Add(time.Hour)}), Warn, []string{"before entry 7 of the audit log"}},
		{"a moment back", clockCheck(now, audit.Attempts{Entry: 7, Newest: now.Add(time.Second / 2)}), OK, nil},
		{"later", clockCheck(now, audit.Attempts{Entry: 7, Newest: now.Add(-time.Hour)}), OK, nil},
	})
	if builtAt().Before(oldest) {
		t.Error(builtAt())
	}
}

// TestDoctorDoesNotHang: what does not answer is said, and everything else is
// looked at.
func TestDoctorDoesNotHang(t *testing.T) {
	t.Parallel()
	d := &Doctor{Patience: time.Millisecond}
	answer := make(chan struct{})
	defer close(answer)
	d.examine(context.Background(), Section{Title: "stuck", Mounting: true}, func(context.Context) []Check {
		<-answer
		return nil
	})
	d.Patience = time.Minute
	d.examine(context.Background(), Section{Title: "well"}, func(context.Context) []Check { return []Check{fine("well", "", "it is")} })
	if len(d.sections) != 2 || len(d.sections[1].Checks) != 1 {
		t.Fatalf("%+v", d.sections)
	}
	wantDiagnoses(t, []diagnosed{{"stuck", d.sections[0].Checks[0], Fail, []string{"does not answer within 1ms", "findmnt"}}})
}
