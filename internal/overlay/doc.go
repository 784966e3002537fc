// Package overlay runs a command over a directory so that its writes go to a separate layer.
//
// # How
//
//  1. [Run] starts this program again, in its own mount namespace and, for a user without
//     CAP_SYS_ADMIN, in a user namespace that maps this user to itself;
//  2. that process ([Serve]) mounts the overlay on the directory, visible only in the
//     namespace, gives up every capability of the user namespace, and executes itself again;
//  3. then it starts the command, passes on signals, becomes the parent of orphaned
//     processes, and kills these when the command has ended.
//
// The kernel gets the paths of the layers as descriptors, so that no character of a path is
// interpreted.
//
// # Promised
//
// What the command and its descendants write beneath the directory, by its path, goes to the layer
// and not to the directory. When Run returns, no descendant of the command is left, and nothing is
// mounted. That is also true if either of the two processes is killed; the other one then ends the
// command.
//
// # Not promised
//
// This is not a sandbox. The command has the user's network, processes and files: it can write the
// directory through another mount of the same file system, or through the root of another process
// in /proc.
package overlay
