package overlay

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Watch calls changed for each name that appears in a directory or in one beneath it, with its path
// below the directory, until the returned function is called. It calls changed soon after the
// change, in order, and at least once; if the kernel's queue overflows, names may be missed.
func Watch(dir string, changed func(path string, isDir bool)) (stop func(), err error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &watch{events: os.NewFile(uintptr(fd), "inotify"), fd: fd, top: dir, dirs: map[int32]string{}, changed: changed}
	if err := w.add(""); err != nil {
		return nil, errors.Join(err, w.events.Close())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.loop()
	}()
	return func() { _ = w.events.Close(); <-ended }, nil
}

type watch struct {
	events  *os.File
	fd      int
	top     string
	dirs    map[int32]string // by descriptor, below top
	changed func(path string, isDir bool)
}

// add watches a directory.
func (w *watch) add(path string) error {
	id, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.top, path), unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW)
	if err != nil {
		return os.NewSyscallError("inotify_add_watch", err)
	}
	w.dirs[int32(id)] = path // #nosec: the kernel's own int32
	return nil
}

// found handles a new name. It also finds names that appeared in a directory before it was watched.
func (w *watch) found(path string, isDir bool) {
	w.changed(path, isDir)
	if !isDir || w.add(path) != nil {
		return
	}
	entries, _ := os.ReadDir(filepath.Join(w.top, path))
	for _, entry := range entries {
		w.found(filepath.Join(path, entry.Name()), entry.IsDir())
	}
}

func (w *watch) loop() {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.events.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			id := int32(binary.NativeEndian.Uint32(rest)) // #nosec: the kernel's own int32
			mask := binary.NativeEndian.Uint32(rest[4:])
			length := int(binary.NativeEndian.Uint32(rest[12:]))
			name := strings.TrimRight(string(rest[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]), "\x00")
			rest = rest[unix.SizeofInotifyEvent+length:]
			if dir, known := w.dirs[id]; known && name != "" {
				w.found(filepath.Join(dir, name), mask&unix.IN_ISDIR != 0)
			}
		}
	}
}
