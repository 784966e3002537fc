// Package crash kills the real binary at every boundary between two system
// calls, makes every one of them fail, and judges what recovery makes of it.
//
// The trials are enumerated and not drawn: trial n acts on call n, and the sweep
// ends with the first trial that has no call left. The same is done to the
// recovery itself. The judge is package harness, which knows nothing of the
// program. Each sweep prints what it did and fails if it did nothing; a sweep
// of kills also counts the roots that recovery found neither before nor after,
// because a sweep that never leaves one proves nothing.
//
// The file systems take turns in the trials of a sweep ([harness.TakeTurns]): tmpfs, ext4 with and
// without a journal, xfs, btrfs, overlay. A sample has one of them, which follows from the seed. What
// is left after a kill must be all or nothing on each, also without a journal, which only a power cut
// makes use of. What a power cut leaves is the matter of another package.
package crash
