package bundle_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// TestProofHash compares with hashes that were computed by another program:
// SHA-256 over json.dumps(proof, sort_keys=True, separators=(",", ":")) in
// Python.
func TestProofHash(t *testing.T) {
	const whole = "a8649d548b62f0596432e185cf3cf13e38d8ca2136bbaeb0d0abaae0bdeb925a"
	for _, c := range []struct{ proof, want string }{
		{`{}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{`{"proof_hash":"x"}`, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"},
		{`{ "a" : "\u00fc\ud83d\udca1` + "\x7f\u2028" + `\n" }`, "481e2668652cd364e4bcc91632f7fc6a2848c3fc62736d808ea3ac6501102096"},
		{`{"restoration_result":{"verified":true},"n":[1.50,1000000000000000000000000000000,1e-1,-5.0]}`, whole},
		{`{"proof_hash":"` + whole + `","n":[1.5,1000000000000000000000000000000,0.1,-5],"restoration_result":{"verified":true}}`, whole},
	} {
		if got := bundle.ProofHash(mustObject(t, c.proof)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.proof, got, c.want)
		}
	}
}

// TestProofHashMemory: a number of five bytes is one of 309 in the canonical
// form, which must not stand in memory whole.
func TestProofHashMemory(t *testing.T) {
	const size = 1 << 18
	proof := mustObject(t, `{"n":[`+strings.Repeat("1e308,", size/6)+`0]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	hash := bundle.ProofHash(proof)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 4*size {
		t.Errorf("%d bytes allocated for a proof of %d", allocated, size)
	}
	if len(hash) != 64 {
		t.Errorf("hash %q", hash)
	}
}

func mustObject(t testing.TB, text string) canonjson.Object {
	t.Helper()
	value, err := canonjson.Parse([]byte(text))
	must(t, err)
	object, ok := value.Object()
	if !ok {
		t.Fatalf("not an object: %.100s", text)
	}
	return object
}
