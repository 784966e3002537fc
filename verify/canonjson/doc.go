// Package canonjson reads JSON strictly and writes it in the canonical form of SPECTRUM-04
// ("Canonical JSON") and of SPECTRUM-06 section 7.3.
//
// This package is law: what it accepts and how it prints decide every root.
//
// # Reading
//
// [Parse] accepts exactly one JSON value and rejects everything that two readers could understand
// differently: a key that occurs twice in one object, however it is escaped; bytes that are not
// UTF-8; a byte order mark; a lone surrogate; bytes after the value; NaN and Infinity; nesting
// deeper than [MaxDepth]; a number with a fraction or an exponent that is not finite as a float64.
// Nothing is repaired.
//
// # Writing
//
// Keys ascend by their UTF-8 bytes at every depth, arrays keep their order, there is no white
// space, and strings are escaped only where required. Integers are written verbatim, all other
// numbers as the shortest positional decimal that reads back to the same float64.
//
// # Memory
//
// A parsed [Value] is the text itself, with members in order and white space removed: never larger
// than the input. Numbers keep their digits until they are written, so "1e308" costs five bytes,
// not 309.
//
//  1. jsontext checks the grammar of all of the data; its memory is released;
//  2. each token is appended to the compact text, which is written over the data,
//     strings escaped canonically;
//  3. an object whose keys were not in order is sorted at its end, where a
//     duplicate key is found too; the keys of a large object are compared four
//     bytes at a time, and the object is then stored aside, with a mark of five
//     bytes in its place, so that the cost does not multiply with the nesting;
//  4. at the end the stored objects replace their marks, once;
//  5. the writers read the compact text once and convert numbers.
package canonjson
