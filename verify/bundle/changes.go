package bundle

// This file is law: the form of CHANGES, and of the claim that binds it to TASK_SPEC.json.

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// ChangesFile is the file of a run directory with the base of a change set and its removals.
// No law reads it: a fault in it never changes a verdict.
const ChangesFile = "CHANGES"

// ChangesMember is the member of constraints in TASK_SPEC.json that has the digest of [ChangesFile].
const ChangesMember = "changes"

// changesForm is the form of the claim and of the file.
const changesForm = "1"

// Changes is a change set: the base that the producer of a bundle started from, and the
// removals. Only [ParseChanges] and [ChangesDraft.Changes] make one, and it is immutable.
type Changes struct {
	raw        []byte
	base       map[string]*Base
	executable map[string]bool
	removes    []pathsafe.Path
}

// Base is the content of the file that a producer started from.
type Base [sha256.Size]byte

// Base returns the file that the producer started from at an output or a removed path, and whether
// it existed.
func (c *Changes) Base(path string) (was Base, exists bool) {
	if base := c.base[path]; base != nil {
		return *base, true
	}
	return Base{}, false
}

// Executable reports whether an output shall have its executable bits.
func (c *Changes) Executable(path string) bool { return c.executable[path] }

// Removes returns the paths that are removed, in ascending order.
func (c *Changes) Removes() []pathsafe.Path { return slices.Clone(c.removes) }

// Bytes returns the content of [ChangesFile].
func (c *Changes) Bytes() []byte { return bytes.Clone(c.raw) }

// Claim returns the required member [ChangesMember] of constraints.
func (c *Changes) Claim() map[string]any {
	sum := sha256.Sum256(c.raw)
	return map[string]any{"form": 1, "sha256": hex.EncodeToString(sum[:])}
}

// Only returns the part of a change set that is about the paths that keep reports.
func (c *Changes) Only(keep func(path string) bool) (*Changes, error) {
	d := ChangesDraft{Base: map[string]*Base{}}
	for path, base := range c.base {
		if keep(path) {
			d.Base[path] = base
		}
	}
	for path := range c.executable {
		if keep(path) {
			d.Executable = append(d.Executable, path)
		}
	}
	for _, path := range c.removes {
		if keep(path.String()) {
			d.Removes = append(d.Removes, path.String())
		}
	}
	return d.Changes()
}

// ChangesDraft is a change set to be made. The paths of Base that are not in Removes are the
// outputs.
type ChangesDraft struct {
	Base                map[string]*Base
	Executable, Removes []string // in any order
}

// Changes checks the draft and makes a change set of it.
func (d ChangesDraft) Changes() (*Changes, error) {
	base := make(map[string]*string, len(d.Base))
	outputs := make([]string, 0, len(d.Base))
	removed := map[string]bool{}
	for _, path := range d.Removes {
		removed[path] = true
	}
	for path, was := range d.Base {
		if base[path] = nil; was != nil {
			text := HashPrefix + hex.EncodeToString(was[:])
			base[path] = &text
		}
		if !removed[path] {
			outputs = append(outputs, path)
		}
	}
	raw, err := canonjson.Marshal(map[string]any{
		"base": base, "executable": slices.Sorted(slices.Values(d.Executable)), "form": 1, "removes": slices.Sorted(slices.Values(d.Removes)),
	})
	if err != nil {
		return nil, err
	}
	if err := checkSize(ChangesFile, int64(len(raw))); err != nil {
		return nil, err
	}
	return ParseChanges(raw, slices.Values(outputs))
}

// ChangesClaim returns the digest of [ChangesFile] in TASK_SPEC.json; named is false if there is
// none. It returns an error for a malformed claim.
func ChangesClaim(taskSpec canonjson.Object) (digest [sha256.Size]byte, named bool, err error) {
	value, _ := taskSpec.Get("constraints")
	constraints, _ := value.Object()
	if value, named = constraints.Get(ChangesMember); !named {
		return digest, false, nil
	}
	claim, _ := value.Object()
	form, _ := claim.Get("form")
	sum, _ := claim.Get("sha256")
	text, _ := sum.Text()
	switch decoded, err := hex.DecodeString(text); {
	case claim.Len() != 2 || string(form.Append(nil)) != changesForm:
		return digest, true, errors.New(`constraints.changes is not {"form":1,"sha256":"..."}`)
	case err != nil || len(decoded) != len(digest) || strings.ToLower(text) != text:
		return digest, true, errors.New("constraints.changes.sha256 is not 64 lower-case hex digits")
	default:
		return [sha256.Size]byte(decoded), true, nil
	}
}

