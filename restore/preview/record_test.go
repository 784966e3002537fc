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
	s.add("run-1", map[string]string{"a": "alpha\n"})
	p := s.preview()
	return jsonOf(t, p), p.ID()
}

// refused wants that a changed record is none.
func refused(t *testing.T, raw []byte, id, how string) {
	t.Helper()
	if r, err := preview.ParseRecord(raw, id); !errors.Is(err, preview.ErrForged) || r != nil {
		t.Fatalf("%s: %v, %v\n%s", how, r, err, raw)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	s := newScene(t)
	p := s.preview()
	if got := kept(t, p).Origin(); !reflect.DeepEqual(got, s.origin) {
		t.Errorf("origin %+v, want %+v", got, s.origin)
	}
}

// TestEveryBitOfARecord: every single bit of it counts.
func TestEveryBitOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	for i := range raw {
		for bit := range 8 {
			changed := bytes.Clone(raw)
			changed[i] ^= 1 << bit
			refused(t, changed, id, "flipped")
		}
	}
	t.Logf("%d records", 8*len(raw))
}

// TestEveryLengthOfARecord: and every byte.
func TestEveryLengthOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	for n := range raw {
		refused(t, raw[:n], id, "cut")
		refused(t, slices.Insert(bytes.Clone(raw), n, ' '), id, "a space more")
	}
	for _, more := range []string{" ", "\n", "\x00", "{}", "x"} {
		refused(t, append(bytes.Clone(raw), more...), id, "longer")
	}
}

// TestEveryFieldOfARecord: dropped, doubled, of another type, or a new one.
func TestEveryFieldOfARecord(t *testing.T) {
	raw, id := smallRecord(t)
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &fields))
	if len(fields) != 16 {
		t.Errorf("%d fields", len(fields))
	}
	write := func() []byte {
		changed, err := json.Marshal(fields)
		must(t, err)
		return changed
	}
	for name, value := range fields {
		delete(fields, name)
		refused(t, write(), id, name+" dropped")
		fields[name] = json.RawMessage("null")
		refused(t, write(), id, name+" null")
		fields[name] = value
		doubled := append([]byte(`{"`+name+`":`+string(value)+`,`), raw[1:]...)
		refused(t, doubled, id, name+" doubled")
	}
	fields["x"] = json.RawMessage("1")
	refused(t, write(), id, "one more")
}

// TestRecordOfAnotherShape: what hashes to its identity and is no preview is no
// record either.
func TestRecordOfAnotherShape(t *testing.T) {
	for _, text := range []string{`{}`, `[]`, `null`, `""`, `{"artifact_type":"restore_preview"}`, `{"totals":{"files":"1"}}`} {
		sum := sha256.Sum256([]byte(text))
		id := hex.EncodeToString(sum[:])
		refused(t, []byte(text), id, "plain")
		if text[0] == '{' {
			comma := ","
			if text == "{}" {
				comma = ""
			}
			refused(t, []byte(text[:len(text)-1]+comma+`"preview_id":"`+id+`"}`), id, "with its id")
		}
	}
	none := sha256.Sum256([]byte("{}"))
	refused(t, []byte("[]"), hex.EncodeToString(none[:]), "no object")
	refused(t, nil, "", "nothing")
}

// TestRecordOfAnotherPreview: a record is that of one identity.
func TestRecordOfAnotherPreview(t *testing.T) {
	raw, id := smallRecord(t)
	_, other := smallRecord(t)
	for _, id := range []string{other, "", id[:63], id + "0", "x" + id[1:]} {
		refused(t, raw, id, "of "+id)
	}
}
