package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"pgregory.net/rapid"
)

var zeros = "sha256:" + strings.Repeat("0", 64)

// parseChanges parses the file for the outputs app.py and t/new.py.
func parseChanges(raw string) (*bundle.Changes, error) {
	return bundle.ParseChanges([]byte(raw), slices.Values([]string{"app.py", "t/new.py"}))
}

const goodChanges = `{"base":{"app.py":"ZERO","notes/old.txt":"ZERO","t/new.py":null},"executable":["app.py"],"form":1,"removes":["notes/old.txt"]}`

func changesText(replace ...string) string {
	return strings.NewReplacer("ZERO", zeros).Replace(strings.NewReplacer(replace...).Replace(goodChanges))
}

func TestChanges(t *testing.T) {
	c, err := parseChanges(changesText())
	if err != nil {
		t.Fatal(err)
	}
	if was, exists := c.Base("app.py"); !exists || was != (bundle.Base{}) {
		t.Error("app.py", was, exists)
	}
	if _, exists := c.Base("t/new.py"); exists || c.Executable("t/new.py") || !c.Executable("app.py") {
		t.Error("t/new.py is not new and plain, or app.py is not executable")
	}
	if r := c.Removes(); len(r) != 1 || r[0].String() != "notes/old.txt" {
		t.Error(r)
	}
	part, err := c.Only(func(path string) bool { return path != "app.py" && path != "t/new.py" })
	if want := `{"base":{"notes/old.txt":"` + zeros + `"},"executable":[],"form":1,"removes":["notes/old.txt"]}`; err != nil || string(part.Bytes()) != want {
		t.Errorf("%s, %v", part.Bytes(), err)
	}
}

// TestChangesRules: each rule, broken alone.
func TestChangesRules(t *testing.T) {
	for what, text := range map[string]string{
		"empty":                  "",
		"no object":              "[]",
		"not strict":             changesText(`"form":1`, `"form":1,"form":1`),
		"not canonical":          changesText(`"form":1`, `"form": 1`),
		"an end of line":         changesText() + "\n",
		"another member":         changesText(`"form":1`, `"form":1,"more":1`),
		"no form":                changesText(`"form":1,`, ``),
		"another member instead": changesText(`"form":1`, `"forn":1`),
		"form 2":                 changesText(`"form":1`, `"form":2`),
		"form as text":           changesText(`"form":1`, `"form":"1"`),
		"base no object":         `{"base":[],"executable":[],"form":1,"removes":[]}`,
		"base of a number":       changesText(`"t/new.py":null`, `"t/new.py":1`),
		"base without prefix":    changesText(`"app.py":"ZERO"`, `"app.py":"`+strings.Repeat("0", 64)+`"`),
		"base of capitals":       changesText(`"app.py":"ZERO"`, `"app.py":"sha256:`+strings.Repeat("A", 64)+`"`),
		"base too short":         changesText(`"app.py":"ZERO"`, `"app.py":"sha256:00"`),
		"output without base":    changesText(`"t/new.py":null`, `"t/newer.py":null`),
		"base too much":          changesText(`"t/new.py":null`, `"t/new.py":null,"t/newer.py":null`),
		"removed null":           changesText(`"notes/old.txt":"ZERO"`, `"notes/old.txt":null`),
		"removed without base":   changesText(`"removes":["notes/old.txt"]`, `"removes":["notes/old.txt","z"]`),
		"removes no array":       changesText(`["notes/old.txt"]`, `"notes/old.txt"`),
		"removes a number":       changesText(`["notes/old.txt"]`, `["notes/old.txt",1]`),
		"removed twice":          changesText(`["notes/old.txt"]`, `["notes/old.txt","notes/old.txt"]`),
		"removes not ascending":  changesText(`"notes/old.txt":"ZERO"`, `"a":"ZERO","notes/old.txt":"ZERO"`, `["notes/old.txt"]`, `["notes/old.txt","a"]`),
		"an output removed":      changesText(`["notes/old.txt"]`, `["app.py","notes/old.txt"]`),
		"removed above output":   changesText(`"notes/old.txt":"ZERO"`, `"notes/old.txt":"ZERO","t":"ZERO"`, `["notes/old.txt"]`, `["notes/old.txt","t"]`),
		"removed below output":   changesText(`"app.py":"ZERO"`, `"app.py":"ZERO","app.py/x":"ZERO"`, `["notes/old.txt"]`, `["app.py/x","notes/old.txt"]`),
		"removed below removed":  changesText(`"notes/old.txt":"ZERO"`, `"notes/old.txt":"ZERO","notes/old.txt/x":"ZERO"`, `["notes/old.txt"]`, `["notes/old.txt","notes/old.txt/x"]`),
		"removed by ..":          changesText("notes/old.txt", "notes/../old.txt"),
		"removed absolute":       changesText("notes/old.txt", "/old.txt"),
		"removed backslash":      changesText("notes/old.txt", `o\\ld.txt`),
		"removed with NUL":       changesText("notes/old.txt", `o\u0000ld.txt`),
		"removed nothing":        changesText(`"app.py"`, `"":"ZERO","app.py"`, `["notes/old.txt"]`, `["","notes/old.txt"]`),
		"removed of ours":        changesText("notes/old.txt", ".spectrum06_lock"),
		"the manifest removed":   changesText("notes/old.txt", "RESTORE_MANIFEST.json"),
		"removed below ours":     changesText("notes/old.txt", "RESTORE_REPORT.json/x"),
		"removed name too long":  changesText("notes/old.txt", "notes/"+strings.Repeat("o", pathsafe.MaxName+1)),
		"removed too long":       changesText("notes/old.txt", strings.Repeat("o", pathsafe.MaxPath+1)),
		"executable removed":     changesText(`"executable":["app.py"]`, `"executable":["notes/old.txt"]`),
		"executable unknown":     changesText(`"executable":["app.py"]`, `"executable":["b"]`),
		"executable unordered":   changesText(`"executable":["app.py"]`, `"executable":["t/new.py","app.py"]`),
		"executable no array":    changesText(`"executable":["app.py"]`, `"executable":{}`),
	} {
		if c, err := parseChanges(text); err == nil || c != nil {
			t.Errorf("%s: accepted: %s", what, text)
		}
	}
}

