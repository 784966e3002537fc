package canonjson_test

import (
	"encoding/hex"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// fromHex decodes a field of a vector.
func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// mustParse parses what has to be accepted.
func mustParse(t testing.TB, data []byte) canonjson.Value {
	t.Helper()
	v, err := canonjson.Parse(data)
	if err != nil {
		t.Fatalf("%.200q: %v", data, err)
	}
	return v
}

// canonical is the canonical form of what has to be accepted.
func canonical(t testing.TB, data []byte) string {
	t.Helper()
	return string(mustParse(t, data).Append(nil))
}

func TestCanonicalVectors(t *testing.T) {
	type vector struct {
		Name         string
		InputHex     string `json:"input_hex"`
		CanonicalHex string `json:"canonical_hex"`
		Canonical    string
	}
	for _, v := range bundletest.Vectors[vector](t, "canonical_json") {
		t.Run(v.Name, func(t *testing.T) {
			want := string(fromHex(t, v.CanonicalHex))
			if v.Canonical != want {
				t.Errorf("the vector contradicts itself: %q, %q", v.Canonical, want)
			}
			if got := canonical(t, fromHex(t, v.InputHex)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again := canonical(t, []byte(want)); again != want {
				t.Errorf("the canonical form is not a fixed point: %s", again)
			}
		})
	}
}

// TestNotJSONVectors: texts that an artifact must not have. One of them is JSON, but not an object,
// which only the reader of the artifact rejects.
func TestNotJSONVectors(t *testing.T) {
	type vector struct {
		Name     string
		InputHex string `json:"input_hex"`
	}
	notObjects := 0
	for _, v := range bundletest.Vectors[vector](t, "not_json") {
		value, err := canonjson.Parse(fromHex(t, v.InputHex))
		if err != nil {
			if _, ok := value.Object(); ok || len(value.Append(nil)) > 0 {
				t.Errorf("%s: a value came with the error", v.Name)
			}
			continue
		}
		if notObjects++; v.Name != "not an object" {
			t.Errorf("%s: accepted", v.Name)
		}
		if _, ok := value.Object(); ok {
			t.Errorf("%s: an object", v.Name)
		}
	}
	if notObjects != 1 {
		t.Errorf("%d vectors are JSON without being an object, want 1", notObjects)
	}
}
