package canonjson_test

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/test/plainjson"
)

// slowCanonical is the canonical form of data, which must be one JSON value
// without double keys: read by encoding/json, and by the plain parser, and
// written by the plain writer. Nothing of the package under test is used.
func slowCanonical(t testing.TB, data []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("encoding/json rejects %.200q: %v", data, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Fatalf("encoding/json finds more after the value of %.200q", data)
	}
	plain, err := plainjson.Parse(data)
	if err != nil {
		t.Fatalf("the plain parser rejects %.200q: %v", data, err)
	}
	want := plainjson.Canonical(plain)
	if got := plainjson.Canonical(v); got != want {
		t.Fatalf("%.200q: encoding/json reads %.200s, the plain parser %.200s", data, got, want)
	}
	return want
}
