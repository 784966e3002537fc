// Package plainjson is a second implementation of JSON, for tests only: the
// results of package canonjson are compared with those of this package.
//
// It is as plain as can be: one function for each rule of RFC 8259 and of the
// canonical form, in the order of the documents, each with its section. It uses no
// parser of JSON, no table of UTF-8 and no conversion of numbers but its own,
// and cares for neither time nor memory. It makes trees as encoding/json does
// with UseNumber: nil, bool, json.Number, string, []any and map[string]any.
package plainjson
