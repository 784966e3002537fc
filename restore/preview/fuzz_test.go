package preview_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
)

// FuzzRecord reads any text as the line of a record, with the sum that fits, and
// under the identity of a preview that was kept, or another: what is believed is
// what Keep has written, byte for byte, for this identity.
func FuzzRecord(f *testing.F) {
	s := bareScene(f)
	s.Add("run-1", map[string]string{"a": "alpha\n"})
	p := s.Preview()
	good, id := keepOf(f, p), p.ID()
	line, _, _ := bytes.Cut(good, []byte("\n"))
	f.Add(line, true)
	f.Add(line, false)
	for _, change := range [][2]string{
		{`"chain":false`, `"chain":true`}, {`"chain":false`, `"chain":0`}, {`"attempts":0`, `"attempts":1`}, {`"attempts":0`, `"attempts":-0`},
		{`"view":null`, `"view":{"mountpoint":"/v","view_id":"x"}`}, {`"agent":""`, `"agent":"x"`}, {`"agent":""`, `"agent":null`},
		{`"scopes":[]`, `"scopes":["decisions"]`}, {`"scopes":[]`, `"scopes":null`}, {`"asked":{`, `"asked":{"x":1,`}, {`{`, ` {`},
	} {
		f.Add(bytes.Replace(line, []byte(change[0]), []byte(change[1]), 1), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, named bool) {
		asked := id
		if !named {
			asked = sumOf(string(text))
		}
		record, err := preview.ParseRecord(summed(text), asked)
		if err != nil {
			if !errors.Is(err, preview.ErrForged) || record != nil {
				t.Errorf("%v, %v", record, err)
			}
			return
		}
		if !named {
			t.Fatalf("%q was believed under the hash of itself", text)
		}
		if again := preview.LineOf(t, record); !bytes.Equal(again, text) {
			t.Errorf("%q was believed, and says %q", text, again)
		}
	})
}
