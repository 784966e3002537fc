// Package quarantine keeps the marks of candidates that must not be committed
// until an operator has clarified the findings (restore savepoint protocol,
// section 12). It marks candidates, and never deletes or changes one.
//
// # Marks
//
// A finding is a rule of section 12 and what was found, in words. A mark says
// since when a finding holds a candidate, and why it no longer does:
//
//   - what can be computed comes and goes with what is computed: [Store.Update]
//     gets all of it, holds what is new and clears what is no longer found;
//   - what a person did, a vague approval, is sticky: [Store.Hold] keeps it, and
//     only a release ends it. The next one holds again;
//   - [Store.Release] is a person's: it ends all that holds now, with a reason. A
//     release of what is computed covers this rule with these words for ever, also
//     when they are found again; other words are another finding.
//
// # Records
//
// The store is a private directory, with one record for each candidate: a file
// SOURCE.N.json, where SOURCE is the source id (bundle root or chain root) and N
// counts its versions from 1. The file with the highest N is the record; nothing
// is ever overwritten. It is canonical JSON, an object with exactly these members:
//
//	marks         a list, in the order in which they came
//	restore_root  absolute path, where it was to be restored to; for people
//	run_dirs      list of absolute paths, for people
//	source        as in the name
//	version       as in the name
//
// and each mark has cleared (null, or a time), detail, released (null, or an
// object of operator, reason and time), rule, and since. Times are RFC 3339 in
// UTC; paths that are no UTF-8 are quoted as Go quotes strings. A record has at
// most 256 marks: for one more the oldest that holds nothing is forgotten, which
// can hold a candidate again and never frees one.
//
// # What it promises
//
//  1. The directory is locked, and the record is read.
//  2. Each change is logged by the function that [Open] was given. When that
//     fails nothing is changed.
//  3. The next version appears, whole and synced, under a name that no other process
//     has taken; then the directory is synced.
//  4. Only then are the versions before it removed, and the call returns.
//
// So the log may tell of a change that never came to be, after a crash between 2
// and 3, and never lacks one. Two stores on one directory, in one process or in
// many, lose nothing. An error means that the candidate counts as held: also a
// record that cannot be read or is not exactly as it was written, which is a
// [*RecordError] that names it.
//
// # What it does not
//
// It computes no rule. It does not protect its files from users who may write the
// directory: removing a record frees its candidate, and only the log shows that.
package quarantine
