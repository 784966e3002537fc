package fusemount

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// helperName is the setuid program that mounts for users.
const helperName = "fusermount3"

// findHelper returns the absolute path of the helper, or "". It looks in the usual directory, then
// in PATH, and skips directories that another user serves.
func findHelper() string {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, helperName)); err == nil {
			return path
		}
	}
	for dir := range served.PathDirs() {
		if path, err := exec.LookPath(filepath.Join(dir, helperName)); err == nil {
			return path
		}
	}
	return ""
}

// mountHelped has the helper mount. It opens the device, mounts it, and sends
// the descriptor through a socket.
func (s system) mountHelped(p *heldDir, opts Options) (int, error) {
	if s.helper == "" {
		return -1, fmt.Errorf("%w: %s is not installed", ErrUnavailable, helperName)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socketpair: %w", err)
	}
	defer func() { _ = unix.Close(pair[0]) }()
	remote := os.NewFile(uintptr(pair[1]), "fusermount3 socket")
	defer remote.Close()
	options := append(flagNames(opts), dataOptions(opts)...)
	options = append(options, "subtype="+fsSubtype, "fsname="+escapeOption(opts.Source))
	if err := s.runHelper(remote, "-o", strings.Join(options, ","), "--", p.path); err != nil {
		return -1, err
	}
	_ = remote.Close() // or a helper that sent nothing would leave us waiting
	return receiveFd(pair[0])
}

func (s system) unmountHelped(path string, lazily bool) error {
	if s.helper == "" {
		return fmt.Errorf("%w: %s is not installed", ErrUnavailable, helperName)
	}
	args := []string{"-u", "--", path}
	if lazily {
		args = []string{"-u", "-z", "--", path}
	}
	return s.runHelper(nil, args...)
}

// runHelper runs the helper with an empty environment and no terminal, and with no descriptor
// except the socket. Its error has the output of the helper.
func (s system) runHelper(socket *os.File, args ...string) error {
	var output bytes.Buffer
	cmd := exec.Command(s.helper, args...)
	cmd.Env = []string{"LC_ALL=C"} // "busy" is recognised by its text
	cmd.Stdout, cmd.Stderr = &output, &output
	if socket != nil {
		cmd.Env = append(cmd.Env, "_FUSE_COMMFD=3")
		cmd.ExtraFiles = []*os.File{socket}
	}
	err := cmd.Run()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(output.String())
	if strings.Contains(strings.ToLower(text), "resource busy") {
		return fmt.Errorf("%s: %w", helperName, unix.EBUSY)
	}
	if strings.Contains(text, "'user_allow_other' is set") {
		return fmt.Errorf("%w: %q", ErrAllowOther, text)
	}
	if strings.Contains(text, "could not determine username") {
		return fmt.Errorf("%w: %q", ErrNoUser, text)
	}
	if strings.HasSuffix(text, "mount failed: Operation not permitted") { // its set-user-id bit is void, as with no_new_privs
		return fmt.Errorf("%w: the kernel rejects the mount: %s: %w", ErrUnavailable, helperName, unix.EPERM)
	}
	if errno := errnoIn(text); errno != 0 {
		return fmt.Errorf("%s: %w: %q", helperName, errno, text)
	}
	return fmt.Errorf("%s: %w: %q", helperName, err, text)
}

// errnoIn returns the system error in the output of the helper, or 0. The helper itself checks the
// owner of a mount point.
func errnoIn(text string) syscall.Errno {
	for _, foreign := range []string{"no write access to mountpoint", "not owned by user"} {
		if strings.Contains(text, foreign) {
			return unix.EPERM
		}
	}
	for _, errno := range []syscall.Errno{unix.EPERM, unix.EACCES, unix.ENOMEM, unix.ENOSPC, unix.EMFILE, unix.ENFILE, unix.ENAMETOOLONG, unix.ENODEV, unix.EIO} {
		if strings.HasSuffix(strings.ToLower(text), errno.Error()) {
			return errno
		}
	}
	return 0
}

// escapeOption escapes the characters that end an option or begin an escape.
func escapeOption(s string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`).Replace(s)
}

// receiveFd receives one descriptor from a socket.
func receiveFd(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("%s sent no descriptor: %w", helperName, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return -1, fmt.Errorf("%s sent no descriptor", helperName)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, fmt.Errorf("%s sent no descriptor", helperName)
	}
	return fds[0], nil
}
