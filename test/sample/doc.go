// Package sample decides how much of an exhaustive test one run tries.
//
// An exhaustive test tries every system call, every byte, every cell of a table.
// SPECTRUM_TESTS sets how many of them one run tries:
//
//	sample  every n-th, from an offset (the default; make test)
//	sweep   all (make sweep)
//	long    all, and the tests that take hours (make test-long)
//
// The offset follows from SEED and the name of the test, so that over many changes
// every case is tried. The Makefile sets SEED to the commit's hash; without SEED it is
// "0". A test that samples logs its seed, and the same seed chooses the same cases
// again:
//
//	make faults FAULTS=./test/crash SEED=3f2a
//
// The package imports nothing of the program, so that every test can use it.
package sample
