// Package release tests what a user gets: a fresh clone, and the packages.
//
// Both are made from the checkout under test as it is, committed or not: a copy of
// its files is committed to a repository of its own, so that nothing which is
// missing there can be missed.
package release
