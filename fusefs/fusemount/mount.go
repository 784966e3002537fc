package fusemount

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/scarce"
	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// ErrUnavailable means that this machine, or this user on it, cannot mount a FUSE file system at
// all. The text names what is missing.
var ErrUnavailable = errors.New("mounting is not possible here")

// ErrNoUser is the [ErrUnavailable] of a user without a name in the system: the helper mounts
// for named users only.
var ErrNoUser = fmt.Errorf("%w for a user without an entry in passwd", ErrUnavailable)

// ErrAllowOther is the [ErrUnavailable] of a user who may not give other users access.
var ErrAllowOther = fmt.Errorf("%w for other users", ErrUnavailable)

// Options are the options of a mount and its callbacks. The zero value is the strictest.
type Options struct {
	Source     string // what the mount table shows as the source; "" is "spectrum"
	Exec       bool   // programs may be run from the view
	AllowOther bool   // other users may read, as the permission bits allow

	// NoLinks: the mount point is given without symbolic links, and one that replaces a part of it
	// is not followed.
	NoLinks bool

	VolumeSet fusefs.VolumeSet // adds directories to the root of the tree; nil: none
	Unsized   bool             // trees of the volume set may have files without a size, see [fusefs.Unsized]
	Stats     *fusefs.Stats    // counts reads; may be nil

	// Log receives findings (Error), holders that keep a view busy (Warn), and messages of the
	// FUSE library (Debug). nil discards them.
	Log *slog.Logger

	// OnTamper is called once for each distinct failure of a source, when it is logged, from
	// the goroutine that serves the read: it must not block, and must not access the view. nil
	// is ignored.
	OnTamper func(path string, err error)
}

// ErrMoved means that another process moves a directory above a mount point: the view was mounted
// elsewhere, and unmounted again.
var ErrMoved = errors.New("a directory above the mount point was moved")

const (
	fsSubtype = "spectrum"
	fsType    = "fuse." + fsSubtype // as in the mount table
)

// Mount mounts the tree on an existing empty directory and returns when the view can be used. It
// returns the errors of [CheckMountpoint], [ErrUnavailable], and others that name the failed step;
// after an error nothing is mounted.
func Mount(tree *fusefs.Tree, mountpoint string, opts Options) (*View, error) {
	return mountWith(hostSystem(), tree, mountpoint, opts)
}

// mountWith mounts with the given means; see system.
func mountWith(sys system, tree *fusefs.Tree, mountpoint string, opts Options) (*View, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	server, err := fusefs.New(tree, fusefs.Options{
		VolumeSet: opts.VolumeSet, Unsized: opts.Unsized, Stats: opts.Stats, Log: opts.Log, OnTamper: opts.OnTamper, AnswerOpen: sys.answerOpen,
	})
	if err != nil {
		return nil, err
	}
	opts.Source = cleanSource(opts.Source)
	open := served.OpenDir
	if opts.NoLinks {
		open = served.OpenReal
	}
	p, err := openEmpty(mountpoint, open)
	if err != nil {
		return nil, err
	}
	before, _, err := Views()
	if err != nil {
		p.close()
		return nil, err
	}
	release, err := reserveDescriptors()
	if err != nil {
		p.close()
		return nil, fmt.Errorf("mount on %q: %w", p.path, err)
	}
	defer release()
	dev, err := sys.mount(p, opts)
	if err != nil {
		p.close()
		return nil, fmt.Errorf("mount on %q: %w", p.path, err)
	}
	v, err := serve(sys, dev, server, &mountpointDir{dir: p}, opts)
	if err != nil {
		release()
		err = errors.Join(fmt.Errorf("mount on %q: %w", p.path, err), sys.takeBack(p, before))
		p.close()
		return nil, err
	}
	return v, nil
}

// reserveDescriptors reserves the descriptors that undoing a mount requires, until release is
// called.
func reserveDescriptors() (release func(), err error) {
	const needed = 4
	var held []int
	release = func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
		held = nil
	}
	for range needed {
		fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, fd)
	}
	return release, nil
}

// takeBack unmounts what a failed attempt left on a directory that was not a mount point before; it
// leaves another mount alone.
func (s system) takeBack(p *heldDir, before []*Other) error {
	top, err := p.openTop()
	if err != nil {
		return s.takeAstray(p, before) // nothing is mounted on it
	}
	defer top.close()
	if top.mount.FSType != fsType || !served.IsOwn(top.mount) {
		return nil
	}
	return s.clear(top)
}

