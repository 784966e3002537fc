package fusemount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Means describes what this user on this machine can mount views with. An error names what is
// missing.
type Means struct {
	Device    string // the FUSE device
	DeviceErr error  // it cannot be opened by this user

	Direct    bool   // this user mounts directly, as root does, and not through the helper
	Helper    string // path of fusermount3; "" if there is none that this user may run
	Version   string // of the helper, as reported; "" if unknown
	HelperErr error  // the helper cannot mount for users

	Denied error // the kernel does not allow this process, or the helper, to mount

	Config string // the helper's configuration
	Shared error  // ordinary users may not give other users access to a view
}

// Errors in [Means].
var (
	ErrNoHelper   = errors.New(helperName + " is not installed")
	ErrNotSetuid  = errors.New("it is not setuid root")
	ErrSetuidVoid = errors.New("it is in a file system that is mounted nosuid")
	ErrNotShared  = errors.New("there is no line user_allow_other")
	ErrCutLine    = errors.New("the last line, user_allow_other, has no newline and is ignored")
)

// FindMeans looks at the means of this user. Nothing is mounted.
func FindMeans(ctx context.Context) Means { return hostSystem().means(ctx, "/etc/fuse.conf") }

func (s system) means(ctx context.Context, config string) Means {
	m := Means{Device: s.device, DeviceErr: available(s.device), Direct: s.direct, Helper: s.helper, Config: config}
	m.HelperErr = s.checkHelper()
	if s.helper != "" {
		m.Version = s.helperVersion(ctx)
	}
	m.Denied = s.denied()
	m.Shared = checkShared(config)
	return m
}

// checkHelper returns the reason why the helper cannot mount for users. Some distributions
// replace the setuid bit with file capabilities.
func (s system) checkHelper() error {
	if s.helper == "" {
		return ErrNoHelper
	}
	var st unix.Stat_t
	var sf unix.Statfs_t
	if err := errors.Join(unix.Stat(s.helper, &st), unix.Statfs(s.helper, &sf)); err != nil {
		return &os.PathError{Op: "stat", Path: s.helper, Err: err}
	}
	capable, _ := unix.Getxattr(s.helper, "security.capability", nil)
	switch {
	case (st.Uid != 0 || st.Mode&unix.S_ISUID == 0) && capable <= 0:
		return ErrNotSetuid
	case sf.Flags&unix.ST_NOSUID != 0:
		return ErrSetuidVoid
	}
	return nil
}

// helperPatience is the time in which the helper must report its version.
const helperPatience = 5 * time.Second

func (s system) helperVersion(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, helperPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.helper, "-V")
	cmd.Env = []string{"LC_ALL=C"}
	cmd.WaitDelay = time.Second
	output, err := cmd.Output()
	words := strings.Fields(string(output))
	if err != nil || len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// denied returns an error if mounting is denied although all tools exist.
func (s system) denied() error {
	if !s.direct {
		bits, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && bits != 0 {
			return errors.New("this process may not gain privileges (no_new_privs), so " + helperName + " runs without root's")
		}
		if !isNamed(os.Getuid()) {
			return fmt.Errorf("user %d: %w", os.Getuid(), ErrNoUser)
		}
		return nil
	}
	var caps [2]unix.CapUserData
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&head, &caps[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	if caps[unix.CAP_SYS_ADMIN/32].Effective&(1<<(unix.CAP_SYS_ADMIN%32)) == 0 {
		return errors.New("this root has no CAP_SYS_ADMIN, as in a container")
	}
	return nil
}

// isNamed reports whether the system has a name for a user, which the helper requires. A user who
// is not in /etc/passwd may be in a name service; if that cannot be queried, it returns true.
func isNamed(uid int) bool {
	const getent, missing = "/usr/bin/getent", 2
	id := strconv.Itoa(uid)
	if _, err := user.LookupId(id); err == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), helperPatience)
	defer cancel()
	exit, failed := errors.AsType[*exec.ExitError](exec.CommandContext(ctx, getent, "passwd", id).Run())
	return !failed || exit.ExitCode() != missing
}

// maxConfig is the maximum size of the configuration in bytes.
const maxConfig = 1 << 20

// checkShared reads the configuration as the helper does: text after a "#" is not part of a
// line, and an unterminated line is ignored.
func checkShared(config string) error {
	f, err := os.Open(config)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotShared
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(io.LimitReader(f, maxConfig))
	for {
		line, err := lines.ReadString('\n')
		text, _, _ := strings.Cut(line, "#")
		isShared := strings.TrimSpace(text) == "user_allow_other"
		switch {
		case isShared && err == nil:
			return nil
		case isShared:
			return ErrCutLine
		case errors.Is(err, io.EOF):
			return ErrNotShared
		case err != nil:
			return fmt.Errorf("read %q: %w", config, err)
		}
	}
}
