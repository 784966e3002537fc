// Package fusefs answers the kernel for a tree of checked files: the nodes and reads of a
// view, a read-only FUSE file system. Package fusemount mounts it.
//
// Its input is a description of a tree (path, size, mode, time, extended attributes, and a
// function to open each file's content), and perhaps a [VolumeSet] of more such trees. It is
// independent of bundles and mount points, and never writes.
//
// # The flow
//
//  1. [NewTree] turns the description into a compact immutable [Tree]. A path
//     that is not in plain form, is a duplicate, or would have to be a file and
//     a directory at once, is an error: nothing is repaired. The tree also has a
//     control directory, [ControlName], which can be looked up and is never
//     listed.
//  2. [New] makes a [Server] of it. [Server.Attach] connects that to a mounted
//     descriptor of /dev/fuse, and [Server.Serve] runs it to its end.
//  3. Every read requests from [Content] exactly the bytes of the reader's range,
//     clipped to the planned size. A complete result goes to the kernel, which
//     may cache it. Any other result is EIO for that range alone, a line in the
//     log, and a call of [Options.OnTamper] unless it is [Unavailable].
//  4. A [Live] file is a new file each time its name is looked up after a change
//     of its content: every reader sees one content, whole. A [Made] one may
//     fail, which makes the lookup EIO.
//  5. A [VolumeSet] adds directories to the root that appear and disappear. Each has
//     a tree of its own, which is made at the first entry, once for all readers;
//     when it is [Volume.Spoiled], all of its reads are EIO and the kernel drops
//     its cache of them.
//  6. An [Unsized] file has the attributes of its source, which the kernel asks for at each use, until
//     it was checked as a whole. That is before it is opened, once for all readers.
//  7. [RevokeRequest] ends it: every request is an error from then on, and
//     [Server.Drop] makes the kernel drop its cache.
//
// # What it trusts
//
// The kernel; the caller's description of the tree; and that a Content fills the buffer with
// checked bytes or returns an error. It does not trust the sources behind a Content: they may
// change, shrink, vanish or be replaced at any time, which causes no more than EIO.
//
// # What it promises
//
//   - Attributes come from the description, never from the live source. Inode
//     numbers are stable while the view lives, directories are in the order of
//     their names' bytes. Live files, the root of a view with a volume set, and a
//     volume that was not entered yet show their present state.
//   - Nothing can be written: no request that changes a file is implemented.
//   - No request panics (a panic of a Content, a Volume or a VolumeSet is EIO), no
//     goroutine or descriptor belongs to a file: the open contents are bounded
//     and shared by all readers.
//   - One request has an effect: an ioctl, of root or the user who serves, revokes
//     the view. Other users can only read.
//   - Readers cannot make the server grow: the contents of live files that they
//     hold are bounded, and the oldest is dropped.
//
// # What it does not promise
//
//   - Pages that were checked once stay as they were in the kernel's cache,
//     whatever happens to the source later; also after the server has died,
//     for processes that still hold the mount. Those of a spoiled volume are
//     dropped at the next request for uncached data: a process that stays inside
//     and reads only cached pages can go on reading them. A revoked view has no
//     such pages, except those of a file of which a read hangs at that moment,
//     or of a view whose server had to be cut off.
//   - A volume's number is never reused: an endless series of new names costs
//     some hundred bytes for each.
//   - rewinddir on an open root shows the volumes at the time of the open.
//   - A process that maps a file into memory gets SIGBUS on a page that fails
//     its check: the kernel has no other way to report EIO.
//   - A read that hangs in its source (a dead network disk) cannot be cancelled,
//     unless its content is [Interruptible]. It occupies one of the bounded
//     workers; readers that wait behind it can be interrupted.
//   - A process should not read a view that it serves itself: with one processor
//     (GOMAXPROCS=1) Go's runtime waits in an open for an answer that only the
//     same process could send.
//   - The name ".go-fuse-epoll-hack" in the root belongs to the FUSE library:
//     it can be looked up as an empty file (it is never listed), and a tree
//     with that name in its root is rejected rather than shown wrongly.
//   - Up to 64 unused sources stay open, so a file system that holds sources
//     cannot be unmounted under a view.
package fusefs
