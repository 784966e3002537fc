// Package plainjson reads and writes JSON a second time, for tests only: what
// package canonjson says is held against what this package says.
//
// It is as plain as can be: one function for each rule of RFC 8259 and of
// decision D6, in the order of the documents, each with its section. It uses no
// parser of JSON, no table of UTF-8 and no conversion of numbers but its own,
// and cares for neither time nor memory. It makes trees as encoding/json does
// with UseNumber: nil, bool, json.Number, string, []any and map[string]any.
package plainjson
