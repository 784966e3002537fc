package overlay

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The steps that can fail.
const (
	stepNamespace  = "making a namespace"
	stepPrivate    = "keeping mounts private"
	stepOpen       = "opening the directories"
	stepOverlay    = "opening overlayfs"
	stepLayers     = "setting the layers of overlayfs"
	stepMount      = "mounting the overlay"
	stepPrivileges = "giving up privileges"
)

// mount mounts the overlay on its lower directory. It returns an error with the failed step and the
// message of the kernel.
func (j *job) mount() (step, text string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return stepPrivate, "", err
	}
	layers := []struct {
		key, path string
		fd        int
	}{{key: "lowerdir", path: j.Command.Lower}, {key: "upperdir", path: j.Command.Upper}, {key: "workdir", path: j.Command.Work}}
	for i := range layers {
		fd, err := unix.Open(layers[i].path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return stepOpen, "", err
		}
		defer closeFD(fd)
		layers[i].fd = fd
	}
	lower := layers[0].fd
	var st unix.Stat_t
	if err := unix.Fstat(lower, &st); err != nil || st.Dev != j.Command.Device || st.Ino != j.Command.Inode {
		return stepOpen, "the directory was moved or replaced", errors.Join(err, unix.ESTALE)
	}
	fsfd, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return stepOverlay, "", err
	}
	defer closeFD(fsfd)
	for _, l := range layers {
		if err := unix.FsconfigSetString(fsfd, l.key, fmt.Sprintf("/proc/self/fd/%d", l.fd)); err != nil {
			return stepLayers, kernelMessage(fsfd), err
		}
	}
	// With this option, a layer could contain data that only an overlay can interpret, and could
	// not be sealed. In a user namespace it is off by default.
	err = unix.FsconfigSetString(fsfd, "metacopy", "off")
	if err == nil && j.User {
		err = unix.FsconfigSetFlag(fsfd, "userxattr")
	}
	if err == nil && !j.User {
		err = unix.FsconfigSetString(fsfd, "redirect_dir", "nofollow")
	}
	if err != nil {
		return stepLayers, kernelMessage(fsfd), err
	}
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return stepMount, kernelMessage(fsfd), err
	}
	attributes, err := j.attributes(lower)
	if err != nil {
		return stepMount, "", err
	}
	mfd, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return stepMount, kernelMessage(fsfd), err
	}
	defer closeFD(mfd)
	return stepMount, "", unix.MoveMount(mfd, "", lower, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// attributes returns the flags for the mount: what the mount of the directory forbids, the overlay
// forbids too.
func (j *job) attributes(lower int) (int, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(lower, &st); err != nil {
		return 0, err
	}
	flags := 0
	for flag, attribute := range map[int64]int{
		unix.ST_NOSUID: unix.MOUNT_ATTR_NOSUID, unix.ST_NODEV: unix.MOUNT_ATTR_NODEV, unix.ST_NOEXEC: unix.MOUNT_ATTR_NOEXEC,
	} {
		if st.Flags&flag != 0 {
			flags |= attribute
		}
	}
	if j.User {
		flags |= unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	}
	return flags, nil
}

// kernelMessage is the message of the kernel about a mount that failed.
func kernelMessage(fsfd int) string {
	var lines []string
	buf := make([]byte, 1024)
	for len(lines) < 16 {
		n, err := unix.Read(fsfd, buf)
		if err != nil || n <= 0 {
			break
		}
		if line, isError := strings.CutPrefix(strings.TrimSpace(string(buf[:n])), "e "); isError {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// checkDirectory rejects a directory in which something is mounted: an overlay does not show it.
func checkDirectory(dir string) error {
	raw, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := unescape(fields[4])
		if rest, is := strings.CutPrefix(at, strings.TrimSuffix(dir, "/")+"/"); is && rest != "" {
			return &UnavailableError{Step: stepOverlay, Reason: fmt.Sprintf("%q is mounted in %q, and an overlay does not show what is mounted beneath it", at, dir), Hint: "unmount it, or run the command over a directory in which nothing is mounted"}
		}
	}
	return nil
}

// unescape reverses the escapes of white space and backslashes in mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// closeFD closes a descriptor through which nothing was written.
func closeFD(fd int) { _ = unix.Close(fd) }
