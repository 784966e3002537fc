package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/blocklog"
)

// A Format is a file system, how it is made, and how it is mounted.
type Format struct {
	Name    string
	Kind    string   // as mount(2) names it
	Options string   // of the mount
	Size    int64    // of the image; 0: it has none
	Mkfs    []string // the command that makes it, less the path of the image
	Fresh   bool     // by its command each time; else once in a test process, and then copied, without its zeros
	Slack   Usage    // by how much its counts may differ though nothing is left
}

// Usage is what a file system reports as free, in bytes and inodes.
type Usage struct{ Bytes, Inodes int64 }

// The formats. Few has few inodes.
var (
	Ext4      = Ext4With("ext4", 32<<20, "-b", "4096", "-E", "nodiscard,lazy_itable_init=0")
	Ext4Large = Ext4With("ext4", 64<<20, "-b", "4096", "-E", "nodiscard,lazy_itable_init=0")
	Ext41K    = Ext4With("ext4-1k", 16<<20, "-b", "1024", "-E", "nodiscard")
	Ext4Few   = Ext4With("ext4-few", 16<<20, "-b", "4096", "-E", "nodiscard", "-N", "192")
	Ext4Roomy = Ext4With("ext4", 256<<20, "-E", "nodiscard")
	// Ext4NoJournal loses the order of syncs when the power is cut, but not when a process is killed.
	Ext4NoJournal = Ext4With("ext4-nojournal", 256<<20, "-E", "nodiscard", "-O", "^has_journal")
	// A copy of an XFS has the same UUID, which the kernel mounts only once without the option nouuid.
	XFS = Format{
		Name: "xfs", Kind: "xfs", Options: "nouuid", Size: 300 << 20,
		Mkfs: []string{"mkfs.xfs", "-q", "-f", "-K"}, Slack: Usage{256 << 10, 1 << 40},
	}
	// Not every kernel mounts a copy of a Btrfs beside it.
	Btrfs = Format{
		Name: "btrfs", Kind: "btrfs", Size: 128 << 20,
		Mkfs: []string{"mkfs.btrfs", "-q", "-f", "-K"}, Fresh: true, Slack: Usage{2 << 20, 1 << 40},
	}
	Tmpfs = TmpfsWith("tmpfs", "size=16m")
	// Overlay has its layers on a tmpfs.
	Overlay  = Format{Name: "overlay", Kind: "overlay"}
	TmpfsFew = TmpfsWith("tmpfs-few", "size=16m,nr_inodes=200")
)

// Ext4With is an ext4 that keeps no blocks for root.
func Ext4With(name string, size int64, flags ...string) Format {
	return Format{Name: name, Kind: "ext4", Size: size, Mkfs: append([]string{"mkfs.ext4", "-q", "-F", "-m", "0"}, flags...)}
}

// TmpfsWith is a tmpfs with these options.
func TmpfsWith(name, options string) Format {
	return Format{Name: name, Kind: "tmpfs", Options: options}
}

// A Volume is a file system of its own, and a place to mount it. Its image is in memory.
type Volume struct {
	Format
	Image string // its file; "": none
	Path  string // its mount point
}

// NewVolume makes a file system, not yet mounted. It is unmounted when the test ends.
func NewVolume(t testing.TB, f Format) *Volume {
	t.Helper()
	blocklog.Need(t)
	return NewVolumeIn(t, MemoryDir(t), f)
}

// NewVolumeIn is NewVolume with the image and the mount point in this directory.
func NewVolumeIn(t testing.TB, dir string, f Format) *Volume {
	t.Helper()
	path := filepath.Join(dir, "mnt")
	Must(t, os.Mkdir(path, 0o755))
	v := f.volume(t, dir, path)
	t.Cleanup(func() { _ = blocklog.Unmount(v.Path) })
	return v
}

// MountOn makes a file system, with its image or its layers in this directory, and mounts it
// on a path that exists, until the mount goes in which that path is.
func (f Format) MountOn(t testing.TB, dir, path string) {
	t.Helper()
	if f.Kind == Overlay.Kind {
		f.Options = layersIn(t, dir)
	}
	f.volume(t, dir, path).Mount(t)
	if err := os.Remove(filepath.Join(path, "lost+found")); !errors.Is(err, os.ErrNotExist) {
		Must(t, err)
	}
}

func (f Format) volume(t testing.TB, dir, path string) *Volume {
	t.Helper()
	v := &Volume{Format: f, Path: path}
	if f.Size > 0 {
		v.Image = filepath.Join(dir, "image")
		Must(t, f.format(v.Image))
	}
	return v
}

// layersIn makes the layers of an overlay, and returns the options of its mount.
func layersIn(t testing.TB, dir string) string {
	t.Helper()
	var layers []string
	for _, layer := range []string{"lowerdir", "upperdir", "workdir"} {
		Must(t, os.Mkdir(filepath.Join(dir, layer), 0o755))
		layers = append(layers, layer+"="+filepath.Join(dir, layer))
	}
	return strings.Join(layers, ",")
}

