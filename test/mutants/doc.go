// Command mutants shows that the tests notice faults. Each file NN-name.patch beside it
// seeds one fault, such as a dropped sync or a skipped check, and names the one test that
// must fail with it:
//
//	The fault in one sentence.
//
//	Breaks: the promise that is broken
//	Package: ./staging
//	Test: ^TestEverySync$
//	Lane: test
//
//	--- a/staging/journal.go
//	+++ b/staging/journal.go
//	...
//
// Lane is "test" when the test is part of make test, and "sweep" when it runs in the sweep
// only. Env, which is optional, sets one variable for the test.
//
// The command copies the checkout to scratch directories, one for each worker, and works
// on the copies only. A mutant is caught when its patch applies, what results compiles,
// and the test fails there by an assertion: a panic, a time limit, a skip and a test that
// does not exist do not count. The same test has to pass without the patch, in at most 20
// seconds of processor time.
//
//	go run ./test/mutants
//	go run ./test/mutants -run journal -seeds 1,2,3
//	go run ./test/mutants -matrix > docs/mutants.md
//
// To add a mutant, change the code, save "git diff" as NN-name.patch under a header like that
// above, undo the change, and run the command with -run NN -seeds 1,2,3,4,5: the test should
// be small, named for the rule, and fail with every seed. -matrix -run NN prints the row for
// the table. When a change deletes the code of a mutant its patch no longer applies, and the
// sweep fails: seed the fault again where the code is now.
//
// With -matrix it runs all tests of the packages that could notice a mutant, and prints
// how many of them do.
package main
