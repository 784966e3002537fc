package canonjson_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// letters of names are written in JSON as they stand, with a short escape, or with one
// by number that has much in common with another.
var letters = []string{
	"", "a", "b", "~", "\x7f", "é", "\U0001f4a1", "\U0010ffff", `\`, `\\`, `"`, "u", "0", "u0001", "\n", "\t", "\x00", "\x01", "\x0f", "\x10", "\x1f", "kkkkkkkkkkkkkkkk",
}

func randomName(rng *rand.Rand, longest int) string {
	var name strings.Builder
	for range rng.IntN(longest + 1) {
		name.WriteString(letters[rng.IntN(len(letters))])
	}
	return name.String()
}

// TestKeysInNoOrder: names come in ascending order of their bytes, in objects of all
// sizes and with escapes of all kinds, and values stay with their names.
func TestKeysInNoOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	check := func(names []string, value func(i int) string) {
		t.Helper()
		var text strings.Builder
		want := map[string]string{}
		for i, name := range names {
			fmt.Fprintf(&text, ",%s:%s", canonjson.AppendText(nil, name), value(i))
			want[name] = value(i)
		}
		object, _ := mustParse(t, []byte("{"+text.String()[1:]+"}")).Object()
		var got []string
		for name, v := range object.Members() {
			got = append(got, name)
			if have := string(v.Append(nil)); have != slowCanonical(t, []byte(want[name])) {
				t.Fatalf("%q has the value %.100s, want %.100s", name, have, want[name])
			}
		}
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("%d names of %d are not in order: %.300q", len(got), len(names), got)
		}
	}
	number := func(i int) string { return fmt.Sprint(i) }
	for range sample.Of(5_000, 200_000, 2_000_000) {
		check(distinct(rng, 1+rng.IntN(5), 6), number)
	}
	for range sample.Of(3, 100, 1000) {
		check(distinct(rng, 10_000, 1+rng.IntN(40)), number)
	}
	inner := `{"b":"` + strings.Repeat("x", 600) + `","a":[1,{"}":"]"}]}` // out of order, so it is put aside
	check(distinct(rng, 500, 30), func(i int) string { return fmt.Sprintf(`{"a":[%s,%s],"b":%d}`, inner, inner, i) })
	check(distinct(rng, 12, 20_000), number)
}

// distinct returns so many names, or fewer if there are not as many.
func distinct(rng *rand.Rand, n, longest int) []string {
	names := map[string]bool{}
	for range n {
		names[randomName(rng, longest)] = true
	}
	list := make([]string, 0, len(names))
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// TestDoubleKeyAnywhere: of many names in no order, one occurs twice.
func TestDoubleKeyAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range sample.Of(20, 200, 2000) {
		names := distinct(rng, 10_000, 1+rng.IntN(40))
		double := names[rng.IntN(len(names))]
		names = slices.Insert(names, rng.IntN(len(names)), double)
		var text strings.Builder
		for _, name := range names {
			fmt.Fprintf(&text, ",%s:0", canonjson.AppendText(nil, name))
		}
		_, err := canonjson.Parse([]byte("{" + text.String()[1:] + "}"))
		if want := fmt.Sprintf("key %.100q occurs twice in one object", double); err == nil || err.Error() != want {
			t.Fatalf("error %v, want %s", err, want)
		}
	}
}

// BenchmarkKeys: names with escapes and in no order cost about what others do.
func BenchmarkKeys(b *testing.B) {
	inOrder := func(i, _ int) int { return i }
	for _, c := range []struct {
		name, key string
		number    func(i, n int) int
	}{
		{"in order", "%08x", inOrder}, {"in no order", "%08x", noOrder}, {"escapes in no order", `\n%07x`, noOrder},
		{"shared beginning", strings.Repeat("k", 64) + "%08x", noOrder}, {"shared escapes", strings.Repeat(`\n`, 32) + "%08x", noOrder},
	} {
		data := members(16<<20, c.key, c.number)
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for range b.N {
				if _, err := canonjson.Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
