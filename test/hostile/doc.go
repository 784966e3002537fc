// Package hostile puts the 87 numbered cases of hostile bundles through the real
// binary: each through verify, mount, ls, diff, preview, commit and seal.
//
// A row of the list is one or several trees. Each has its verdict for each command written down
// beside it, by the laws and the decisions on them, before the program is run. A tree that cannot
// exist in a command says "none" and why. What is signed is signed well, by package forge, unless
// the row is about signatures: the signature must not be what saves us.
//
// The judge checks of each command its exit status, its code and its phase, that it ends, and
// that nothing is mounted and no process runs after it. A rejection leaves all that is in the
// tree as it was, with its times; a view shows exactly the outputs and the two result artifacts,
// and so does a restore root after a commit; and what seal makes is verified and could be
// restored.
//
// It trusts the kernel, strace, and package harness for running the binary. It does
// not measure time: a minute is for finding what hangs.
package hostile
