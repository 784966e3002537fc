// Package manpage writes manual pages for the commands of a cobra program: one page for each
// command, with the text of its help, in the macros of man(7).
//
// The help texts are plain text: a paragraph whose first line is indented is kept as it is, every
// other one is filled. Nothing in them is interpreted by roff.
//
// A page depends only on the commands and on [About], so the same program always writes the same
// pages, byte for byte.
package manpage
