// Package forge makes signed runs by hand, good ones and hostile ones.
//
// It knows the formats of SPECTRUM-04 and the keys that it signs with, and uses no package of the
// program: what it signs is signed by the document alone. It never rejects anything, since a
// forger would not.
package forge
