package fusefs_test

import (
	"bytes"
	"fmt"

	"github.com/spectrumfs/spectrum/fusefs"
)

// memory is a Content whose bytes need no check: no other code can change them.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// A tree is rejected when two of its files cannot both be there.
func ExampleNewTree() {
	_, err := fusefs.NewTree(func(yield func(fusefs.File) bool) {
		empty := fusefs.SourceFunc(func() (fusefs.Content, error) { return memory{bytes.NewReader(nil)}, nil })
		_ = yield(fusefs.File{Path: "a/b", Source: empty}) && yield(fusefs.File{Path: "a", Source: empty})
	}, nil)
	fmt.Println(err)
	// Output: this tree cannot be shown: "a" and "a/b" cannot both be there
}
