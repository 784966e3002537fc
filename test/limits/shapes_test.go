package limits

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// A shape is some JSON of about n bytes that is expensive for one of the readers.
type shape struct {
	name string
	bad  bool // it is not strict JSON
	json func(n int64) printer
}

// shapes are values; each stands as a member beside what an artifact must have.
var shapes = []shape{
	{"objects", false, list("{}")},
	{"arrays", false, list("[]")},
	{"objects with a member", false, list(`{"":0}`)},
	{"columns 500 deep", false, list(strings.Repeat("[", 500) + strings.Repeat("]", 500))},
	{"members 500 deep", false, list(strings.Repeat(`{"a":`, 500) + "0" + strings.Repeat("}", 500))},
	{"unsorted, 500 deep", false, unsortedColumn},
	{"one string", false, around(`"`, "a", `"`)},
	{"one string of escapes", false, around(`"`, `\u001f`, `"`)},
	{"one string of pairs", false, around(`"`, `\ud83d\ude00`, `"`)},
	{"short strings", false, list(`""`)},
	{"one integer", false, around("1", "0", "")},
	{"one fraction", false, around("1.", "3", "")},
	{"numbers that grow", false, list("1e308")},
	{"integers of 400 digits", false, list(strings.Repeat("7", 400))},
	{"fractions of 400 digits", false, list("0." + strings.Repeat("7", 400))},
	{"white space", false, around("[", " ", "]")},
	{"one key", false, around(`{"`, "k", `":0}`)},
	{"one key of escapes", false, around(`{"`, `\u001f`, `":0}`)},
	{"two keys", false, twoKeys("a", "b")},
	{"keys in order", false, keys(func(i, n int64) string { return fmt.Sprintf("%07x", i) })},
	{"keys the other way round", false, keys(func(i, n int64) string { return fmt.Sprintf("%07x", n-i) })},
	{"keys in no order", false, keys(func(i, n int64) string { return fmt.Sprintf("%07x", i*7_368_787%n) })},
	{"short keys in no order", false, keys(shortKey)},
	{"short keys in no order, 30 objects deep", false, shortKeysDeep},
	{"keys of escapes", false, keys(func(i, n int64) string { return fmt.Sprintf(`\u001f%07x`, n-i) })},
	{"keys of escapes in no order", false, keys(func(i, n int64) string { return fmt.Sprintf(`\u001f%07x`, i*7_368_787%n) })},
	{"small objects out of order", false, list(`{"b":0,"a":0}`)},
	{"objects of 85 members out of order", false, list(oneLetterKeys())},
	{"columns 40 deep, each out of order", false, list(strings.Repeat(`{"b":`, 40) + "0" + strings.Repeat(`,"a":0}`, 40))},
	{"columns 500 deep, each out of order", false, list(strings.Repeat(`{"b":`, 500) + "0" + strings.Repeat(`,"a":0}`, 500))},
	{"keys that differ late", false, keys(func(i, n int64) string { return strings.Repeat("k", 1<<10) + fmt.Sprintf("%07x", n-i) })},
	{"duplicate keys", true, keys(func(_, _ int64) string { return "a" })},
	{"duplicate keys in turn", true, keys(func(i, n int64) string { return "ba"[i%2 : i%2+1] })},
	{"one key twice", true, twoKeys("a", "a")},
	{"one integer too many", true, around("0", "0", "")},
	{"one number not finite", true, around("1", "0", "e1")},
	{"brackets", true, around("", "[", "")},
	{"braces", true, around("", `{"":`, "")},
	{"one string without an end", true, around(`"`, "a", "")},
	{"a high surrogate at the end", true, around(`"`, "a", `\ud800"`)},
}

// list is an array of so many bytes.
func list(element string) func(n int64) printer {
	return func(n int64) printer {
		return func(w *bufio.Writer) {
			_, _ = w.WriteString("[" + element)
			for range n/int64(len(element)+1) - 1 {
				_, _ = w.WriteString(",")
				_, _ = w.WriteString(element)
			}
			_, _ = w.WriteString("]")
		}
	}
}

// around repeats something between two ends.
func around(begin, unit, end string) func(n int64) printer {
	return func(n int64) printer {
		return func(w *bufio.Writer) {
			_, _ = w.WriteString(begin)
			for range (n - int64(len(begin)+len(end))) / int64(len(unit)) {
				_, _ = w.WriteString(unit)
			}
			_, _ = w.WriteString(end)
		}
	}
}

