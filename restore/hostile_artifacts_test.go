package restore_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// malformed texts are no strict JSON object.
var malformed = []struct{ no, text string }{
	{"32 doubled key", `{"a":1,"a":1}`},
	{"33 doubled by an escape", `{"a":1,"\u0061":1}`},
	{"34 doubled further in", `{"r":{"verified":false,"verified":true}}`},
	{"36 byte order mark", "\ufeff{}"},
	{"37 UTF-16", "{\x00}\x00"},
	{"37b UTF-16 with mark", "\xff\xfe{\x00}\x00"},
	{"38 bad UTF-8 in a key", "{\"\xff\":1}"},
	{"38b bad UTF-8 in a value", "{\"a\":\"\xc3\"}"},
	{"38c overlong", "{\"a\":\"\xc0\xaf\"}"},
	{"38d surrogate bytes", "{\"a\":\"\xed\xa0\x80\"}"},
	{"39 lone high surrogate", `{"a":"\ud800"}`},
	{"39b lone low surrogate", `{"a":"\udc00"}`},
	{"39c inverted surrogates", `{"a":"\udc00\ud800"}`},
	{"40 trailing bytes", `{}x`},
	{"40b second value", `{}{}`},
	{"40c trailing NUL", "{}\x00"},
	{"41 comment", `{/* */}`},
	{"41b trailing comma", `{"a":1,}`},
	{"41c single quotes", `{'a':1}`},
	{"42 NaN", `{"a":NaN}`},
	{"42b Infinity", `{"a":-Infinity}`},
	{"42c 1.", `{"a":1.}`},
	{"42d .5", `{"a":.5}`},
	{"42e +1", `{"a":+1}`},
	{"42f 01", `{"a":01}`},
	{"42g 0x1", `{"a":0x1}`},
	{"43 not finite", `{"a":1e400}`},
	{"44 depth 513", `{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`},
	{"45 open brackets", strings.Repeat("[", 100_000)},
	{"46 array", `[]`},
	{"46b string", `"{}"`},
	{"46c null", `null`},
	{"46d number", `1`},
	{"46e empty file", ``},
	{"46f only spaces", `   `},
}

// TestHostileJSON: in PROOF.json and OUTPUT_HASHES.json it has a code of its own, anywhere else
// the strict gate rejects it.
func TestHostileJSON(t *testing.T) {
	harness.TempInMemory(t)
	for _, c := range malformed {
		t.Run(c.no, func(t *testing.T) {
			eachArtifact(t, func(s *scene, artifact string) {
				s.last().WriteRaw(artifact, []byte(c.text))
			})
		})
	}
}

// TestHostileFiles: 47 and 48, artifacts that are not files, or too large.
// None is opened for reading: a FIFO would not come back.
func TestHostileFiles(t *testing.T) {
	for _, c := range []struct {
		no   string
		with func(name string) error
	}{
		{"47 one byte above the limit", harness.Sparse(256<<20 + 1)},
		{"47b sparse 1 TiB", harness.Sparse(1 << 40)},
		{"48 link to a good one", func(name string) error {
			return errors.Join(os.WriteFile(name+".good", []byte("{}"), 0o644), os.Symlink(name+".good", name))
		}},
		{"48b dangling link", harness.LinkTo("none")},
		{"48c loop", func(name string) error { return os.Symlink(name, name) }},
		{"48d FIFO", harness.FIFO},
		{"48e directory", harness.Directory},
		{"48f device", harness.Device(unix.S_IFCHR, 1, 5)},
		{"48g socket", harness.Socket},
	} {
		t.Run(c.no, func(t *testing.T) {
			start := time.Now()
			eachArtifact(t, func(s *scene, artifact string) {
				s.last().Remove(artifact)
				must(s.t, c.with(s.last().Path(artifact)))
			})
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("it took %v", d)
			}
		})
	}
}

// eachArtifact breaks each artifact and requires the code that malformed ones have.
func eachArtifact(t *testing.T, ruin func(s *scene, artifact string)) {
	t.Helper()
	for _, c := range []struct {
		artifact string
		want     restore.Code
	}{
		{bundle.TaskSpec, restore.VerifyStrictFailed},
		{bundle.Status, restore.VerifyStrictFailed},
		{bundle.Identity, restore.VerifyStrictFailed},
		{bundle.SignedPayload, restore.VerifyStrictFailed},
		{bundle.Signature, restore.VerifyStrictFailed},
		{bundle.OutputHashes, restore.OutputHashesMalformed},
		{bundle.Proof, restore.ProofMalformed},
	} {
		s := newScene(t, false, anotherRun)
		ruin(s, c.artifact)
		if got := s.refused(); got.Code != c.want {
			t.Errorf("%s: %+v, want %s", c.artifact, got, c.want)
		}
		if c.want == restore.VerifyStrictFailed {
			_, err := s.plan()
			wantVerdict(t, err, verify.ArtifactMalformed)
		}
	}
}

