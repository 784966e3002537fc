// Package gitbase reads what a project was in a commit of its git repository, as the base of a change
// set. It is the only package that starts git, and only a seal uses it.
//
// # What it trusts
//
// The program git, the environment's PATH and HOME, and the configuration of the system and of the
// user. The repository belongs to the producer of the change set: its configuration names programs that
// git would start, and its objects, index and attributes may hold anything.
//
// # The steps
//
//  1. [Read] looks for FIFOs and devices where git would read a file, which is an error ([WaitError]). Then it
//     asks git, in the repository, where that is, which commit a revision is, and for the list of
//     its settings. These commands ("rev-parse", "symbolic-ref", "config --list") start no other program;
//     hooks, file system monitors, pagers, and transports are switched off all the same.
//  2. It makes a temporary directory with a git directory of its own: an empty configuration, copies of
//     the index and of info/exclude, and the path of the repository's objects. All further commands use
//     that, with the settings of a short list ([kept]) as arguments. So no other setting of the repository
//     has a meaning, of whatever git version; nothing beneath .git is written, and nothing is fetched.
//  3. "ls-tree" lists the commit. Every path, mode and name is checked here; nothing is checked out.
//  4. The .gitattributes of the commit go into an otherwise empty work tree. "check-attr" finds which
//     files a checkout would convert. One "cat-file --batch" has the contents of the others, one with
//     "--filters" has these, and all are hashed as they arrive.
//  5. "ls-files" lists what git tracks and what it ignores in the project's own work tree.
//
// # What it promises
//
// The contents are those of a checkout of the commit: line ends, $Id$ and encodings are converted as the
// commit's attributes have it. Filters that are programs, such as Git LFS, are never run: a file that has
// one is in doubt ([bundle.BaseFile]).
//
// # What it does not
//
// A FIFO that is made while git runs, or that the configuration includes, makes git wait until the seal is
// interrupted.
//
// git reads objects as they are stored: it does not verify that they have the hashes by which they are
// named. A base is a claim of the producer, and a preview compares it with the restore root.
package gitbase
