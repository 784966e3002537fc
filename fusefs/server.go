package fusefs

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Options are the options of a [Server]. The zero value is usable.
type Options struct {
	VolumeSet VolumeSet // adds directories to the root of the tree; nil: none
	Stats     *Stats    // counts what is read, unless nil

	// Unsized is set if trees of the volume set may have sources that are [Unsized].
	Unsized bool

	// Log receives findings (Error) and messages of the FUSE library (Debug), unless nil.
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
	// MaxRequest is the maximum size of a request of the kernel (256 pages), in bytes: large ones
	// save round trips, and fewer blocks are checked twice because a request ended inside them.
	MaxRequest = 1 << 20

	// maxBackground lets the kernel read ahead for many files at once; its default of 12 requests
	// suffices for two readers.
	maxBackground = 64
)

// A Server answers the requests of the kernel for one mounted tree. [New] makes it,
// [Server.Attach] connects it, and [Server.Serve] runs it to its end.
type Server struct {
	fs     *fileSystem
	server *fuse.Server
	dev    *os.File // our own descriptor of the FUSE connection, for HangUp
}

// New returns a server that is not connected yet. It returns [ErrBadTree] if there is no tree.
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

// Attach connects the server to a mounted descriptor of /dev/fuse. It takes ownership of the
// descriptor, even on an error.
func (s *Server) Attach(dev int) error {
	own, err := unix.FcntlInt(uintptr(dev), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		_ = unix.Close(dev)
		return err
	}
	// go-fuse takes ownership of a descriptor that is passed under this name.
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
		MaxReadAhead:  MaxRequest, // the kernel reduces it to its limit
		MaxBackground: maxBackground,
		// The kernel must not drop pages on its own guess that a file changed:
		// none ever does.
		ExplicitDataCacheControl: true,
		// The answers are checked bytes in memory, which cannot be spliced.
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

// RevokeRequested returns a channel that is closed when root, or the serving user, has sent
// [RevokeRequest]. From then on every request is answered with an error.
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
