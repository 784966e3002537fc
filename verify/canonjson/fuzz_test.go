package canonjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// seed adds the texts of all tables of this package to a fuzz target, except very long ones.
func seed(f *testing.F) {
	for _, c := range suite {
		if len(c.in) < 2000 {
			f.Add([]byte(c.in))
		}
	}
	f.Add(nested(20))
	f.Add([]byte(`{"a":0,"A":1,"\u0001":2,"a!":3,"a\"":4,"a\u0000":5,"\\":6,"]":7}`)) // escapes do not count in the order
	f.Add([]byte(`["\u007f\\\/\u2028","\\\u007e\u0080"]`))
	f.Add([]byte(`{"b":{"\u0000":[1e5,-0]},"a\"":"\ud83d\udca1","A":{"z":0,"y":{"b":1,"a":2}}}`))
}

// FuzzStrictJSON compares the parser with three others: the plain one accepts and rejects exactly
// the same, and the two with other rules accept what they should.
func FuzzStrictJSON(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		value, err := canonjson.Parse(data)
		if !bytes.Equal(before, data) {
			t.Fatalf("Parse changed its input")
		}
		if _, plain := plainjson.Parse(data); (err == nil) != (plain == nil) {
			t.Errorf("%.200q: error %v, of the plain parser %v", data, err, plain)
		}
		strict := strictJSON(data)
		switch {
		case err == nil && (!strict || !json.Valid(data)):
			t.Errorf("accepted: jsontext %v, encoding/json %v", strict, json.Valid(data))
		case err != nil && strict && !tooMuch(data):
			t.Errorf("rejected without reason: %v", err)
		case err != nil && len(value.Append(nil)) > 0:
			t.Errorf("a value came with the error %v", err)
		case err == nil && tooMuch(data):
			t.Errorf("accepted: too deep, or with a number that is not finite")
		}
	})
}

// strictJSON is the verdict of jsontext, which rejects double names and bad UTF-8 by default.
func strictJSON(data []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(data))
	if _, err := dec.ReadValue(); err != nil {
		return false
	}
	_, err := dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// tooMuch reports whether well-formed JSON exceeds the limits of this parser: depth, and numbers
// that are not finite.
func tooMuch(data []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	for {
		kind := dec.PeekKind()
		if kind == '0' {
			raw, err := dec.ReadValue()
			if err != nil || !isFinite(string(raw)) {
				return err == nil
			}
		} else if _, err := dec.ReadToken(); err != nil {
			return false
		}
		if dec.StackDepth() > canonjson.MaxDepth {
			return true
		}
	}
}

// FuzzCanonical compares the canonical form with its definition and with the slow writer.
func FuzzCanonical(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := canonjson.Parse(data)
		if err != nil {
			t.Skip("rejected")
		}
		checkCanonical(t, data, value)
	})
}

// checkCanonical compares all writers of one value with each other.
func checkCanonical(t *testing.T, data []byte, value canonjson.Value) {
	t.Helper()
	got := string(value.Append(nil))
	if want := slowCanonical(t, data); got != want {
		t.Errorf("%.200q:\ngot  %.200s\nwant %.200s", data, got, want)
	}
	if again := canonical(t, []byte(got)); again != got {
		t.Errorf("%.200q: no fixed point: %.200s, then %.200s", data, got, again)
	}
	var pieces strings.Builder
	if n, err := value.WriteTo(&pieces); err != nil || n != int64(len(got)) || pieces.String() != got {
		t.Errorf("%.200q: WriteTo wrote %.200s (%d, %v)", data, pieces.String(), n, err)
	}
	if kept := string(value.Append([]byte("kept"))); kept != "kept"+got {
		t.Errorf("%.200q: Append does not append", data)
	}
	checkAscending(t, value)
	checkASCII(t, got, value)
}

// checkAscending walks the value: names ascend at every depth, and each is
// found by Get.
func checkAscending(t *testing.T, value canonjson.Value) {
	t.Helper()
	for element := range value.Elements() {
		checkAscending(t, element)
	}
	object, _ := value.Object()
	before, n := "", 0
	for name, member := range object.Members() {
		if n > 0 && name <= before {
			t.Errorf("%q comes after %q", name, before)
		}
		if found, ok := object.Get(name); !ok || !bytes.Equal(found.Append(nil), member.Append(nil)) {
			t.Errorf("Get(%q) does not find the member", name)
		}
		checkAscending(t, member)
		before, n = name, n+1
	}
	if object.Len() != n {
		t.Errorf("Len is %d, there are %d members", object.Len(), n)
	}
}

// checkASCII: the ASCII form is ASCII, and means the same.
func checkASCII(t *testing.T, want string, value canonjson.Value) {
	t.Helper()
	var b bytes.Buffer
	if err := value.WriteASCII(&b); err != nil {
		t.Fatal(err)
	}
	if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 {
		t.Errorf("byte %d of the ASCII form of %.200s is %#x", i, want, b.Bytes()[i])
	}
	if got := canonical(t, b.Bytes()); got != want {
		t.Errorf("the ASCII form of %.200s means %.200s", want, got)
	}
}

// TestSuiteIsCanonical runs the checks of FuzzCanonical over the table.
func TestSuiteIsCanonical(t *testing.T) {
	accepted := 0
	for _, c := range suite {
		if value, err := canonjson.Parse([]byte(c.in)); err == nil {
			checkCanonical(t, []byte(c.in), value)
			accepted++
		}
	}
	if accepted < 50 {
		t.Errorf("only %d cases of the table were accepted", accepted)
	}
}
