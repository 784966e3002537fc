package preview

import (
	"testing"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// LineOf is the line of a record as it would be written.
func LineOf(t testing.TB, r *Record) []byte {
	t.Helper()
	line, err := canonjson.Marshal(r.kept)
	if err != nil {
		t.Fatal(err)
	}
	return line
}
