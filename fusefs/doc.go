// Package fusefs answers the kernel for a tree of checked files: the nodes and
// reads of a view, a read-only FUSE file system. Package fusemount mounts it.
//
// It is handed a description of a tree (path, size, mode, time, extended
// attributes, and a way to open each file's content), and perhaps a [Shelf] of
// more such trees, and knows nothing of where they come from. It knows no
// bundles and no mount points, and never writes.
//
// # The flow
//
//  1. [NewTree] turns the description into a compact immutable [Tree]. A path
//     that is not in plain form, that stands there twice, or that would have
//     to be a file and a directory at once, is an error: nothing is repaired.
//     Beside it stands a control directory, [ControlName], which is found by
//     its name and never listed.
//  2. [New] makes a [Server] of it. [Server.Attach] connects that to a mounted
//     descriptor of /dev/fuse, and [Server.Serve] runs it to its end.
//  3. Every read asks [Content] for exactly the bytes that the reader wants,
//     clipped to the size of the plan. What comes back whole goes to the
//     kernel, which may keep it. Anything else is EIO for that range alone, a
//     line in the log, and a call of [Options.OnTamper].
//  4. A [Live] file is another file each time its name is looked up and its
//     content has changed: every reader sees one content, whole. A [Made] one may fail, which is
//     EIO for who looks it up.
//  5. A [Shelf] adds directories to the root that come and go. Each has a tree
//     of its own, which is made when somebody first enters it, once for all who
//     come; when it is [Volume.Spoiled], all of its reads are EIO and the
//     kernel drops what it kept of them.
//  6. [RevokeRequest] ends it: every request is an error from then on, and
//     [Server.Drop] has the kernel drop what it kept.
//
// # What it trusts
//
// The kernel; the caller's description of the tree; and that a Content fills
// the buffer with checked bytes or returns an error. It does not trust the
// sources behind a Content: they may change, shrink, vanish or turn into
// something else at any time, and cost no more than EIO.
//
// # What it promises
//
//   - Attributes come from the description, never from the live source. Inode
//     numbers are stable while the view lives, directories are in the order of
//     their names' bytes. Live files, the root of a view with a shelf, and a
//     volume that nobody has entered show what they are now.
//   - Nothing can be written: no request that changes something is
//     implemented.
//   - No request panics (a panic of a Content, a Volume or a Shelf is EIO), no
//     goroutine or descriptor belongs to a file: the open contents are bounded
//     and shared by all readers.
//   - One request does something: an ioctl, of root or the user who serves,
//     revokes the view. Nobody else can make it do anything but answer.
//   - Readers cannot make the server grow: the contents of live files that they
//     hold are bounded, and the oldest is dropped.
//
// # What it does not promise
//
//   - Pages that were checked once stay as they were in the kernel's cache,
//     whatever happens to the source later; also after the server has died,
//     for those who still hold the mount. Those of a spoiled volume are
//     dropped when somebody asks for something that is not cached: a process
//     that stays inside and reads nothing but cached pages goes on reading them.
//     A revoked view has no such pages, but for those of a file of which a read
//     hangs just then, or of a view whose server had to be cut off.
//   - A volume's number is never taken back: names that come and go for ever,
//     each a new one, cost some hundred bytes each.
//   - rewinddir on an open root shows the volumes of the time it was opened.
//   - Whoever maps a file into memory gets SIGBUS on a page that does not
//     check: the kernel has no other way to say EIO.
//   - A read that hangs in its source (a dead network disk) cannot be called
//     back. It occupies one of the bounded workers; readers that wait behind it
//     can be interrupted.
//   - A process should not read a view that it serves itself: with one processor
//     (GOMAXPROCS=1) Go's runtime waits in an open for an answer that only it
//     could give.
//   - The name ".go-fuse-epoll-hack" in the root belongs to the FUSE library:
//     it can be looked up as an empty file (it is never listed), and a tree
//     that has it there is refused rather than shown wrongly.
//   - Up to 64 sources stay open while nobody reads them, so a file system
//     that holds sources cannot be unmounted under a view.
package fusefs
