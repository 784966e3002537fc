// Package commit carries an approved restore out: the phases EXECUTE and
// VERIFY of SPECTRUM-06 (sections 5.4, 5.5, 6.4 and 6.5).
//
// It takes a [preview.Approved] and nothing else, so nothing is published that
// an operator did not approve as it is. What it does to the disk is package
// staging's: this package says what to stage, and gives every outcome its code
// and phase.
//
//  1. a conflict that the plan knows already ends it before anything is
//     written (D11, D20);
//  2. every output is copied from its source and the copy is checked against
//     the signed hash; the source is believed in nothing;
//  3. the copies are moved to their targets, found again, and checked again;
//  4. the result artifacts, which were made before anything was written, are
//     put in place last: they are the sign of success.
//
// The savepoint of the commit is prepared, durably, before anything is written,
// and published when everything is in place (restore savepoint protocol, section
// 4.2): whenever the commit is killed, the next one to enter the root finds out
// which of both it must be. A commit that begins makes every preview of its root
// void.
//
// On every failure what the attempt made is removed (section 8.5).
package action
