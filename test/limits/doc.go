// Package limits holds the built program to its bounds on memory and time, as
// the kernel measures them.
//
// Memory is the largest resident set that the kernel saw, and the bound is
// three times the size of the largest artifact, and 64 MiB. Time is never
// measured: a command may use so many seconds of processors, which is far more
// than it needs, and far less than anything quadratic would take. Whatever the
// input, there is one verdict, and nothing is left behind.
package limits