func TestChangesClaim(t *testing.T) {
	c, err := parseChanges(changesText())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(changesText()))
	claim, err := canonjson.Marshal(c.Claim())
	if want := fmt.Sprintf(`{"form":1,"sha256":"%x"}`, sum); err != nil || string(claim) != want {
		t.Errorf("%s, %v, want %s", claim, err, want)
	}
	good := string(claim)
	for constraints, want := range map[string]struct{ named, bad bool }{
		`{}`:                       {},
		`7`:                        {}, // another rule quarantines the candidate
		`{"changes":` + good + `}`: {named: true},
		`{"changes":null}`:         {true, true},
		`{"changes":{"form":1}}`:   {true, true},
		`{"changes":` + strings.Replace(good, "1", "2", 1) + `}`:                                {true, true},
		`{"changes":` + strings.Replace(good, `"form"`, `"a":1,"form"`, 1) + `}`:                {true, true},
		`{"changes":` + strings.ToUpper(good) + `}`:                                             {true, true},
		`{"changes":{"form":1,"sha256":"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"}}`: {true, true},
	} {
		value, err := canonjson.Parse([]byte(`{"constraints":` + constraints + `}`))
		if err != nil {
			t.Fatal(err)
		}
		spec, _ := value.Object()
		digest, named, err := bundle.ChangesClaim(spec)
		if named != want.named || (err != nil) != want.bad || named && err == nil && digest != sum {
			t.Errorf("%s: %x, %v, %v", constraints, digest, named, err)
		}
	}
}

// drawDraft draws a change set that has a form.
func drawDraft(t *rapid.T) (bundle.ChangesDraft, []string) {
	d := bundle.ChangesDraft{Base: map[string]*bundle.Base{}}
	var outputs []string
	for _, path := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c\x{e9}"]{1,3}/[a-c]{1,2}`), 1, 12, rapid.ID).Draw(t, "paths") {
		was := bundle.Base{rapid.Byte().Draw(t, "byte")}
		d.Base[path] = &was
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			d.Removes = append(d.Removes, path)
			continue
		case 1:
			d.Base[path] = nil
		case 2:
			d.Executable = append(d.Executable, path)
		}
		outputs = append(outputs, path)
	}
	return d, outputs
}

// TestChangesRoundTrip: what is made is read back as it is, and every part of it has a form.
func TestChangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, outputs := drawDraft(t)
		c, err := d.Changes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := bundle.ParseChanges(c.Bytes(), slices.Values(outputs))
		if err != nil || !bytes.Equal(again.Bytes(), c.Bytes()) || len(again.Removes()) != len(d.Removes) {
			t.Fatalf("%s: %v", c.Bytes(), err)
		}
		kept := rapid.SliceOfDistinct(rapid.SampledFrom(append(slices.Clone(outputs), d.Removes...)), rapid.ID).Draw(t, "kept")
		part, err := c.Only(func(path string) bool { return slices.Contains(kept, path) })
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range kept {
			was, exists := c.Base(path)
			if is, still := part.Base(path); is != was || still != exists || part.Executable(path) != c.Executable(path) {
				t.Fatalf("%q of the part", path)
			}
		}
	})
}

// FuzzChanges: an accepted text obeys every rule, and is the only text of that change set.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(changesText()))
	f.Add([]byte(changesText(`["notes/old.txt"]`, `["app.py","notes/old.txt"]`)))
	f.Add([]byte(`{"base":{"app.py":null,"t/new.py":null},"executable":[],"form":1,"removes":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := parseChanges(string(raw))
		if (err == nil) != (c != nil) {
			t.Fatalf("%v with %v", c, err)
		}
		var size *bundle.SizeError
		if err != nil {
			if errors.As(err, &size) {
				t.Fatal("a small file is too large")
			}
			return
		}
		if !bytes.Equal(c.Bytes(), raw) {
			t.Fatalf("%q became %q", raw, c.Bytes())
		}
		d := bundle.ChangesDraft{Base: map[string]*bundle.Base{}}
		for _, path := range append([]string{"app.py", "t/new.py"}, texts(c.Removes())...) {
			if was, exists := c.Base(path); exists {
				d.Base[path] = &was
			} else {
				d.Base[path] = nil
			}
			if c.Executable(path) {
				d.Executable = append(d.Executable, path)
			}
		}
		d.Removes = texts(c.Removes())
		for _, path := range d.Removes {
			if d.Base[path] == nil || strings.HasPrefix(path, ".spectrum06_") || path == "app.py" || strings.HasPrefix("t/new.py", path+"/") {
				t.Fatalf("%q is removed", path)
			}
		}
		again, err := d.Changes()
		if err != nil || !bytes.Equal(again.Bytes(), raw) {
			t.Fatalf("%q says the same as %q: %v", again.Bytes(), raw, err)
		}
	})
}

func texts(paths []pathsafe.Path) []string {
	all := make([]string, len(paths))
	for i, path := range paths {
		all[i] = path.String()
	}
	return all
}
