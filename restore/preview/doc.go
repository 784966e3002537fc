// Package preview shows a restore before it happens, and takes the operator's
// approval of exactly what was shown (restore savepoint protocol).
//
// # Flow
//
//  1. [New] makes a [Preview] of a [restore.Restore]: the decision block of
//     protocol section 13 with the candidate, the restore root and its observed
//     state, every item, every conflict and the proposal;
//  2. its identity, [Preview.ID], is the SHA-256 of that block in canonical
//     form, so whatever changes gives another identity;
//  3. the block is kept ([Preview.JSON]); [ParseRecord] reads it back and finds
//     out whether it is the block that the identity was computed from;
//  4. at the commit everything is verified and planned again and a second
//     preview is made with the first one's nonce: [Record.Approve] wants the
//     same identity, the operator's explicit statement, and a preview that was
//     not used before. Only it makes an [Approved].
//
// # Trust and promise
//
// A record is trusted no further than its identity: it only says what to look
// at again. An Approved cannot be had for a restore root or a candidate that
// changed after the operator saw them; a change between the approval and the
// commit is the commit's to find.
package preview
