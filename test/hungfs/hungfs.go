// Package hungfs mounts a directory as a file system that a test can have stop answering.
package hungfs

import (
	"sync"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// FS is a mounted file system. It answers until it hangs.
type FS struct {
	Dir string // where it is mounted

	mu       sync.Mutex
	released chan struct{} // nil while all requests since the last Answer are answered
	answers  bool          // new requests are answered
	isOnly   bool          // only reads of files wait
	waiting  int
	timer    *time.Timer // of the last Hang; nil before the first
}

// Mount mounts the directory of, read-only, until the end of the test.
func Mount(t testing.TB, of string) *FS {
	t.Helper()
	root, err := fs.NewLoopbackRoot(of)
	if err != nil {
		t.Fatal(err)
	}
	f := &FS{Dir: t.TempDir()}
	opts := fuse.MountOptions{Name: "hungfs", FsName: of, DirectMount: true, Options: []string{"ro"}, DisabledCapabilities: fuse.CAP_PASSTHROUGH} // a read is a request too
	server, err := fuse.NewServer(&hanging{fs.NewNodeFS(root, &fs.Options{}), f}, f.Dir, &opts)                                                   // nothing is cached: each lookup is a request
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Answer()
		if err := server.Unmount(); err != nil {
			t.Errorf("unmount %s: %v", f.Dir, err)
		}
	})
	return f
}

// Hang has each request from now on wait until the file system answers again, or, where that is
// possible, until its caller is interrupted. It answers after a while in any case: a process that ends
// while its own file system hangs would stay in the kernel.
func (f *FS) Hang() { f.hang(false) }

// HangReads is Hang for reads of files only: those of one file do not wait for those of another one, as
// two lookups of one name do.
func (f *FS) HangReads() { f.hang(true) }

func (f *FS) hang(isOnly bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released == nil {
		f.released = make(chan struct{})
	}
	f.answers, f.isOnly = false, isOnly
	if f.timer != nil {
		f.timer.Stop()
	}
	f.timer = time.AfterFunc(time.Minute, f.Answer)
}

// Answer ends that.
func (f *FS) Answer() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released != nil {
		f.timer.Stop()
		close(f.released)
		f.released = nil
	}
}

// AnswerNext answers new requests; those that wait do so until Answer.
func (f *FS) AnswerNext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = true
}

// Waiting is how many requests wait.
func (f *FS) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting
}

func (f *FS) await(cancel <-chan struct{}, isRead bool) fuse.Status {
	f.mu.Lock()
	released := f.released
	if released == nil || f.answers || f.isOnly && !isRead {
		f.mu.Unlock()
		return fuse.OK
	}
	f.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waiting--
	}()
	select {
	case <-released:
		return fuse.OK
	case <-cancel:
		return fuse.EINTR
	}
}

// hanging is the server.
type hanging struct {
	fuse.RawFileSystem
	fs *FS
}

func (h *hanging) Lookup(cancel <-chan struct{}, in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	if st := h.fs.await(cancel, false); st != fuse.OK {
		return st
	}
	return h.RawFileSystem.Lookup(cancel, in, name, out)
}

func (h *hanging) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if st := h.fs.await(cancel, false); st != fuse.OK {
		return st
	}
	return h.RawFileSystem.Open(cancel, in, out)
}

func (h *hanging) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if st := h.fs.await(cancel, true); st != fuse.OK {
		return nil, st
	}
	return h.RawFileSystem.Read(cancel, in, buf)
}

func (h *hanging) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	if st := h.fs.await(cancel, false); st != fuse.OK {
		return st
	}
	return h.RawFileSystem.ReadDirPlus(cancel, in, out)
}