// takeAstray unmounts a view that the helper, which takes a path, has mounted on another directory
// of that name: a view that did not exist before, and whose server, this process, has ended.
func (s system) takeAstray(p *heldDir, before []*Other) error {
	if s.direct {
		return nil
	}
	now, _, err := Views()
	for _, view := range now {
		was := slices.ContainsFunc(before, func(o *Other) bool { return idOf(o.mount) == idOf(view.mount) })
		if was || filepath.Base(view.path) != filepath.Base(p.path) {
			continue
		}
		_, viewErr := view.withDir(func(dir *heldDir) ([]byte, error) {
			if !dir.isDead() {
				return nil, nil // another process has mounted, and was faster
			}
			return nil, s.clear(dir)
		})
		err = errors.Join(err, viewErr)
	}
	return err
}

// serve starts the server on a mounted descriptor of /dev/fuse, and checks the mount. It owns the
// descriptor and, unless it fails, the seat.
func serve(sys system, dev int, server *fusefs.Server, on *mountpointDir, opts Options) (*View, error) {
	if err := server.Attach(dev); err != nil {
		return nil, err
	}
	v := &View{
		sys: sys, server: server, seat: on, path: on.dir.path, log: opts.Log,
		done: make(chan struct{}), revoked: make(chan struct{}),
	}
	ready := make(chan error, 1)
	go v.serve(ready)
	var err error
	v.mount, v.unique, err = checkMounted(on.dir, opts)
	ready <- err
	if err != nil {
		v.server.HangUp()
		v.end()
		return nil, err
	}
	raiseReadAhead(v.mount)
	go v.obey()
	return v, nil
}

// cleanSource makes a text valid for the mount table: not empty, no control characters, not
// longer than the kernel accepts.
func cleanSource(source string) string {
	source = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, source)
	if len(source) > 1000 {
		source = strings.ToValidUTF8(source[:1000], "?")
	}
	if source == "" {
		return fsSubtype
	}
	return source
}

// flagNames are the mount options that a view must have, as the mount table and
// fusermount3 spell them.
func flagNames(opts Options) []string {
	names := []string{"ro", "nosuid", "nodev"}
	if !opts.Exec {
		names = append(names, "noexec")
	}
	return names
}

// dataOptions returns the options of the FUSE file system itself. With default_permissions the
// kernel checks permission bits before it sends a request.
func dataOptions(opts Options) []string {
	data := []string{"default_permissions", fmt.Sprintf("max_read=%d", fusefs.MaxRequest)}
	if opts.AllowOther {
		data = append(data, "allow_other")
	}
	return data
}

// checkMounted reads the mount table back: whichever program did the mount, it is accepted
// only if all options that make a view safe are set.
func checkMounted(dir *heldDir, opts Options) (mountID, uint64, error) {
	p, err := dir.openTop()
	if errors.Is(err, ErrNotMounted) || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if err != nil {
		return mountID{}, 0, err
	}
	defer p.close()
	m := p.mount
	if m.FSType != fsType || !served.IsOwn(m) {
		return mountID{}, 0, fmt.Errorf("the mount table shows %s where the view should be", m.FSType)
	}
	have := strings.Split(m.Options, ",")
	for _, name := range flagNames(opts) {
		if !slices.Contains(have, name) {
			return mountID{}, 0, fmt.Errorf("it was mounted without %s (%s)", name, m.Options)
		}
	}
	data := strings.Split(m.VFSOptions, ",")
	if !slices.Contains(data, "default_permissions") {
		return mountID{}, 0, fmt.Errorf("it was mounted without default_permissions (%s)", m.VFSOptions)
	}
	if !opts.AllowOther && slices.Contains(data, "allow_other") {
		return mountID{}, 0, fmt.Errorf("it was mounted for all users (%s)", m.VFSOptions)
	}
	return idOf(m), p.unique, nil
}

// available returns an error if this user cannot open the FUSE device.
func available(device string) error {
	fd, err := openDevice(device)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// openDevice opens the device of FUSE. That this process, or the machine, has no descriptor
// left is not [ErrUnavailable].
func openDevice(device string) (int, error) {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		return fd, nil
	}
	isShort := scarce.Descriptors(err)
	err = &os.PathError{Op: "open", Path: device, Err: err}
	if !isShort {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return -1, err
}
