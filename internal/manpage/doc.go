// Package manpage writes manual pages for the commands of a cobra program: one
// page for each command, with what its help says, in the macros of man(7).
//
// The help texts are plain text, and are taken as that: a paragraph of which the
// first line is indented stays as it is, every other one is filled. Nothing in
// them can be mistaken for a request of roff.
//
// A page depends on the commands and on [About] only, so that the same program
// has the same pages, byte for byte, whenever and wherever they are written.
package manpage
