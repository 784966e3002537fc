// Package review shows a preview on the whole screen of a terminal: a tree of the files, what
// changes in each, and the statement that approves what was chosen.
//
// It trusts the [Source] for what is shown and for what a statement approves. It promises that no
// character of a name or of a content reaches the terminal that a reader cannot see, that a
// statement is returned only after the operator has seen all of it and has typed its first word,
// and that the terminal is as it was when [Run] returns. It writes nothing, and approves nothing:
// what it returns is text, for the same checks as the text of any other approval.
//
//  1. The [Model] begins with what the preview recommends.
//  2. Each key changes the choice, and [Source.Draft] composes the statement anew.
//  3. Differences are read one by one, when a file is looked at.
//  4. The operator types the first word of the statement (protocol section 10), or leaves.
package review
