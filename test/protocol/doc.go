// Package protocol holds the built program to the restore savepoint protocol.
//
// testdata/protocol.md is the protocol, and law every line of its sections 4 to 14
// with the subtest of TestClauses that holds it: a line that is in one and not in
// the other is a failure, and so is a line without its subtest. The other tests
// are about what no single line says: that an identity binds what it should and
// nothing else, how long an approval lives, what a partial approval restores, which
// savepoints there are, and that no sequence of commands brings anything into a
// restore root that was not approved for it (TestModel).
//
// It judges from outside, with real input: candidates that seal makes, and forged ones where seal
// rejects the input. It uses no package of the program, and trusts its JSON no further than that
// it is compared with what is on the disk.
package protocol
