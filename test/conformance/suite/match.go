package suite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/spectrumfs/spectrum/test/forge"
)

// match compares what a command printed with what it must print.
//
// Of "details" the named members are demanded and others are free; "message" is
// free, and must be a text. "path" may repeat that of the details. Everything
// else is as it stands: nothing less, nothing more.
func (cmd Command) match(stdout []byte) error {
	got, err := canonical(stdout)
	if err != nil {
		return err
	}
	want, err := decode([]byte(cmd.Result))
	if err != nil {
		return err
	}
	given := map[string]any{}
	if cmd.IfGiven != "" {
		if given, err = decode([]byte(cmd.IfGiven)); err != nil {
			return err
		}
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value := want[name]
		if name == "details" && want["ok"] == false {
			wrong = append(wrong, matchDetails(value, got[name], given))
		} else if is, ok := got[name]; !ok || !reflect.DeepEqual(is, value) {
			wrong = append(wrong, fmt.Errorf("%q is %v, not %v", name, is, value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && !cmd.mayHave(name, want, got) {
			wrong = append(wrong, fmt.Errorf("%q must not be there", name))
		}
	}
	return errors.Join(wrong...)
}

func (cmd Command) mayHave(name string, want, got map[string]any) bool {
	if slices.Contains(cmd.Free, name) {
		return true
	}
	if _, isReject := want["details"]; !isReject || want["ok"] != false {
		return false
	}
	details, _ := got["details"].(map[string]any)
	switch name {
	case "message":
		_, isText := got[name].(string)
		return isText
	case "path":
		return details["path"] != nil && got[name] == details["path"]
	}
	return false
}

func matchDetails(want, got any, given map[string]any) error {
	details, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("details is %v, not an object", got)
	}
	var wrong []error
	for name, value := range want.(map[string]any) {
		if is, ok := details[name]; !ok || !reflect.DeepEqual(is, value) {
			wrong = append(wrong, fmt.Errorf("details.%s is %q, not %q", name, is, value))
		}
	}
	for name, value := range given {
		if is, ok := details[name]; ok && !reflect.DeepEqual(is, value) {
			wrong = append(wrong, fmt.Errorf("details.%s is %q; if given, it is %q", name, is, value))
		}
	}
	return errors.Join(wrong...)
}

// canonical decodes one JSON object in canonical form, in which characters beyond
// ASCII and DEL may be \u escapes.
func canonical(raw []byte) (map[string]any, error) {
	members, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("stdout is not one JSON object: %w: %.300q", err, raw)
	}
	if !bytes.Equal(forge.Canonical(members), unescaped(raw)) {
		return nil, fmt.Errorf("stdout is not canonical JSON: %.300q", raw)
	}
	return members, nil
}

// unescaped puts the characters in the place of \u escapes that canonical JSON does
// not have: those from U+007F on.
func unescaped(raw []byte) []byte {
	return escapes.ReplaceAllFunc(raw, func(one []byte) []byte {
		var text string
		err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, one), &text)
		if err != nil || one[1] != 'u' || text < "\x7f" || text == "\ufffd" {
			return one
		}
		return []byte(text)
	})
}

// escapes are a \u escape, two that are one character, or any other escape.
var escapes = regexp.MustCompile(`\\u[dD][89abAB][0-9a-f]{2}\\u[dD][c-fC-F][0-9a-f]{2}|\\u[0-9a-f]{4}|\\.`)

func decode(raw []byte) (map[string]any, error) {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil {
		return nil, err
	}
	return members, nil
}
