package fusefs

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Options are what a [Server] needs beside its tree. The zero value is usable.
type Options struct {
	VolumeSet VolumeSet // adds directories to the root of the tree; nil: none
	Stats     *Stats    // counts what is read; nil: not counted

	// Unsized is set if trees of the volume set may have sources that are [Unsized].
	Unsized bool

	// Log gets findings (Error), and what the FUSE library has to say (Debug). nil: no log.
	Log *slog.Logger

	// OnTamper is called once for each distinct failure of a source, at the
	// same time as it is logged, from the goroutine that serves the read: it
	// must not block, and must not touch the view. nil: not called.
	OnTamper func(path string, err error)

	// AnswerOpen has OPEN and OPENDIR answered as an older kernel needs it, though this one
	// could do without. For tests and measurements.
	AnswerOpen bool
}

const (
	// MaxRequest is the most that the kernel sends in one request (256 pages), in bytes:
	// fewer round trips, and fewer blocks that are checked twice because a
	// request ended inside them. Read-ahead stays at what the kernel grants a
	// FUSE mount, 128 KiB, in several requests at once.
	MaxRequest = 1 << 20

	// maxBackground lets the kernel read ahead for many files at once; its
	// default of 12 requests is two readers' worth.
	maxBackground = 64
)

// A Server answers the requests of the kernel for one mounted tree. [New] makes it,
// [Server.Attach] connects it, and [Server.Serve] runs it to its end.
type Server struct {
	fs     *fileSystem
	server *fuse.Server
	dev    *os.File // our own descriptor of the FUSE connection, for HangUp
}

// New returns a server that is not connected yet. The error is [ErrBadTree], if there is no
// tree.
func New(tree *Tree, opts Options) (*Server, error) {
	if tree == nil || len(tree.nodes) == 0 {
		return nil, fmt.Errorf("%w: there is no tree", ErrBadTree)
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Stats == nil {
		opts.Stats = new(Stats)
	}
	return &Server{fs: newFileSystem(tree, opts)}, nil
}

// Attach connects the server to a descriptor of /dev/fuse that is already mounted. It takes
// over the descriptor, also when it fails.
func (s *Server) Attach(dev int) error {
	own, err := unix.FcntlInt(uintptr(dev), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		_ = unix.Close(dev)
		return err
	}
	// go-fuse takes over a descriptor that is given to it under this name.
	s.server, err = fuse.NewServer(s.fs, fmt.Sprintf("/dev/fd/%d", dev), serverOptions(s.fs.log))
	if err != nil {
		_ = unix.Close(own)
		return err
	}
	s.dev = os.NewFile(uintptr(own), "/dev/fuse")
	return nil
}

// Serve answers requests until the kernel ends the connection, or [Server.HangUp] does.
func (s *Server) Serve() {
	s.server.Serve()
	_ = s.dev.Close() // the last descriptor: waiting readers get an error
}

// serverOptions are the parts of the FUSE protocol that we choose.
func serverOptions(log *slog.Logger) *fuse.MountOptions {
	return &fuse.MountOptions{
		MaxWrite:      MaxRequest, // the limit for reads as well
		MaxReadAhead:  MaxRequest, // the kernel lowers it to what it allows
		MaxBackground: maxBackground,
		// The kernel must not drop pages on its own guess that a file changed:
		// none ever does.
		ExplicitDataCacheControl: true,
		// Our answers are checked bytes in memory, there is nothing to splice.
		DisableSplice: true,
		Name:          "spectrum",
		Logger:        slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		PanicHandler: func(what any) fuse.Status {
			log.Error("internal error in a request of the view: the caller gets an I/O error", "panic", what)
			return fuse.EIO
		},
	}
}

// End makes requests that wait for a [Volume] or a [VolumeSet] return.
func (s *Server) End() { s.fs.end() }

// RevokeRequested is closed when root, or the user who serves, has sent [RevokeRequest].
// From then on every request is answered with an error.
func (s *Server) RevokeRequested() <-chan struct{} { return s.fs.revoked }

// Drop has the kernel forget all that it keeps of the view: contents, listings,
// attributes. It blocks while a read is at work.
func (s *Server) Drop() { s.fs.dropAll() }

// HangUp makes the server's loops end although the connection still lives,
// which go-fuse has no call for: further reads of the device fail with EAGAIN
// instead of waiting, and the threads that wait already are interrupted by the
// signal that the Go runtime uses to interrupt itself; their read is started
// again by the kernel and fails too. When the server has ended, its descriptor
// and then ours are closed, and the kernel cuts the connection.
func (s *Server) HangUp() {
	conn, err := s.dev.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { _ = unix.SetNonblock(int(fd), true) })
	}
	if err != nil {
		return // ended in between
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
		}
	}
}
