package preview_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/plainjson"
)

// FuzzStatement changes the statement in one place and puts something round it:
// what is not the same bytes is refused, in one line that can be printed.
func FuzzStatement(f *testing.F) {
	for _, text := range vague {
		f.Add(uint16(0), uint8(0), int32(0), text, "")
	}
	for i, c := range []rune{'a', 'A', ' ', 0, '\u0430', '\u00a0', '\u200b', '\r', '\x1b', '\u202e', -1, 0xd800} {
		f.Add(uint16(7*i), uint8(i), c, "", "")
	}
	f.Add(uint16(0), uint8(1), int32(0), "\x1b[2J\x1b]0;x\x07", "\n"+statement+"\r\n")
	f.Add(uint16(10), uint8(4), int32(0), "", "")
	f.Fuzz(func(t *testing.T, at uint16, how uint8, c rune, before, after string) {
		text := before + changeOne(statement, int(at)%len(statement), how, c) + after
		err := preview.CheckStatement(text)
		if same := bytes.Equal([]byte(text), []byte("Approved: commit the restore preview exactly as proposed.")); (err == nil) != same {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, preview.ErrVague) {
			t.Errorf("%q: %v", text, err)
		}
		checkPrintable(t, err.Error())
	})
}

// changeOne changes one place of a text, or nothing.
func changeOne(text string, at int, how uint8, c rune) string {
	head, letter, tail := text[:at], text[at:at+1], text[at+1:]
	switch how % 6 {
	case 0:
		return head + string(c) + letter + tail
	case 1:
		return head + string(c) + tail
	case 2:
		return head + tail
	case 3:
		return head + strings.ToUpper(letter) + tail
	case 4:
		return head + strings.ToLower(letter) + tail
	}
	return text
}

// checkPrintable wants one line in which nothing can move a cursor, end a line
// or turn letters round.
func checkPrintable(t *testing.T, line string) {
	t.Helper()
	if i := strings.IndexFunc(line, func(c rune) bool { return !strconv.IsPrint(c) }); i >= 0 || !utf8.ValidString(line) {
		t.Errorf("byte %d of %q cannot be printed", i, line)
	}
}

// FuzzRecord reads any text as the record of a preview, under the identity that
// it has or should have: it is a record only if all of it but the identity
// hashes to the identity, and then it says what it says.
func FuzzRecord(f *testing.F) {
	s := bareScene(f)
	s.add("run-1", map[string]string{"a": "alpha\n"})
	p := s.preview()
	good, id := jsonOf(f, p), p.ID()
	mark := []byte(`"preview_id":"` + id + `",`)
	bare := bytes.Replace(good, mark, nil, 1)
	f.Add(bare, uint16(bytes.Index(good, mark)), false)
	f.Add(good, uint16(0), true)
	checkRecord(f, kept(f, p), good, id)
	for _, origin := range []string{
		`"origin":{"chain":true},`, `"Origin":{"chain":true},`, `"origin":{"chain":true},"origin":{"chain":false},`, `"origin":{"chain":1},`, `"origin":null,`,
		`"origin":{"chain":true,"ch\u0061in":false},`, `"origin":{"CHAIN":true,"restore_root":"\ud800"},`, `"origin":{"run_dirs":["\u002f"],"restore_root":"/r"},`, "",
	} {
		f.Add([]byte("{"+origin+`"proposed_restorations":[]}`), uint16(1+len(origin)), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint16, named bool) {
		asked := ""
		if said := recordID.FindSubmatch(text); named && said != nil { // what it says itself
			asked = string(said[1])
		} else { // it is given the identity that fits it
			sum := sha256.Sum256(text)
			asked = hex.EncodeToString(sum[:])
			cut := min(int(at), len(text))
			text = []byte(string(text[:cut]) + `"preview_id":"` + asked + `",` + string(text[cut:]))
		}
		record, err := preview.ParseRecord(text, asked)
		if err != nil {
			if !errors.Is(err, preview.ErrForged) || record != nil {
				t.Errorf("%v, %v", record, err)
			}
			return
		}
		checkRecord(t, record, text, asked)
	})
}

// recordID is where a record says its identity. (It is another one in each
// process that fuzzes, since the restore roots are.)
var recordID = regexp.MustCompile(`"preview_id":"([0-9a-f]{64})"`)

// checkRecord holds a record that was believed against what anybody reads.
func checkRecord(t testing.TB, record *preview.Record, text []byte, id string) {
	t.Helper()
	rest := strings.Replace(string(text), `"preview_id":"`+id+`",`, "", 1)
	if sum := sha256.Sum256([]byte(rest)); hex.EncodeToString(sum[:]) != id {
		t.Errorf("%q does not hash to %s", rest, id)
	}
	tree, err := plainjson.Parse(text)
	if err != nil && !beyond(text) {
		t.Fatalf("%q was believed: %v", text, err)
	}
	object, _ := tree.(map[string]any)
	origin, _ := object["origin"].(map[string]any)
	chain, _ := origin["chain"].(bool)
	root, _ := origin["restore_root"].(string)
	dirs, _ := origin["run_dirs"].([]any)
	got := record.Origin()
	if err == nil && (object["preview_id"] != id || got.Chain != chain || got.RestoreRoot != root || len(got.RunDirs) != len(dirs)) {
		t.Errorf("%q says %v, and is read as %+v", text, origin, got)
	}
	for i, dir := range dirs {
		if got.RunDirs[i] != dir && dir != nil {
			t.Errorf("run directory %d is %v, and is read as %q", i, dir, got.RunDirs[i])
		}
	}
}

var exponent = regexp.MustCompile(`[0-9][eE][+-]?[0-9]|[0-9]{300}`)

// beyond says whether a text may hold what only decision D6 refuses: depth, and
// numbers that are not finite. The identity vouches for a record all the same.
func beyond(text []byte) bool {
	return bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 512 || exponent.Match(text)
}
