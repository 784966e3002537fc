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
// Sweeps are on a tmpfs where there is one, for its speed: what is left after a
// kill does not depend on the file system. What a power cut leaves does, and is
// the matter of another package.
package crash
