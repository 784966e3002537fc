package blocklog

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// The names in a store.
const (
	diskName = "disk"
	markName = "mark"
)

// serve is the process of a store. It says "ready" on stdout, and ends when
// stdin does.
func serve(base, log, mountpoint string) error {
	img, err := LoadImage(base)
	if err != nil {
		return err
	}
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	l := &logger{img: img, log: f}
	server, err := fs.Mount(mountpoint, &storeRoot{l: l}, &fs.Options{MountOptions: fuse.MountOptions{
		Name: "blocklog", FsName: base, DirectMount: true, MaxWrite: 1 << 20,
	}})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	if server.Unmount() != nil {
		breakOff(mountpoint)
	} else {
		server.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		err = l.err
	}
	return err
}

// breakOff ends a store that is busy: a test that failed has left something
// mounted on it. From here on all that is asked of the disk fails. Without that,
// the last process of a mount namespace would unmount what it serves itself.
func breakOff(mountpoint string) {
	_ = unix.Unmount(mountpoint, unix.MNT_FORCE) // aborts, though it says EBUSY
	_ = unix.Unmount(mountpoint, unix.MNT_DETACH)
}

// A logger takes the requests of a disk one after the other.
type logger struct {
	mu  sync.Mutex
	img *Image
	log *os.File
	err error // the first one
}

func (l *logger) take(r Record) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.log.Write(r.appendTo(nil))
	}
	if l.err != nil {
		return syscall.EIO
	}
	if r.Kind == Write {
		l.img.write(r.Data, r.Off)
	}
	return 0
}

type storeRoot struct {
	fs.Inode
	l *logger
}

type diskNode struct {
	fs.Inode
	l *logger
}

type markNode struct {
	fs.Inode
	l *logger
}

var (
	_ fs.NodeOnAdder   = (*storeRoot)(nil)
	_ fs.NodeGetattrer = (*diskNode)(nil)
	_ fs.NodeSetattrer = (*diskNode)(nil)
	_ fs.NodeOpener    = (*diskNode)(nil)
	_ fs.NodeReader    = (*diskNode)(nil)
	_ fs.NodeWriter    = (*diskNode)(nil)
	_ fs.NodeFsyncer   = (*diskNode)(nil)
	_ fs.NodeAllocater = (*diskNode)(nil)
	_ fs.NodeGetattrer = (*markNode)(nil)
	_ fs.NodeSetattrer = (*markNode)(nil)
	_ fs.NodeOpener    = (*markNode)(nil)
	_ fs.NodeWriter    = (*markNode)(nil)
	_ fs.InodeEmbedder = (*storeRoot)(nil)
)

func (r *storeRoot) OnAdd(ctx context.Context) {
	file := fs.StableAttr{Mode: syscall.S_IFREG}
	r.AddChild(diskName, r.NewPersistentInode(ctx, &diskNode{l: r.l}, file), true)
	r.AddChild(markName, r.NewPersistentInode(ctx, &markNode{l: r.l}, file), true)
}

func (d *diskNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(d.l.img.size)
	return 0
}

// Setattr changes nothing: the kernel only sets times.
func (d *diskNode) Setattr(ctx context.Context, f fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return d.Getattr(ctx, f, out)
}

func (d *diskNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, 0, 0
}

func (d *diskNode) Read(_ context.Context, _ fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	return fuse.ReadResultData(d.l.img.read(dest, off)), 0
}

func (d *diskNode) Write(_ context.Context, _ fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if off+int64(len(data)) > d.l.img.size {
		return 0, syscall.EFBIG
	}
	return uint32(len(data)), d.l.take(Record{Write, off, data})
}

func (d *diskNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return d.l.take(Record{Kind: Flush})
}

// Allocate is what a discard becomes. This disk has none.
func (d *diskNode) Allocate(context.Context, fs.FileHandle, uint64, uint64, uint32) syscall.Errno {
	return syscall.EOPNOTSUPP
}

func (m *markNode) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode = syscall.S_IFREG | 0o600
	return 0
}

// Setattr is for the truncation when the file is opened.
func (m *markNode) Setattr(ctx context.Context, f fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return m.Getattr(ctx, f, out)
}

func (m *markNode) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (m *markNode) Write(_ context.Context, _ fs.FileHandle, data []byte, _ int64) (uint32, syscall.Errno) {
	return uint32(len(data)), m.l.take(Record{Kind: Mark, Data: data})
}