// 32 in "hashes" itself, where it would decide which hash is the right one.
func TestHostileDoubledHash(t *testing.T) {
	h := bundletest.Hash("gamma\n")
	for _, text := range []string{
		`{"hashes":{"gen/c.txt":"` + h + `","gen/c.txt":"` + h + `"}}`,
		`{"hashes":{"gen/c.txt":"` + h + `","gen\u002fc.txt":"sha256:` + zeros(64) + `"}}`,
	} {
		s := newScene(t, false, anotherRun)
		s.last().WriteRaw(bundle.OutputHashes, []byte(text))
		if got := s.refused(); got.Code != restore.OutputHashesMalformed {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestHostileButGood: what looks wrong and is right by the law is restored.
func TestHostileButGood(t *testing.T) {
	for _, c := range []struct {
		no    string
		cause func(s *scene)
	}{
		{"35 Verified beside verified", raw(bundle.Proof, `{"restoration_result":{"Verified":false,"verified":true}}`)},
		{"43 numbers", func(s *scene) {
			s.last().WriteRaw(bundle.TaskSpec, []byte(`{"a":-0,"b":1E5,"c":9007199254740993,"d":`+strings.Repeat("9", 400)+`,"e":0.1e-3}`))
			s.last().Sign()
		}},
		{"44 depth 512", func(s *scene) {
			s.last().WriteRaw(bundle.TaskSpec, []byte(`{"a":`+strings.Repeat("[", 511)+strings.Repeat("]", 511)+`}`))
			s.last().Sign()
		}},
		{"54 a copy", func(s *scene) { s.last().WriteRaw("SIGNATURE.json.bak", []byte("x")) }},
		{"57 PROOF.json of another bundle", func(s *scene) {
			other := s.Run("other", anotherRun)
			other.Edit(bundle.Proof, set("note", "of another"))
			s.last().WriteRaw(bundle.Proof, other.Read(bundle.Proof))
		}},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			c.cause(s)
			s.mustRestore(anotherRun)
		})
	}
}

// TestHostileHashValues: 51 and 52.
func TestHostileHashValues(t *testing.T) {
	harness.TempInMemory(t)
	good := bundletest.Hash("gamma\n")
	for _, c := range []struct {
		no    string
		value any
		want  verify.Code
	}{
		{"52 null", nil, verify.ArtifactMalformed},
		{"52b number", 7, verify.ArtifactMalformed},
		{"52c object", map[string]any{}, verify.ArtifactMalformed},
		{"52d upper case", strings.ToUpper(good), verify.HashMismatch},
		{"52e upper-case digits", "sha256:" + strings.ToUpper(good[7:]), verify.HashMismatch},
		{"52f 63 digits", good[:len(good)-1], verify.HashMismatch},
		{"52g 65 digits", good + "0", verify.HashMismatch},
		{"52h sha512", "sha512:" + good[7:], verify.HashMismatch},
		{"52i no prefix", good[7:], verify.HashMismatch},
		{"52j trailing space", good + " ", verify.HashMismatch},
		{"52k empty", "", verify.HashMismatch},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			s.last().EditHashes(func(h map[string]any) { h["gen/c.txt"] = c.value })
			want := restore.Failure{Code: restore.VerifyStrictFailed, Phase: restore.Preflight, Path: "gen/c.txt"}
			if got := s.refused(); got != want {
				t.Errorf("%+v", got)
			}
			_, err := s.plan()
			wantVerdict(t, err, c.want)
		})
	}
}

// TestHostileRunDirectory: 53, 54 and 56.
func TestHostileRunDirectory(t *testing.T) {
	harness.TempInMemory(t)
	cases := []struct {
		no    string
		cause func(s *scene)
		want  verify.Code
	}{
		{"53 extra in identity", edit(bundle.Identity, set("x", 1)), verify.FieldExtra},
		{"53b missing in identity", edit(bundle.Identity, unset("public_key")), verify.FieldMissing},
		{"53c extra before missing", edit(bundle.Identity, func(f map[string]any) { delete(f, "public_key"); f["x"] = 1 }), verify.FieldExtra},
		{"53d extra in payload", edit(bundle.SignedPayload, set("x", 1)), verify.FieldExtra},
		{"53e missing in payload", edit(bundle.SignedPayload, unset("decision")), verify.FieldMissing},
		{"53f extra in signature", edit(bundle.Signature, set("x", 1)), verify.SignatureMalformed},
		{"53g missing in signature", edit(bundle.Signature, unset("signature")), verify.SignatureIncomplete},
		{"54b SIGNATURE2.json", func(s *scene) { s.last().WriteRaw("SIGNATURE2.json", nil) }, verify.ArtifactExtra},
		{"54c VALIDATOR_IDENTITY.old.json", func(s *scene) { s.last().WriteRaw("VALIDATOR_IDENTITY.old.json", nil) }, verify.ArtifactExtra},
	}
	for _, name := range []string{"logs", "tmp", "transcript.json"} {
		for what, with := range map[string]func(string) error{
			"file": writeFile, "directory": harness.Directory, "link": harness.LinkTo("TASK_SPEC.json"), "dangling link": harness.LinkTo("none"), "FIFO": harness.FIFO,
		} {
			cases = append(cases, struct {
				no    string
				cause func(s *scene)
				want  verify.Code
			}{fmt.Sprintf("56 %s as %s", name, what), instead(name, with), verify.ForbiddenArtifact})
		}
	}
	for _, c := range cases {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			c.cause(s)
			if got := s.refused(); got.Code != restore.VerifyStrictFailed {
				t.Errorf("%+v", got)
			}
			_, err := s.plan()
			wantVerdict(t, err, c.want)
		})
	}
}
