// Package store keeps runs in a place that need not be trusted: a directory, a bucket, a web
// server. docs/stores.md has the layout, so that other programs can read and write it.
//
// # Flow
//
//  1. [Open] makes a [Store] of an address; a [Driver] does the requests, and the Store bounds
//     their time and repeats those that may succeed later.
//  2. [Store.Push] writes a bundle that was verified: packs of the contents of its outputs, then
//     the run, which makes it visible. Every byte is checked while it is read for that.
//  3. [Store.Pull] reads a run into an empty directory: the artifacts, whose signature is verified,
//     then the outputs, each checked against its signed hash before it gets its name.
//  4. [Run.Ranges] reads parts of outputs as they are needed, unchecked: a package above checks each
//     block against the signed block table.
//  5. [Store.Check] does the same for every run and keeps nothing; [Store.Collect] removes packs
//     that no run refers to.
//
// # Trust
//
// Nothing in a store is trusted, and neither is its server. What is signed is the bundle, with the
// SHA-256 of each output. A run's MAP, the names and the sizes of objects are hints: a wrong hint
// costs a request and makes an error. A [Record] is trusted: it is what this user uploaded before,
// and only what it names is not uploaded again.
//
// # Promise
//
// A caller gets the signed bytes (of [Ranges]: bytes that are to be checked), or an error before the
// deadline of the request. Nothing of a push
// is visible before all of it is in the store, also if it is killed at any point.
//
// Not promised: that a store keeps what was pushed. [Store.Check] looks.
package store
