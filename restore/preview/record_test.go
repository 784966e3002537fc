package preview_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
)

// smallRecord is a record as it is kept.
func smallRecord(t *testing.T) (raw []byte, id string) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha\n"})
	p := s.Preview()
	return keepOf(t, p), p.ID()
}

// rejected requires that ParseRecord rejects a changed record.
func rejected(t *testing.T, raw []byte, id, how string) {
	t.Helper()
	if r, err := preview.ParseRecord(raw, id); !errors.Is(err, preview.ErrForged) || r != nil {
		t.Fatalf("%s: %v, %v\n%s", how, r, err, raw)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	s := newScene(t)
	p := s.Preview()
	if got := kept(t, p).Origin(); !reflect.DeepEqual(got, s.Request().Origin) {
		t.Errorf("origin %+v, want %+v", got, s.Request().Origin)
	}
}

// TestEveryBitOfARecord checks that a change of any bit of a record is rejected.
func TestEveryBitOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	for i := range raw {
		for bit := range 8 {
			changed := bytes.Clone(raw)
			changed[i] ^= 1 << bit
			rejected(t, changed, id, "flipped")
		}
	}
	t.Logf("%d records", 8*len(raw))
}

// TestEveryLengthOfARecord checks that a record with a byte less or more is rejected.
func TestEveryLengthOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	for n := range raw {
		rejected(t, raw[:n], id, "cut")
		rejected(t, slices.Insert(bytes.Clone(raw), n, ' '), id, "a space more")
	}
	for _, more := range []string{" ", "\n", "\x00", "{}", "x"} {
		rejected(t, append(bytes.Clone(raw), more...), id, "longer")
	}
}

// TestEveryFieldOfARecord: dropped, of another type, or a new one, with the sum
// that fits: only what Keep would write is a record.
func TestEveryFieldOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(line, &fields))
	if len(fields) != 5 {
		t.Errorf("%d fields", len(fields))
	}
	write := func() []byte { return summed(canonical(t, fields)) }
	if _, err := preview.ParseRecord(write(), id); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		delete(fields, name)
		rejected(t, write(), id, name+" dropped")
		fields[name] = json.RawMessage("null")
		rejected(t, write(), id, name+" null")
		fields[name] = value
		rejected(t, summed(append([]byte(`{"`+name+`":`+string(value)+`,`), line[1:]...)), id, name+" doubled")
	}
	fields["x"] = json.RawMessage("1")
	rejected(t, write(), id, "one more")
}

func summed(line []byte) []byte {
	sum := sha256.Sum256(line)
	return []byte(string(line) + "\n" + hex.EncodeToString(sum[:]) + "\n")
}

// TestRecordOfAnotherShape: what has a sum that fits and is not a preview is not
// a record either.
func TestRecordOfAnotherShape(t *testing.T) {
	for _, text := range []string{"", `{}`, `[]`, `null`, `""`, `{"preview":"{}"}`, `{"asked":1}`} {
		for _, id := range []string{"", sumOf(text), sumOf("{}"), sumOf("")} {
			rejected(t, summed([]byte(text)), id, "plain")
		}
	}
	rejected(t, nil, "", "nothing")
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestRecordOfAnotherPreview checks that a record is rejected with another identity.
func TestRecordOfAnotherPreview(t *testing.T) {
	raw, id := smallRecord(t)
	_, other := smallRecord(t)
	for _, id := range []string{other, "", id[:63], id + "0", "x" + id[1:]} {
		rejected(t, raw, id, "of "+id)
	}
}
