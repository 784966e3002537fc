package verify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
)

// unsignedParts is the complete list of what can change in a run directory without changing the
// verdict, because it is not signed. The tests below compare the list with the program, in both
// directions.
var unsignedParts = []struct{ file, member, why string }{
	{bundle.OutputHashes, "generated_at", "the root takes only hashes"},
	{bundle.OutputHashes, "validator_semver", "the root takes only hashes; SPECTRUM-02 reads it, SPECTRUM-05 does not"},
	{bundle.OutputHashes, "validator_build_id", "the root takes only hashes; SPECTRUM-02 reads it, SPECTRUM-05 does not"},
	{bundle.OutputHashes, "more", "so any other member: no law forbids one"},
	{bundle.Signature, "signed_at", "allowed by decision D9, and not in the message"},
	{bundle.Proof, "restoration_result", "decision D16; but verified must be true in it"},
	{bundle.Proof, "proof_hash", "decision D16; but one that is a hash must fit"},
	{bundle.Proof, "more", "decision D16: any other member"},
}

// isUnsigned reports whether the list has the member of an artifact that a place is in, or is.
func isUnsigned(name string, at place) bool {
	for _, part := range unsignedParts {
		if part.file == name && len(at.path) > 0 && at.path[0] == strconv.Quote(part.member) {
			return true
		}
	}
	return false
}

// nestedRun is a canonical run in which members are nested, signed ones and
// others. Its PROOF.json has no proof_hash that would have to fit.
func nestedRun(t testing.TB) *bundletest.Run {
	t.Helper()
	r := canonicalRun(t)
	nested := map[string]any{"a": []any{1.5, map[string]any{"b": nil, "c": "text"}}, "d": map[string]any{"e": true}}
	r.Edit(bundle.TaskSpec, set("constraints", nested))
	r.Edit(bundle.Status, set("more", nested))
	r.Edit(bundle.OutputHashes, set("more", nested))
	r.Edit(bundle.Proof, set("more", nested))
	r.Edit(bundle.Proof, set("proof_hash", "none"))
	for _, name := range strictOrder[:4] {
		canonicalise(r, name)
	}
	r.Sign()
	r.Edit(bundle.Signature, set("signed_at", nested))
	for _, name := range strictOrder[4:] {
		canonicalise(r, name)
	}
	return r
}

// place is a value in a canonical text: text[from:to]. path are the names and indexes that lead to
// it. For a member, its name is at text[name:from-1].
type place struct {
	path     []string
	from, to int
	name     int
	member   bool
}

func (p place) String() string { return strings.Join(p.path, ".") }

// places lists every value of a canonical text, the outermost first.
func places(t testing.TB, text []byte) []place {
	t.Helper()
	return placesIn(t, text, place{from: 0, to: len(text)})
}

func placesIn(t testing.TB, text []byte, p place) []place {
	all := []place{p}
	if text[p.from] != '{' && text[p.from] != '[' {
		return all
	}
	i := p.from + 1
	for n := 0; i < p.to-1; n++ {
		inner := place{path: append(slices.Clone(p.path), strconv.Itoa(n))}
		if text[p.from] == '{' {
			inner.member, inner.name = true, i
			i = valueEnd(t, text, i)
			inner.path[len(p.path)] = string(text[inner.name:i])
			i++ // the colon
		}
		inner.from, inner.to = i, valueEnd(t, text, i)
		all = append(all, placesIn(t, text, inner)...)
		i = inner.to + 1 // a comma, or the end
	}
	return all
}

func valueEnd(t testing.TB, text []byte, from int) int {
	d := json.NewDecoder(bytes.NewReader(text[from:]))
	var value json.RawMessage
	must(t, d.Decode(&value))
	return from + int(d.InputOffset())
}

// tokenChange is a text with one change at a place.
type tokenChange struct {
	what   string
	at     place
	text   string
	broken bool // it is not strict JSON
}

