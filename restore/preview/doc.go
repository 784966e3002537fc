// Package preview shows a restore before it happens, and takes the operator's
// approval of exactly what was shown (restore savepoint protocol).
//
// # Flow
//
//  1. [New] makes a [Preview] of a [restore.Restore] and of the options and the trust
//     of the operator ([Request]): every output gets a number, a scope, a class by
//     content and a label. Blocked targets, places that another user controls, and
//     objections to the candidate become conflicts. The rules of quarantine and the
//     state protection checklist are computed. All of it is the decision block of
//     protocol section 13;
//  2. its identity, [Preview.ID], is the SHA-256 of that block in canonical form.
//     Nothing in the block depends on the machine or the day, so the same inputs
//     have the same identity everywhere;
//  3. the block is kept ([Preview.Keep]) with data that depends on the machine: the
//     location of the candidate, the options of the operator, and a witness of the
//     restore root (inodes, owners, times; the number of commits that ever began
//     there). [ParseRecord] reads it back;
//  4. at the commit everything is verified and planned again and a second preview is
//     made: [Record.Approve] requires the same identity, the same witness, and a
//     statement that fits (section 10): what it names must be proposed, and every
//     conflict that touches it must be decided. An error names the changed paths. The [Approval] names items;
//  5. [Approval.Accept] binds it to the restore that carries it out: the one that
//     was shown, or, when a part is approved, one of a derived candidate that
//     consists of exactly that part. Only it makes an [Approved],
//     and the preview is used up by it;
//  6. [Approved.Outcome] returns the Restore Commit Report (section 11).
//
// [Preview.Shown] returns a copy of a preview for package report, which writes it for people.
//
// # Trust and promise
//
// A record only names the input of a preview that is made again. The declarations
// of a signer about scopes and agents are claims: they never approve an item, and
// never remove a protection. There is no Approved for a restore root or a candidate
// that changed after the preview, nor for an item that was not proposed and named.
// The commit detects a change between the approval and itself.
package preview