// MountedVolume makes a file system and mounts it.
func MountedVolume(t testing.TB, f Format) *Volume {
	t.Helper()
	if f.Kind == Overlay.Kind {
		f.Options = layersIn(t, MountedVolume(t, Tmpfs).Path)
	}
	v := NewVolume(t, f)
	v.Mount(t)
	return v
}

// templates are the images that were made in this process, by their commands.
var templates sync.Map // of *template

type template struct {
	once  sync.Once
	image *blocklog.Image
	err   error
}

// format makes the image of a file system: by its command the first time, and then as
// a copy.
func (f Format) format(path string) error {
	if f.Fresh {
		return f.run(path)
	}
	known, _ := templates.LoadOrStore(fmt.Sprint(f.Size, f.Mkfs), &template{})
	tpl := known.(*template)
	tpl.once.Do(func() {
		if tpl.err = f.run(path); tpl.err == nil {
			tpl.image, tpl.err = blocklog.LoadImage(path)
		}
	})
	if tpl.err != nil {
		return tpl.err
	}
	return tpl.image.Save(path)
}

// run runs the command on a new image.
func (f Format) run(path string) error {
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, f.Size)); err != nil {
		return err
	}
	argv := append(append([]string{}, f.Mkfs...), path)
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", argv, err, out)
	}
	return nil
}

// Mount mounts the volume.
func (v *Volume) Mount(t testing.TB) {
	t.Helper()
	if v.Image == "" {
		Must(t, unix.Mount(v.Kind, v.Path, v.Kind, 0, v.Options))
		return
	}
	Must(t, v.MountFile(v.Image))
}

// MountFile mounts the file system that is in another file.
func (v *Volume) MountFile(file string) error {
	return blocklog.Mount(file, v.Path, v.Kind, v.Options)
}

// Unmount unmounts the volume.
func (v *Volume) Unmount(t testing.TB) {
	t.Helper()
	Must(t, blocklog.Unmount(v.Path))
}

// Remount unmounts and mounts the volume: nothing that was cached is left.
func (v *Volume) Remount(t testing.TB) {
	t.Helper()
	v.Unmount(t)
	v.Mount(t)
}

// Sync writes everything down.
func (v *Volume) Sync(t testing.TB) {
	t.Helper()
	Must(t, v.open(func(f *os.File) error { return unix.Syncfs(int(f.Fd())) }))
}

// What survives when the power is taken.
const (
	LogFlushed = 1 // the log is written first: metadata survives, data does not
	LogLost    = 2 // only what is in the log survives
)

// Shutdown takes the power of an ext4 or XFS: from here on nothing reaches its image.
func (v *Volume) Shutdown(t testing.TB, flag int) {
	t.Helper()
	const shutdownIoctl = 0x8004587d // _IOR('X', 125, __u32), which ext4 has from XFS
	Must(t, v.open(func(f *os.File) error { return unix.IoctlSetPointerInt(int(f.Fd()), shutdownIoctl, flag) }))
}

// Subvolume makes a subvolume at a path on a mounted Btrfs.
func Subvolume(t testing.TB, path string) {
	t.Helper()
	const create = 0x5000940e // BTRFS_IOC_SUBVOL_CREATE
	var args struct {         // btrfs_ioctl_vol_args
		fd   int64
		name [4088]byte
	}
	copy(args.name[:], filepath.Base(path))
	parent, err := os.Open(filepath.Dir(path))
	Must(t, err)
	defer parent.Close()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, parent.Fd(), create, uintptr(unsafe.Pointer(&args))); errno != 0 {
		t.Fatalf("subvolume %q: %v", path, errno)
	}
}

// SetReadOnly makes the mount read-only, or writable again.
func (v *Volume) SetReadOnly(on bool) error { return SetReadOnly(v.Path, on) }

// SetReadOnly makes a mount read-only, or writable again.
func SetReadOnly(mountpoint string, on bool) error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND)
	if on {
		flags |= unix.MS_RDONLY
	}
	return unix.Mount("", mountpoint, "", flags, "")
}

// open runs a function on the mount point.
func (v *Volume) open(use func(*os.File) error) error {
	f, err := os.Open(v.Path)
	if err != nil {
		return err
	}
	return errors.Join(use(f), f.Close())
}

// MountedOverlay mounts an overlay in memory and returns where.
func MountedOverlay(t testing.TB) string {
	t.Helper()
	layers := layersIn(t, MountedVolume(t, Tmpfs).Path)
	dir := t.TempDir()
	Must(t, unix.Mount("overlay", dir, "overlay", 0, layers))
	t.Cleanup(func() { Must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}
