// Package scope is the restore scopes of the restore savepoint protocol
// (section 5): which there are, how people write them, and which of them the
// signer of a candidate has declared for its outputs.
//
// It trusts nothing and reads no disk. What a signer declares is a claim: it
// says what an output is meant to be, and can neither approve an output nor
// take away a protection that its name or the operator asks for.
//
// # What a signer declares
//
// The member restore_scopes of the constraints of a TASK_SPEC.json is an object
// from a pattern ([github.com/spectrumfs/spectrum/restore/glob]) to a scope:
//
//	"constraints": {"restore_scopes": {"notes/": "decisions", "notes/todo.md": "next_actions"}}
//
// The member restore_item_scopes is the same for single paths, and goes before any
// pattern: what is sealed from a candidate by us has it, however many outputs there
// are. Where several patterns match an output, the most specific one decides, by the
// order of [glob.Compare], whatever the order in the file. Where none does,
// nothing is declared.
package scope
