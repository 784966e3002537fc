// Package existing reads what exists beneath a restore root at the paths of a candidate. It
// has no expectation of what should exist there, and writes nothing.
//
//  1. [Read] hashes the regular files at some paths, on all cores. Links on the way to a
//     path are followed as a commit follows them, beneath the root only; a link at the path
//     itself is not followed. Only regular files are opened, so a FIFO cannot block a
//     reader and a device is not touched.
//  2. [Find] returns what exists at a path, or the parent that makes the path unreachable,
//     where there is no regular file.
//
// Both return a state that was true at some moment of the call. A caller that depends on
// it reads again.
package existing
