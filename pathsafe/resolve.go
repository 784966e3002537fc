package pathsafe

import (
	"errors"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Links determines how a walk treats symbolic links.
type Links int

const (
	// NoLinks rejects every symbolic link, the last component included, with ErrSymlink.
	NoLinks Links = iota
	// LinksBeneath follows links as long as every step stays beneath the root;
	// else ErrEscape.
	LinksBeneath
	// LinksUnder is LinksBeneath, and an absolute target beneath the root's own path is resolved
	// from the root.
	LinksUnder
)

// A walker opens rel, which is not empty, beneath the directory root. The handle has no read access
// (flags is unix.O_PATH), or is one of a directory (flags is openDirectory). Both implementations
// return the same errors.
type walker interface {
	open(root int, rel string, flags int, links Links) (int, error)
}

const openDirectory = unix.O_RDONLY | unix.O_DIRECTORY

// chooseWalker tries openat2 once.
var chooseWalker = sync.OnceValue(func() walker {
	if CheckOpenat2() != nil {
		return componentWalker{}
	}
	return kernelWalker{}
})

// withSubvolumes are the file systems (statfs) on which a directory can begin another one without a
// mount. RESOLVE_NO_XDEV checks mounts only.
var withSubvolumes = []int64{unix.BTRFS_SUPER_MAGIC, bcachefsMagic}

const bcachefsMagic = 0xca451a4e

// walkerFor chooses how to walk beneath the directory root.
func walkerFor(root int) (walker, error) {
	var sf unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(root, &sf) }); err != nil {
		return nil, err
	}
	if slices.Contains(withSubvolumes, int64(sf.Type)) {
		return componentWalker{}, nil
	}
	return chooseWalker(), nil
}

// kernelWalker leaves the walk to openat2.
type kernelWalker struct{}

const resolveBeneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// maxAgain bounds how often a walk that met a concurrent rename is repeated. The kernel requests
// that only for paths with a link that has "..".
const maxAgain = 1000

func (kernelWalker) open(root int, rel string, flags int, links Links) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolveBeneath}
	if links == NoLinks {
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
	}
	for again := 0; ; {
		fd, err := unix.Openat2(root, rel, &how)
		switch {
		case err == nil:
			return fd, nil
		case err == unix.EINTR:
		case err == unix.EAGAIN && again < maxAgain:
			again++
		case err == unix.ELOOP && links != NoLinks:
			// The kernel counts links twice if a concurrent rename makes it start again.
			return componentWalker{}.open(root, rel, flags, links)
		default:
			return -1, explain(err, root, rel, links)
		}
	}
}

// explain finds the reason of an error of openat2. EXDEV has two possible reasons; a second
// walk decides between them. It only affects the description: if it succeeds because another
// process has changed the tree, the error stays.
func explain(err error, root int, rel string, links Links) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return ErrSymlink
	case errors.Is(err, unix.ENAMETOOLONG):
		return ErrTooLong
	case !errors.Is(err, unix.EXDEV):
		return err
	}
	fd, why := componentWalker{}.open(root, rel, unix.O_PATH, links)
	if why == nil {
		closeFd(fd)
	}
	if errors.Is(why, ErrCrossesMount) || errors.Is(why, ErrSymlink) {
		return why
	}
	return ErrEscape
}

// closeFd closes a descriptor that nothing was written through, so its error is ignored.
func closeFd(fd int) { _ = unix.Close(fd) }

// retry repeats a call that a signal interrupted.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// retryFd is retry for calls that make a descriptor.
func retryFd(f func() (int, error)) (fd int, err error) {
	err = retry(func() error {
		fd, err = f()
		return err
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
}
