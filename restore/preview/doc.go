// Package preview shows a restore before it happens, and takes the operator's
// approval of exactly what was shown (restore savepoint protocol).
//
// # Flow
//
//  1. [New] makes a [Preview] of a [restore.Restore] and of what the operator asks
//     and trusts ([Request]): every output gets a number, a scope, a class by
//     content and a label, what stands in the way or speaks against the candidate
//     becomes a conflict, and the rules of quarantine and the state protection
//     checklist are computed. All of it is the decision block of protocol section
//     13;
//  2. its identity, [Preview.ID], is the SHA-256 of that block in canonical form.
//     Nothing in the block depends on the machine or the day, so the same inputs
//     have the same identity everywhere;
//  3. the block is kept ([Preview.Keep]) with what does depend on the machine: where
//     the candidate lies, what the operator asked, and a witness of the restore
//     root (inodes, owners, times; how many commits ever began there). [ParseRecord]
//     reads it back;
//  4. at the commit everything is verified and planned again and a second preview is
//     made: [Record.Approve] requires the same identity, the same witness, and a
//     statement that fits (section 10): what it names must be proposed, and every
//     conflict that touches it must be decided. The [Approval] names items;
//  5. [Approval.Accept] binds it to the restore that carries it out: the one that
//     was shown, or, when a part is approved, one of a derived candidate that
//     consists of exactly that part. Only it makes an [Approved],
//     and the preview is used up by it;
//  6. [Approved.Outcome] is what the Restore Commit Report (section 11) says.
//
// [Preview.Shown] is a copy of all of that for package report, which writes it for people.
//
// # Trust and promise
//
// A record is trusted no further than its identity: it only says what to look
// at again. What a signer says of scopes and agents is a claim: it never approves
// anything, and never takes away a protection. An Approved cannot be had for a
// restore root or a candidate that changed after the operator saw them, nor for an
// item that was not proposed and named; a change between the approval and the
// commit is the commit's to find.
package preview
