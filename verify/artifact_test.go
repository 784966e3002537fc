package verify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestArtifactKinds: what is not a regular file is there, and malformed; it is
// never opened, so nothing blocks.
func TestArtifactKinds(t *testing.T) {
	kinds := special()
	kinds["link to the artifact itself"] = nil
	kinds["dangling link"] = harness.LinkTo("nowhere")
	kinds["link to itself"] = func(path string) error { return os.Symlink(path[strings.LastIndex(path, "/")+1:], path) }
	kinds["link to a file that never ends"] = harness.LinkTo("/dev/zero")
	kinds["link to the environment"] = harness.LinkTo("/proc/self/environ")
	for _, kind := range sortedKeys(kinds) {
		for _, name := range strictOrder {
			t.Run(kind+" "+name, func(t *testing.T) {
				r := newRun(t)
				if kinds[kind] == nil {
					must(t, os.Rename(r.Path(name), at(r, "real.json")))
					must(t, os.Symlink(at(r, "real.json"), r.Path(name)))
				} else {
					replaceBy(t, r.Path(name), kinds[kind])
				}
				opened := watchOpens(t, r.Path(name))
				_, err := strict(t, r)
				checkReject(t, err, want{verify.ArtifactMalformed, about(name)})
				opened.none(t)
			})
		}
	}
}

