package attack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
)

// This file is a FUSE server of the test's own: an ordinary user's, who passes it off as
// a view. It reports each request, and can attack the thread that sends one.

const serverEnv = "ATTACK_VIEW_SERVER"

// answers are what such a server does.
type answers struct {
	Size   int64 // of every file: so many bytes of JSON
	Attack bool  // take the requester's limits and its life
	Own    bool  // only its user may ask, and not even root
}

// init is where the test binary goes on when it was started as a server. The
// descriptor of the connection is number 3.
func init() {
	text, ok := os.LookupEnv(serverEnv)
	if !ok {
		return
	}
	var a answers
	err := json.Unmarshal([]byte(text), &a)
	var server *fuse.Server
	if err == nil {
		server, err = fuse.NewServer(&hostile{fuse.NewDefaultRawFileSystem(), a}, "/dev/fd/3", &fuse.MountOptions{})
	}
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	server.Serve()
	os.Exit(0)
}

type hostile struct {
	fuse.RawFileSystem
	answers
}

// note reports who asks, and attacks.
func (h *hostile) note(what string, in *fuse.InHeader) {
	fmt.Printf("request %s %d %d\n", what, in.Uid, in.Pid)
	if !h.Attack {
		return
	}
	_ = unix.Prlimit(int(in.Pid), unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil)
	for _, task := range tasksBeside(int(in.Pid)) {
		_ = unix.Tgkill(task[0], task[1], unix.SIGKILL)
	}
}

// tasksBeside returns the thread with its process.
func tasksBeside(tid int) [][2]int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for line := range strings.Lines(string(status)) {
		var pid int
		if _, err := fmt.Sscanf(line, "Tgid: %d", &pid); err == nil {
			return [][2]int{{pid, tid}}
		}
	}
	return nil
}

const (
	rootDir = 1
	control = 2
	file    = 3
)

func (h *hostile) fill(node uint64, out *fuse.Attr) {
	*out = fuse.Attr{Ino: node, Mode: fuse.S_IFDIR | 0o755, Nlink: 2, Owner: fuse.Owner{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}}
	if node == file {
		out.Mode, out.Size = fuse.S_IFREG|0o644, uint64(h.Size)
	}
}

func (h *hostile) Lookup(_ <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	h.note("lookup", in)
	out.NodeId = file
	if in.NodeId == rootDir {
		out.NodeId = control
	}
	h.fill(out.NodeId, &out.Attr)
	return fuse.OK
}

func (h *hostile) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	h.note("getattr", &in.InHeader)
	h.fill(in.NodeId, &out.Attr)
	return fuse.OK
}

func (h *hostile) Access(_ <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	h.note("access", &in.InHeader)
	return fuse.OK
}

func (h *hostile) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	h.note("opendir", &in.InHeader)
	return fuse.OK
}

func (h *hostile) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, _ *fuse.DirEntryList) fuse.Status {
	h.note("readdir", &in.InHeader)
	return fuse.OK
}

func (h *hostile) StatFs(_ <-chan struct{}, in *fuse.InHeader, _ *fuse.StatfsOut) fuse.Status {
	h.note("statfs", in)
	return fuse.OK
}

func (h *hostile) Open(_ <-chan struct{}, in *fuse.OpenIn, _ *fuse.OpenOut) fuse.Status {
	h.note("open", &in.InHeader)
	return fuse.OK
}

func (h *hostile) Ioctl(_ <-chan struct{}, in *fuse.IoctlIn, _ []byte, _ *fuse.IoctlOut, _ []byte) fuse.Status {
	h.note("ioctl", &in.InHeader)
	return fuse.ENOSYS
}

// Read returns a JSON object with as many small values as the size allows.
func (h *hostile) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	h.note("read", &in.InHeader)
	const begin, end = `{"runs":[{}`, `]}`
	n := int(max(0, min(int64(in.Size), h.Size-int64(in.Offset))))
	for i := range n {
		at := int64(in.Offset) + int64(i)
		switch {
		case at < int64(len(begin)):
			buf[i] = begin[at]
		case at >= h.Size-int64(len(end)):
			buf[i] = end[at-h.Size+int64(len(end))]
		default:
			buf[i] = ",{}"[(at-int64(len(begin)))%3]
		}
	}
	return fuse.ReadResultData(buf[:n]), fuse.OK
}

// served is a running server.
type served struct {
	dir string
	cmd *exec.Cmd

	mu       sync.Mutex
	requests []string
}

// serveAs mounts on a directory what a user serves, for all users.
func serveAs(t *testing.T, uid uint32, dir string, a answers) *served {
	t.Helper()
	needRoot(t)
	text, err := json.Marshal(a)
	harness.Must(t, err)
	dev, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	harness.Must(t, err)
	defer dev.Close()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev.Fd(), uid, uid)
	if !a.Own {
		options += ",allow_other"
	}
	harness.Must(t, unix.Mount("spectrum", dir, "fuse.spectrum", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, options))
	s := &served{dir: dir, cmd: exec.Command("/proc/self/exe")}
	s.cmd.Env = []string{serverEnv + "=" + string(text)}
	s.cmd.ExtraFiles = []*os.File{dev}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := s.cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, s.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if !strings.HasPrefix(lines.Text(), "request ") {
				continue // it was ended before it was ready
			}
			s.mu.Lock()
			s.requests = append(s.requests, lines.Text())
			s.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-read
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("the server said %q", s.asked())
		}
	})
	return s
}

// asked returns the requests so far.
func (s *served) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// checkUnasked requires that there was no request at all.
func (s *served) checkUnasked(t *testing.T, by string) {
	t.Helper()
	if asked := s.asked(); len(asked) != 0 {
		t.Errorf("%s sent requests to the server of another user: %q", by, asked)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user's victim")
	}
}

// mountsOn counts the mounts on a directory.
func mountsOn(t *testing.T, dir string) int {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	harness.Must(t, err)
	return strings.Count(string(table), " "+dir+" ")
}

// open is a directory that all users may enter, with those above it. Whatever a test
// leaves mounted beneath goes with it.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		harness.Must(t, os.Chmod(d, 0o755))
	}
	t.Cleanup(func() { takeAway(t, dir) })
	return dir
}

// takeAway unmounts what is mounted beneath a directory.
func takeAway(t *testing.T, dir string) {
	t.Helper()
	for range 20 {
		table, err := os.ReadFile("/proc/self/mountinfo")
		harness.Must(t, err)
		left := false
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); harness.Inside(fields[4], dir) {
				left = true
				_ = unix.Unmount(fields[4], unix.MNT_DETACH)
			}
		}
		if !left {
			return
		}
	}
	t.Errorf("mounts are left beneath %q", dir)
}