// mutants returns all changes of one token of a canonical text: each value by one of each other
// type; each member, at any depth, removed, doubled, and renamed; each array and object with one
// more element.
func mutants(t testing.TB, text []byte) []tokenChange {
	t.Helper()
	var all []tokenChange
	add := func(at place, broken bool, what string, from, to int, with string) {
		all = append(all, tokenChange{what + " at " + at.String(), at, string(text[:from]) + with + string(text[to:]), broken})
	}
	for _, p := range places(t, text) {
		value := string(text[p.from:p.to])
		for _, other := range []string{"null", "true", "false", "0", `""`, `"other"`, "[]", "{}", "[" + value + "]"} {
			if other != value && p.from > 0 {
				add(p, false, other, p.from, p.to, other)
			}
		}
		if !p.member {
			continue
		}
		name, member := string(text[p.name:p.from-1]), string(text[p.name:p.to])
		add(p, true, "the same twice", p.name, p.name, member+",")
		add(p, true, "another one too", p.name, p.name, name+":null,")
		add(p, true, "another one after", p.to, p.to, fmt.Sprintf(`,"\u%04x%s:0`, name[1], name[2:]))
		from, to := p.name, p.to
		if text[to] == ',' {
			to++
		} else if text[from-1] == ',' {
			from--
		}
		add(p, false, "dropped", from, to, "")
		add(p, false, "renamed", p.name, p.name+1, `"x`)
		add(p, false, "a neighbour", p.name, p.name, `"`+"\U0010ffff"+`":1,`)
	}
	return all
}

// expected returns the verdict on a tokenChange: "" if by the list it does not change, else a
// rejection.
func (m tokenChange) expected(name string) string {
	_, neighbour := strings.CutPrefix(m.what, "a neighbour")
	top := len(m.at.path) == 1
	switch {
	case m.broken:
		return string(verify.ArtifactMalformed)
	case neighbour && top: // any other member
		return map[bool]string{true: "", false: "refused"}[name == bundle.OutputHashes || name == bundle.Proof]
	case name == bundle.OutputHashes && isUnsigned(name, m.at), name == bundle.Signature && isUnsigned(name, m.at) && !(top && strings.HasPrefix(m.what, "renamed")):
		return ""
	case name == bundle.Proof && !m.breaksProof():
		return ""
	}
	return "refused"
}

// breaksProof reports whether restoration_result.verified is no longer true.
func (m tokenChange) breaksProof() bool {
	var proof struct {
		Result json.RawMessage `json:"restoration_result"`
	}
	var result map[string]json.RawMessage
	return json.Unmarshal([]byte(m.text), &proof) != nil || json.Unmarshal(proof.Result, &result) != nil || string(result["verified"]) != "true"
}

// TestEveryToken makes every tokenChange of every artifact. What is on the list of
// unsigned parts, and only that, leaves the verdict as it was, to the letter. The
// sample need not see every part of the list.
func TestEveryToken(t *testing.T) {
	r := nestedRun(t)
	run := openRuns(t, r)[0]
	original, seen := verdict(t, run), map[string]bool{}
	if !strings.HasPrefix(original, "accepted") {
		t.Fatal(original)
	}
	number, tried := 0, sample.Every(t, 11)
	for _, name := range strictOrder {
		raw, counts := r.Read(name), map[string]int{}
		for _, m := range mutants(t, raw) {
			if number++; !tried.Has(number) {
				continue
			}
			r.WriteRaw(name, []byte(m.text))
			now, want := verdict(t, run), m.expected(name)
			switch {
			case now == original:
				now = ""
				seen[name+" "+strings.Trim(m.at.path[0], `"`)] = true
			case want == "refused" && !strings.HasPrefix(now, "accepted"):
				now = want
			}
			if counts[now]++; now != want {
				t.Errorf("%s, %s: %q, want %q\n%s", name, m.what, now, want, m.text)
			}
		}
		r.WriteRaw(name, raw)
		t.Logf("%s: %v", name, counts)
	}
	for _, part := range unsignedParts {
		if !seen[part.file+" "+part.member] && tried == sample.All {
			t.Errorf("%s: %s was not seen to be unsigned", part.file, part.member)
		}
	}
}

// respelled are other texts of the same values: white space wherever it may be,
// members in another order, every letter of a string escaped, and numbers in
// other spellings.
func respelled(t testing.TB, text []byte) map[string]string {
	t.Helper()
	var indented bytes.Buffer
	must(t, json.Indent(&indented, text, "\t", "  "))
	forms := map[string]string{"indented": indented.String(), "another order": relaid(t, text), "escaped": escaped(text), "new line": string(text) + "\r\n"}
	for _, p := range places(t, text) {
		if _, err := strconv.ParseFloat(string(text[p.from:p.to]), 64); err == nil {
			for _, zeros := range []string{"0", "00"} {
				number := string(text[p.from:p.to])
				if !strings.Contains(number, ".") {
					number += "."
				}
				forms["number "+p.String()+zeros] = string(text[:p.from]) + number + zeros + string(text[p.to:])
			}
			forms["exponent "+p.String()] = string(text[:p.from]) + string(text[p.from:p.to]) + "E-0" + string(text[p.to:])
		}
	}
	return forms
}