// notArtifacts is what no artifact may hold.
var notArtifacts = map[string]string{
	"nothing": "", "white space": " \n", "array": "[]", "string": `"a"`, "null": "null", "number": "1", "true": "true", "array of object": `[{}]`,
	"cut": `{"a":1`, "trailing byte": `{}x`, "trailing NUL": "{}\x00", "second value": `{}{}`, "byte order mark": "\ufeff{}",
	"UTF-16": "\xff\xfe{\x00}\x00", "comment": `{}/**/`, "trailing comma": `{"a":1,}`, "single quotes": `{'a':1}`,
	"double key": `{"a":1,"a":1}`, "escaped double key": `{"a":1,"\u0061":2}`, "double key below": `{"x":{"k":1,"k":2}}`, "double empty key": `{"":1,"":1}`,
	"bad UTF-8 in a key": "{\"\xff\":1}", "bad UTF-8 in a value": "{\"a\":\"\xc0\xaf\"}", "surrogate bytes": "{\"a\":\"\xed\xa0\x80\"}",
	"lone high surrogate": `{"a":"\ud800"}`, "lone low surrogate": `{"\udfff":1}`, "inverted surrogates": `{"a":"\udca1\ud83d"}`,
	"NaN": `{"a":NaN}`, "Infinity": `{"a":-Infinity}`, "1.": `{"a":1.}`, ".5": `{"a":.5}`, "+1": `{"a":+1}`, "01": `{"a":01}`, "0x1": `{"a":0x1}`,
	"1e400": `{"a":1e400}`, "513 levels": `{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + `}`, "100,000 brackets": strings.Repeat("[", 100_000),
	"hostile double key":      "{\"\\u001b[2J\u202e\u009b\x7f\":1,\"\\u001b[2J\u202e\u009b\x7f\":2}",
	"hostile key, then a cut": "{\"\\u001b[2J\u202e\u009b\x7f\":{\"\u202e\":[1,", "hostile number": `{"a":1e999` + strings.Repeat("9", 500) + `}`,
	"hostile byte": "{\"a\":\u202e}", "control byte": "{\"a\":\x1b}", "long double key": `{"` + strings.Repeat("k", 5000) + `":1,"` + strings.Repeat("k", 5000) + `":1}`,
}

func TestNotArtifacts(t *testing.T) {
	number, tried := 0, sample.Every(t, 8)
	for _, name := range sortedKeys(notArtifacts) {
		for _, artifact := range strictOrder {
			if number++; !tried.Has(number) {
				continue
			}
			r := newRun(t)
			r.WriteRaw(artifact, []byte(notArtifacts[name]))
			_, err := strict(t, r)
			if checkReject(t, err, want{verify.ArtifactMalformed, about(artifact)}); t.Failed() {
				t.Fatalf("%s: %s", artifact, name)
			}
			if n := len(rejected(t, err).Message); n > 1000 {
				t.Errorf("%s: a message of %d bytes", name, n)
			}
		}
	}
}

// TestStrangeArtifacts is JSON that looks odd and is fine: the root is that of
// its canonical form.
func TestStrangeArtifacts(t *testing.T) {
	numbers := `[-0,-0.0,1E5,1e-7,9007199254740993,` + strings.Repeat("9", 400) + `,1e308,5e-324,0.1e1]`
	deep := strings.Repeat("[", 511) + strings.Repeat("]", 511)
	for name, extra := range map[string]string{
		"numbers": numbers, "512 levels": deep, "escapes": `"\ud83d\udca1\u0000\/\u2028"`, "names": `{"b":1,"a":2,"":3,"B":4,"` + "\u00fc" + `":5}`,
		"case": `{"Status":"failure","STATUS":1}`, "a great many": "[" + strings.Repeat("{},", 20_000) + "{}]",
	} {
		r := newRun(t)
		r.WriteRaw(bundle.Status, []byte("\r\n\t {\"cmp01\" : \"pass\",\"x\":"+extra+",\n\"status\":\"s\\u0075ccess\" } \n"))
		r.WriteRaw(bundle.TaskSpec, []byte(`{"x":`+extra+"}\n\n"))
		r.Sign()
		b, err := strict(t, r)
		if err != nil || b.Root() != r.BundleRoot() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestArtifactLimits: one byte above the limit is malformed, without being
// read, whatever the apparent size of the file.
func TestArtifactLimits(t *testing.T) {
	for _, name := range strictOrder {
		limit := int64(16 << 20)
		if name == bundle.OutputHashes {
			limit = 256 << 20
		}
		for _, size := range []int64{limit + 1, 1 << 40} {
			r := newRun(t)
			must(t, os.Truncate(r.Path(name), size))
			read := watch(t, r.Path(name), unix.IN_ACCESS)
			_, err := strict(t, r)
			checkReject(t, err, want{verify.ArtifactMalformed, about(name)})
			read.none(t)
		}
	}
}

// TestArtifactAtTheLimit: a file of the very limit is read.
func TestArtifactAtTheLimit(t *testing.T) {
	r := newRun(t)
	raw := r.Read(bundle.TaskSpec)
	r.WriteRaw(bundle.TaskSpec, append(raw, strings.Repeat(" ", 16<<20-len(raw))...))
	r.Sign()
	_, err := strict(t, r)
	must(t, err)
	r.WriteRaw(bundle.TaskSpec, append(r.Read(bundle.TaskSpec), ' '))
	_, err = strict(t, r)
	checkReject(t, err, want{verify.ArtifactMalformed, about(bundle.TaskSpec)})
}

// TestRunDirectoryMissing: there is no error before the verdict.
func TestRunDirectoryMissing(t *testing.T) {
	p := bundletest.New(t)
	for name, make := range map[string]func(string) error{
		"missing": func(string) error { return nil }, "empty": harness.Directory, "file": func(path string) error { return writeFile(path, "x") },
		"FIFO": harness.FIFO, "dangling link": harness.LinkTo("nowhere"), "link to itself": harness.LinkTo("run-1"),
	} {
		r := &bundletest.Run{Project: p, Dir: p.Root + "/run-1"}
		must(t, os.RemoveAll(r.Dir))
		must(t, make(r.Dir))
		_, err := strict(t, r)
		checkReject(t, err, want{verify.ArtifactMissing, about(bundle.TaskSpec)})
		_, err = gate(t, r)
		checkReject(t, err, want{verify.ArtifactMissing, about(bundle.TaskSpec)})
		checkReject(t, resume(t, r), want{verify.BundleIncomplete, about(bundle.TaskSpec)})
		t.Logf("as %s", name)
	}
}

// TestRunDirectoryIsALink: it is followed once, when it is opened.
func TestRunDirectoryIsALink(t *testing.T) {
	r := newRun(t)
	must(t, os.Symlink(r.Dir, at(r, "alias")))
	alias := &bundletest.Run{Project: r.Project, Dir: at(r, "alias")}
	b, err := strict(t, alias)
	must(t, err)
	if b.RunID() != "alias" {
		t.Errorf("run id %q", b.RunID())
	}
}
