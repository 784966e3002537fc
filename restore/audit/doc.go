// Package audit is the log of what was done to restore roots, and of what holds
// candidates back: append-only, one line for each event, each line bound to the
// one before it (rollback contract, section 11).
//
// # What it promises
//
// An event counts as logged when [Log.Append] has returned: its line is in the
// file and synced. What is to be logged first is done only after that. [Read]
// finds a line that was changed, removed, doubled or moved, because each names
// the sequence number and the SHA-256 of the line before. It finds no log that
// was cut at its end, or rewritten from some line on: a user who may write the
// file may also write a good one. For that a [Ledger] holds the log against the
// signed savepoints, each of which names its commit and signs the last entry before
// it ([Log.Mark]); what came after the newest savepoint only a head shows that was kept
// elsewhere.
//
// # A line
//
// Canonical JSON, an object with exactly these members, and a newline:
//
//	action    id of what the event belongs to, a UUID
//	affected  ids of other actions that the event is about, each a UUID, none
//	          twice: the commits that a rollback undoes; not there when there are
//	          none
//	brings    ids of the commits that a rollback brings back, as affected
//	candidate source id of a candidate, 64 hex digits; the events of a candidate
//	          have this member, all others have none
//	kind      what happened, one of the kinds of this package
//	lost      ids of savepoints and snapshots, 64 hex digits each; only where the kind is
//	          loss_accepted
//	open      after this event: the actions that have begun and not ended, with
//	          the root of each
//	operator  name of the user, null if the system knows none
//	preview   id of the preview that was approved, or null
//	previous  SHA-256 of the line before without its newline, 64 hex digits;
//	          64 zeros in the first line
//	reason    in words, or null
//	rollback  "micro", "session" or "emergency" where something was rolled back,
//	          else null
//	root      absolute path of the restore root; one that is not UTF-8 is quoted
//	          as Go quotes strings
//	sequence  1 in the first line
//	snapshot  id of a snapshot, or null; where the kind is of a snapshot, 64 hex
//	          digits
//	time      RFC 3339 in UTC, of the machine's clock
//	torn      null, or what stood between the line before and this one
//	uid       number of the user
//
// # Events of a candidate
//
// A candidate that is put into quarantine, cleared or released is not an action: such
// an event begins and ends nothing, and its action is an id of its own. Its root is
// where the candidate was to be restored to.
//
// # Events of a snapshot
//
// That a snapshot was taken, or is no longer kept, is an event of its own: it
// begins and ends nothing. Its action may be the one that the snapshot was taken
// for; that stays as it is, open or not.
//
// # A torn line
//
// A crash or a full disk can leave the beginning of a line at the end. Nothing
// counted on it, and nothing of it is removed: the next event ends it with "!"
// and a newline, and says in its member torn how many bytes these are and what
// their SHA-256 is. That event can be torn too: then there are several such
// lines, and torn is of all of them. A log that has anything else between its
// lines was changed.
package audit
