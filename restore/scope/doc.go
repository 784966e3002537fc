// Package scope has the restore scopes of the restore savepoint protocol (section
// 5), reads them from statements, and reads the scopes that the signer of a
// candidate has declared for its outputs.
//
// It trusts nothing and reads no disk. The declaration of a signer is a claim about
// the purpose of an output. It can neither approve an output nor remove a
// protection that its name or the operator requires.
//
// # Declarations
//
// The member restore_scopes of the constraints of a TASK_SPEC.json is an object
// from a pattern ([github.com/spectrumfs/spectrum/restore/glob]) to a scope:
//
//	"constraints": {"restore_scopes": {"notes/": "decisions", "notes/todo.md": "next_actions"}}
//
// The member restore_item_scopes is the same for single paths, and precedes any
// pattern; bundles that this program derives from a candidate have it. If several
// patterns match an output, the most specific one decides, by the order of
// [glob.Compare] and not of the file. If none matches, nothing is declared.
package scope
