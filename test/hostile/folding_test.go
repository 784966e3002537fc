package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/spectrumfs/spectrum/test/harness"
)

// A folder is a file system that folds names: upper case and lower case are one,
// and so are two forms of a letter with its accent. It shows a directory, and
// keeps every name as it was folded. The kernel of the tests need have none of
// its own that does.
type folder struct{ fuse.RawFileSystem }

var forms = strings.NewReplacer("e\u0301", "\u00e9")

// fold folds a name. Those of the result artifacts stay as they are, so that the
// tests find them.
func fold(name string) string {
	if strings.HasPrefix(name, "RESTORE_") {
		return name
	}
	return forms.Replace(strings.ToLower(name))
}

func (f folder) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return f.RawFileSystem.Lookup(cancel, header, fold(name), out)
}

func (f folder) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return f.RawFileSystem.Create(cancel, in, fold(name), out)
}

func (f folder) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.RawFileSystem.Mkdir(cancel, in, fold(name), out)
}

// Tmpfile: a file without a name is not to be had here.
func (f folder) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return fuse.ENOSYS
}

func (f folder) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return f.RawFileSystem.Link(cancel, in, fold(name), out)
}

func (f folder) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.RawFileSystem.Unlink(cancel, header, fold(name))
}

func (f folder) Rmdir(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.RawFileSystem.Rmdir(cancel, header, fold(name))
}

func (f folder) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, to string) fuse.Status {
	return f.RawFileSystem.Rename(cancel, in, fold(name), fold(to))
}

// foldingRoot makes the restore root one that folds names.
func (p *place) foldingRoot() {
	p.Helper()
	backing := p.TempDir()
	loopback, err := fs.NewLoopbackRoot(backing)
	harness.Must(p, err)
	server, err := fuse.NewServer(folder{fs.NewNodeFS(loopback, &fs.Options{})}, p.root,
		&fuse.MountOptions{DirectMountStrict: true, FsName: "folding", Name: "folding"})
	harness.Must(p, err)
	go server.Serve()
	harness.Must(p, server.WaitMount())
	p.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			p.Errorf("the folding file system: %v", err)
			_ = syscall.Unmount(p.root, syscall.MNT_DETACH)
		}
	})
	p.folds()
}

// folds makes sure that the root folds names: the control of the rows about it.
func (p *place) folds() {
	p.Helper()
	for name, twin := range map[string]string{"probe": "PROBE", "\u00e9": "e\u0301"} {
		harness.Must(p, emptyFile(filepath.Join(p.root, name)))
		if _, err := os.Lstat(filepath.Join(p.root, twin)); err != nil {
			p.Fatalf("%q and %q are two: %v", name, twin, err)
		}
		harness.Must(p, os.Remove(filepath.Join(p.root, name)))
	}
}