// keys is an object of so many bytes.
func keys(key func(i, n int64) string) func(n int64) printer {
	return func(n int64) printer {
		return func(w *bufio.Writer) {
			count := n / int64(len(key(0, n))+5)
			_ = w.WriteByte('{')
			for i := range count {
				if i > 0 {
					_ = w.WriteByte(',')
				}
				_, _ = w.WriteString(`"` + key(i, count) + `":0`)
			}
			_ = w.WriteByte('}')
		}
	}
}

// shortKey is a key of four characters, in no order.
func shortKey(i, n int64) string {
	i = i * 7_368_787 % n
	key := []byte("....")
	for at := range key {
		key[at] = byte('*' + i%80)
		if key[at] == '\\' {
			key[at] = '!'
		}
		i /= 80
	}
	return string(key)
}

// shortKeysDeep are objects of many keys in each other, none of which ends before all
// of them have been read.
func shortKeysDeep(n int64) printer {
	const levels = 30
	return func(w *bufio.Writer) {
		count := (n/levels - 8) / 9
		for level := range levels {
			_ = w.WriteByte('{')
			for i := range count {
				_, _ = w.WriteString(`"` + shortKey(i, count) + `":0,`)
			}
			_, _ = w.WriteString(`"":`)
			if level == levels-1 {
				_ = w.WriteByte('0')
			}
		}
		_, _ = w.WriteString(strings.Repeat("}", levels))
	}
}

// twoKeys are two keys that only end differently.
func twoKeys(first, second string) func(n int64) printer {
	return func(n int64) printer {
		return func(w *bufio.Writer) {
			around(`{"`, "k", second+`":0,`)(n/2 + 1)(w)
			around(`"`, "k", first+`":0}`)(n / 2)(w)
		}
	}
}

// oneLetterKeys is an object with as many members as it can have in as few bytes.
func oneLetterKeys() string {
	var members []string
	for c := '~'; c > ' '; c-- {
		if c != '"' && c != '\\' {
			members = append(members, fmt.Sprintf(`"%c":0`, c))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// unsortedColumn is objects in objects, each of which is out of order, so that
// each has to be put in order with all that is in it.
func unsortedColumn(n int64) printer {
	return func(w *bufio.Writer) {
		for range 500 {
			_, _ = w.WriteString(`{"b":`)
		}
		around(`"`, "x", `"`)(n - 500*12)(w)
		for range 500 {
			_, _ = w.WriteString(`,"a":0}`)
		}
	}
}

// verdicts is what becomes of a good run when a member is added to an artifact.
var verdicts = map[string]string{
	forge.TaskSpec: "BUNDLE_ROOT_MISMATCH", forge.Status: "BUNDLE_ROOT_MISMATCH", forge.OutputHashes: "OK", forge.Proof: "OK",
	forge.Identity: "FIELD_EXTRA", forge.SignedPayload: "FIELD_EXTRA", forge.Signature: "SIGNATURE_MALFORMED",
}

// shaped adds a member "x" to an artifact of a good run.
func (p *project) shaped(t testing.TB, artifact string, value printer) (dir string, size int64) {
	t.Helper()
	dir = p.forge(t, "shaped", forge.Outputs{"a": "content"})
	path := filepath.Join(dir, artifact)
	raw, err := os.ReadFile(path)
	harness.Must(t, err)
	size = write(t, path, text(string(raw[:len(raw)-1])+`,"x":`), value, text("}"))
	return dir, size
}

func TestShapes(t *testing.T) {
	for _, s := range sample.Pick(t, 8, shapes) {
		t.Run(s.name, func(t *testing.T) { s.check(t, forge.OutputHashes, 8*mib) })
	}
}

func TestLongShapes(t *testing.T) {
	sample.Need(t, sample.Long)
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) { s.check(t, forge.OutputHashes, 256*mib-1024) })
	}
}

func (s shape) check(t *testing.T, artifact string, n int64) {
	p := newProject(t)
	dir, size := p.shaped(t, artifact, s.json(n))
	u := p.run(t, nil, "verify", "--json", dir)
	want := verdicts[artifact]
	if s.bad {
		want = "ARTIFACT_MALFORMED"
	}
	if u.code != want {
		t.Errorf("want %s: %v", want, u)
	}
	t.Logf("%d MiB of %s: %d MiB of memory, %.1f times, %s", size/mib, artifact, u.memory/mib, float64(u.memory)/float64(size), u.code)
	within(t, u, allowance(size))
}