// ParseChanges reads the content of [ChangesFile] for a bundle with these outputs. The error names
// the first rule that it breaks.
func ParseChanges(raw []byte, outputs iter.Seq[string]) (*Changes, error) {
	if err := checkSize(ChangesFile, int64(len(raw))); err != nil {
		return nil, err
	}
	value, err := canonjson.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not strict JSON: %w", err)
	}
	object, ok := value.Object()
	if !ok || !bytes.Equal(value.Append(make([]byte, 0, len(raw))), raw) {
		return nil, errors.New("it is not a JSON object in canonical form")
	}
	if names := slices.Collect(maps.Keys(maps.Collect(object.Members()))); len(names) != 4 {
		return nil, errors.New("its members are not base, executable, form and removes")
	}
	c := &Changes{raw: bytes.Clone(raw)}
	for _, part := range []struct {
		name string
		read func(canonjson.Value) error
	}{{"form", checkChangesForm}, {"base", c.readBase}, {"removes", c.readRemoves}, {"executable", c.readExecutable}} {
		member, ok := object.Get(part.name)
		if !ok {
			return nil, fmt.Errorf("%q is missing", part.name)
		}
		if err := part.read(member); err != nil {
			return nil, err
		}
	}
	if err := c.fits(outputs); err != nil {
		return nil, err
	}
	return c, nil
}

func checkChangesForm(v canonjson.Value) error {
	if string(v.Append(nil)) != changesForm {
		return errors.New(`"form" is not 1`)
	}
	return nil
}

func (c *Changes) readBase(v canonjson.Value) error {
	object, ok := v.Object()
	if !ok {
		return errors.New(`"base" is not an object`)
	}
	c.base = map[string]*Base{}
	for path, value := range object.Members() {
		if string(value.Append(nil)) == "null" {
			c.base[path] = nil
			continue
		}
		text, _ := value.Text()
		digits, ok := strings.CutPrefix(text, HashPrefix)
		sum, err := hex.DecodeString(digits)
		if !ok || err != nil || len(sum) != sha256.Size || strings.ToLower(digits) != digits {
			return fmt.Errorf(`"base" of %q is neither null nor "sha256:" and 64 lower-case hex digits`, path)
		}
		base := Base(sum)
		c.base[path] = &base
	}
	return nil
}

func (c *Changes) readRemoves(v canonjson.Value) error {
	texts, err := ascending("removes", v)
	if err != nil {
		return err
	}
	for _, text := range texts {
		path, err := pathsafe.Parse(text)
		switch {
		case err != nil:
			return fmt.Errorf(`"removes" has %q: %w`, text, err)
		case len(text) > pathsafe.MaxPath:
			return fmt.Errorf(`"removes" has a path of %d bytes, and no path has more than %d`, len(text), pathsafe.MaxPath)
		case slices.ContainsFunc(path.Components(), func(name string) bool { return len(name) > pathsafe.MaxName }):
			return fmt.Errorf(`"removes" has %q, and no name in a path has more than %d bytes`, text, pathsafe.MaxName)
		case Reserved(path):
			return fmt.Errorf(`"removes" has %q, a name reserved for the restore`, text)
		case c.base[text] == nil:
			return fmt.Errorf(`"base" has no content for the removed %q`, text)
		}
		c.removes = append(c.removes, path)
	}
	return nil
}

func (c *Changes) readExecutable(v canonjson.Value) error {
	texts, err := ascending("executable", v)
	c.executable = make(map[string]bool, len(texts))
	for _, text := range texts {
		c.executable[text] = true
	}
	return err
}

// ascending returns the strings of an array, which ascend by their bytes.
func ascending(name string, v canonjson.Value) ([]string, error) {
	if !v.IsArray() {
		return nil, fmt.Errorf("%q is not an array", name)
	}
	var texts []string
	for element := range v.Elements() {
		text, ok := element.Text()
		switch {
		case !ok:
			return nil, fmt.Errorf("%q has an element that is not a string", name)
		case len(texts) > 0 && text <= texts[len(texts)-1]:
			return nil, fmt.Errorf("%q: %q is a duplicate or not in ascending order", name, text)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// fits requires the change set to cover exactly these outputs and its removals, and rejects a
// path that is both, or above or below another one.
func (c *Changes) fits(outputs iter.Seq[string]) error {
	taken := make(map[string]string, len(c.base)) // the role of each path
	for path := range outputs {
		if _, ok := c.base[path]; !ok {
			return fmt.Errorf(`"base" has no content for the output %q`, path)
		}
		taken[path] = "an output"
	}
	for _, path := range c.removes {
		if what := taken[path.String()]; what != "" {
			return fmt.Errorf("the removed %q is %s too", path, what)
		}
		taken[path.String()] = "removed"
	}
	for _, path := range slices.Sorted(maps.Keys(c.base)) {
		if taken[path] == "" {
			return fmt.Errorf(`"base" has %q, which is neither an output nor removed`, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.executable)) {
		if taken[path] != "an output" {
			return fmt.Errorf(`"executable" has %q, which is not an output`, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(taken)) {
		if len(path) > pathsafe.MaxPath { // an output that no restore can make
			continue
		}
		for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
			above := path[:at]
			if what := taken[above]; what == "removed" || what != "" && taken[path] == "removed" {
				return fmt.Errorf("%q is %s, and %q below it is %s: a file that becomes a directory, or the reverse, has no form", above, what, path, taken[path])
			}
		}
	}
	return nil
}