// escaped writes every letter and digit inside a string as an escape.
func escaped(text []byte) string {
	var b strings.Builder
	inside := false
	for _, c := range string(text) {
		if c == '"' {
			inside = !inside
		}
		if inside && c != '"' && c != '\\' && c < 0x80 {
			fmt.Fprintf(&b, `\u%04X`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// TestEverySpelling: the canonical form is signed, not the spelling; of
// TASK_SPEC.json it is the bytes.
func TestEverySpelling(t *testing.T) {
	r := nestedRun(t)
	run := openRuns(t, r)[0]
	original, forms := verdict(t, run), 0
	for _, name := range strictOrder {
		raw := r.Read(name)
		for what, text := range respelled(t, raw) {
			before, err := canonjson.Parse(raw)
			must(t, err)
			after, err := canonjson.Parse([]byte(text))
			must(t, err)
			if !bytes.Equal(before.Append(nil), after.Append(nil)) {
				t.Fatalf("%s %s: not another spelling of the same: %s", name, what, text)
			}
			r.WriteRaw(name, []byte(text))
			want := original
			if name == bundle.TaskSpec {
				want = string(verify.BundleRootMismatch)
			}
			if now := verdict(t, run); now != want {
				t.Errorf("%s %s: %s\n%s", name, what, now, text)
			}
			forms++
		}
		r.WriteRaw(name, raw)
	}
	t.Logf("%d spellings", forms)
}

// TestEveryNameBeside: other entries in the run directory change no verdict, unless
// the name is forbidden or that of a second artifact, whatever the type.
func TestEveryNameBeside(t *testing.T) {
	kinds := special()
	kinds["file"] = func(path string) error { return writeFile(path, "{}") }
	kinds["link"], kinds["dangling link"] = harness.LinkTo(bundle.Proof), harness.LinkTo("nowhere")
	names := map[string]verify.Code{
		"SIGNATURE1.json": verify.ArtifactExtra, "SIGNED_PAYLOADS.json": verify.ArtifactExtra, "VALIDATOR_IDENTITY.json.json": verify.ArtifactExtra,
		"logs": verify.ForbiddenArtifact, "tmp": verify.ForbiddenArtifact, "transcript.json": verify.ForbiddenArtifact,
	}
	for _, name := range strictOrder {
		for _, other := range []string{strings.ToLower(name), name + "~", "." + name, name + ".bak", " " + name, strings.TrimSuffix(name, ".json")} {
			names[other] = verify.OK
		}
	}
	for _, other := range []string{"PROOF2.json", "STATUS.old.json", "TASK_SPEC2.json", "OUTPUT_HASHES2.json", "log", "Logs", "tmp2", "transcript", "-", "\n", "\xff"} {
		names[other] = verify.OK
	}
	r := nestedRun(t)
	run := openRuns(t, r)[0]
	original := verdict(t, run)
	number, tried := 0, sample.Every(t, 9)
	for _, name := range sortedKeys(names) {
		for _, kind := range sortedKeys(kinds) {
			if number++; !tried.Has(number) {
				continue
			}
			must(t, kinds[kind](r.Path(name)))
			want := string(names[name])
			if names[name] == verify.OK {
				want = original
			}
			if now := verdict(t, run); now != want {
				t.Errorf("%q as %s: %s, want %s", name, kind, now, want)
			}
			r.Remove(name)
		}
	}
}

// TestEveryAttribute: nor do the attributes of the artifacts and of the run
// directory, nor those of the outputs, which only a preview binds.
func TestEveryAttribute(t *testing.T) {
	r := nestedRun(t)
	run := openRuns(t, r)[0]
	original := verdict(t, run)
	paths := []string{r.Dir, at(r, "dist/a")}
	for _, name := range strictOrder {
		paths = append(paths, r.Path(name))
	}
	for _, path := range paths {
		must(t, os.Chtimes(path, time.Unix(1, 0), time.Unix(2, 0)))
		must(t, os.Chmod(path, 0o755|os.ModeSetgid))
		must(t, unix.Setxattr(path, "user.note", []byte("x"), 0))
		if os.Geteuid() == 0 {
			must(t, os.Chown(path, 12, 34))
		}
		if now := verdict(t, run); now != original {
			t.Errorf("%s: %s", path, now)
		}
	}
}
