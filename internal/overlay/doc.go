// Package overlay runs a command over a directory so that what the command writes there goes to
// a layer of its own.
//
// # How
//
//  1. [Run] starts this program again, in a mount namespace of its own, and for a user without
//     CAP_SYS_ADMIN in a user namespace in which he is himself;
//  2. that process ([Serve]) mounts the overlay on the directory, where no process outside of the
//     namespace sees it, gives up every capability that the user namespace gave it, and
//     executes itself once more;
//  3. then it starts the command, passes signals on, takes over what the command leaves
//     behind, and ends that when the command has ended.
//
// The paths of the layers go to the kernel as descriptors: no character of a path has a meaning
// there.
//
// # Promised
//
// What the command and the processes that it starts write beneath the directory, by its path,
// is in the layer and not in the directory. When Run returns, no process that descends from the
// command is left, and nothing is mounted. That holds when either of the two processes is
// killed; the other one ends the command.
//
// # Not promised
//
// This is not a sandbox. The command has the user's network, processes and files: it can write the
// directory by another mount of the same file system, or by the root of another process in
// /proc.
package overlay
