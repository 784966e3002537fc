// Package canonjson reads JSON strictly and writes it in the one canonical
// form of SPECTRUM-04 ("Canonical JSON") and of SPECTRUM-06 section 7.3.
//
// This package is law: what it accepts and how it prints decide every root.
//
// # Reading
//
// [Parse] accepts exactly one JSON value and refuses whatever two readers
// could understand differently (decision D6): a key that occurs twice in one
// object, however it is escaped; bytes that are not UTF-8; a byte order mark;
// a lone surrogate; bytes after the value; NaN and Infinity; nesting deeper
// than [MaxDepth]; a number with a fraction or an exponent that is not finite
// as a float64. Nothing is repaired.
//
// # Writing
//
// Keys ascend by their UTF-8 bytes at every depth, arrays keep their order,
// there is no white space, strings are escaped only where they must be, and
// numbers follow decision D7: integers verbatim, all others as the shortest
// positional decimal that reads back to the same float64.
//
// # Memory
//
// A parsed [Value] is the text itself, with members in order and white space
// gone: never larger than the input, whatever the input holds. Numbers keep
// their digits until they are written, so "1e308" costs five bytes, not 309.
//
//  1. jsontext, which knows the grammar, reads all of the data, and is gone;
//  2. each token is appended to the compact text, which is written over the data,
//     strings escaped canonically;
//  3. an object whose keys did not come in order is put in order at its end, and
//     that is where a double key is found; of a large one the keys are compared
//     four bytes at a time, and it is put aside then, and a mark of five bytes
//     stands for it, so that nesting multiplies nothing;
//  4. at the end what was put aside takes its place, once;
//  5. the writers walk the compact text once and convert numbers on the way.
package canonjson
