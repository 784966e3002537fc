// Package statement reads the operator's approval of a restore (restore
// savepoint protocol, section 10). A commit requires an explicit approval, so there
// is one grammar. A text that does not match it byte for byte is rejected with the
// reason, and is never repaired.
//
// It trusts nothing and reads no preview. It promises that a [Statement] has the
// meaning of the text. It does not promise that the items and conflicts exist,
// that all conflicts are decided, or that the author of the text may decide.
//
// # Grammar
//
//	statement = "Approved: " main "." { " " clause "." } .
//	main      = "commit the restore preview exactly as proposed"
//	          | "restore item" [ "s" ] " " items " only"
//	          | "restore " scopes " only" .
//	clause    = "Do not restore item" [ "s" ] " " items
//	          | "Do not restore " scopes " items"
//	          | ( "Acknowledge" | "Reject" | "Resolve" ) " " conflicts .
//	items     = list of item [ " to " item ] .
//	conflicts = list of conflict [ " to " conflict ] .
//	scopes    = list of scope .
//	list of x = x | x " and " x | x ", " x { ", " x } [ "," ] " and " x .
//	item      = "R-" number .
//	conflict  = "C-" number .
//	number    = 1 to 99,999,999, with zeros in front up to three digits .
//	scope     = a scope of section 5, as scope.FromWords reads it .
//
// A statement is one line of printable ASCII of at most [MaxLength] bytes.
//
// It must not contradict or repeat itself. These are rejected: "exactly as
// proposed" with a "Do not restore"; a range that does not ascend; an item, a
// scope or a conflict that is named twice or is in two ranges; an item or a
// scope that is both to be restored and not; a conflict with two decisions.
//
// # Examples
//
//	Approved: commit the restore preview exactly as proposed.             accepted
//	Approved: restore items only.                 accepted
//	Approved: restore items only. Reject C-002.  accepted
//	Approved: restore project state only. Do not restore identity-layer items.
//	                                                                      accepted
//	Approved: restore project state and decisions only. Do not restore item R-007. Acknowledge C-001 to C-004.
//	                                                                      accepted
//	Looks good.                                                           it does not name what is approved
//	Sure.                                                                 likewise
//	Proceed with whatever makes sense.                                    likewise
//	Approved.                                                             likewise
//	Approved: restore everything.                                         "everything" is not a scope
//	Approved: restore item R-001.                                         "only" is missing
//	Approved: restore item R-1 only.                                      "R-1" is not an id
//	Approved: restore items only.                            the "and" of a list is missing
//	Approved: restore items only.                R-003 is named twice
//	Approved: restore item R-001 only                                     the full stop is missing
//	approved: restore item R-001 only.                                    the first letter is upper case
//	Approved: commit the restore preview exactly as proposed. Do not restore item R-001.
//	                                                                      that would not be as proposed
package statement
