package pathsafe

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const filterEnv = "PATHSAFE_TEST_FILTER"

// If the kernel does not know openat2, or a filter forbids it, the walk of components is chosen,
// and everything works.
func TestFallbackIsChosen(t *testing.T) {
	switch os.Getenv(filterEnv) {
	case "ENOSYS":
		checkFallback(t, unix.ENOSYS)
		return
	case "EPERM":
		checkFallback(t, unix.EPERM)
		return
	}
	for _, errno := range []string{"ENOSYS", "EPERM"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFallbackIsChosen$", "-test.v")
		cmd.Env = append(os.Environ(), filterEnv+"="+errno)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("without openat2 (%s): %v\n%s", errno, err, out)
		}
	}
}

func checkFallback(t *testing.T, errno syscall.Errno) {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	plant(t, root, "d/f", "out -> /etc/passwd", "in -> d/f", "n/")
	forbidOpenat2(t, errno)
	if _, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH}); err != errno {
		t.Fatalf("the filter does not work: %v", err)
	}
	d, err := OpenRoot(root)
	must(t, err)
	if d.w != (componentWalker{}) {
		t.Errorf("%T was chosen", d.w)
	}
	checkReason(t, d, mustParse(t, "d/f"), NoLinks, "ok")
	checkReason(t, d, mustParse(t, "in"), LinksBeneath, "ok")
	checkReason(t, d, mustParse(t, "out"), LinksBeneath, "escape")
	sub, err := d.OpenDir("n")
	must(t, err)
	must(t, sub.Mkdir("x", 0o755))
	if got := surveyWord(d, mustParse(t, "n/x")); got != "exists" {
		t.Errorf("survey: %s", got)
	}
}

// forbidOpenat2 makes openat2 fail in every thread of this process, permanently.
func forbidOpenat2(t *testing.T, errno syscall.Errno) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_OPENAT2},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	must(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		t.Fatal(e)
	}
}
