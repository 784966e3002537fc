package glob_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/glob"
	"pgregory.net/rapid"
)

func pattern(t testing.TB, text string) glob.Pattern {
	t.Helper()
	p, err := glob.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no []string
	}{
		{"a", []string{"a"}, []string{"", "A", "aa", "a/", "/a", "a/a", "b/a"}},
		{"a/b", []string{"a/b"}, []string{"a", "b", "a/b/c", "a//b"}},
		{"*", []string{"a", ".a", "é", "\xff"}, []string{"", "a/b"}},
		{"a*", []string{"a", "ab", "a.b"}, []string{"ba", "a/b"}},
		{"*.md", []string{".md", "a.md", "a.md.md"}, []string{"a.mdx", "a/b.md", "md"}},
		{"*a*b*", []string{"ab", "xaxbx", "aab", "abab"}, []string{"ba", "a", "b", "a/b"}},
		{"?", []string{"a", "é", "\xff", "\n"}, []string{"", "aa", "\xff\xff", "/"}},
		{"a?c", []string{"abc", "aéc"}, []string{"ac", "abbc", "a/c"}},
		{"*?", []string{"a", "é", "éa"}, []string{""}},
		{"*??", []string{"ab", "éa"}, []string{"é", "a"}},
		{"*??bc", []string{"aébc"}, []string{"€bc", "ébc"}},
		{"*é", []string{"é", "aé"}, []string{"\xa9", "e"}},
		{"**", []string{"a", "a/b", "a/b/c"}, []string{""}},
		{"**/a", []string{"a", "b/a", "b/c/a", "a/a"}, []string{"ba", "a/b", "b/ba"}},
		{"a/**", []string{"a", "a/b", "a/b/c"}, []string{"ab", "b/a"}},
		{"a/", []string{"a/b", "a/b/c", "a/a"}, []string{"a", "ab/c", "b/a/c"}},
		{"*/", []string{"a/b", "a/b/c"}, []string{"a"}},
		{"**/a/", []string{"a/b", "b/a/c", "b/a/c/d"}, []string{"a", "b/a", "b/c"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b", "a/b/b"}, []string{"a", "b", "a/b/c", "ab"}},
		{"a/**/b/**/c", []string{"a/b/c", "a/b/b/c/c", "a/x/b/y/c"}, []string{"a/c/b", "a/b", "a/c"}},
		{"**/**/a", []string{"a", "b/a"}, []string{"b"}},
		{"**/*.md", []string{"a.md", "b/a.md"}, []string{"a", "a.md/b"}},
		{"a!#~-", []string{"a!#~-"}, []string{"a"}},
	} {
		p := pattern(t, test.pattern)
		if p.String() != test.pattern {
			t.Errorf("%q prints as %q", test.pattern, p)
		}
		for _, path := range test.yes {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", test.pattern, path)
			}
		}
		for _, path := range test.no {
			if p.Match(path) {
				t.Errorf("%q matches %q", test.pattern, path)
			}
		}
	}
	if (glob.Pattern{}).Match("") || (glob.Pattern{}).Match("a") {
		t.Error("the zero pattern matches")
	}
}

func TestRejected(t *testing.T) {
	for _, text := range []string{
		"", "/", "/a", "a//b", "a//", "//", ".", "..", "./a", "a/.", "a/../b", "a/./", "***", "a**", "**a", "a/b**/c",
		"[a]", "a]", "{a,b}", "a}", `a\b`, `\`, "a\x00", "a\n", "a\x7f", "a\u0085", "\xff", strings.Repeat("a", glob.MaxLength+1),
	} {
		p, err := glob.Parse(text)
		if !errors.Is(err, glob.ErrPattern) || p.String() != "" || p.Match(text) {
			t.Errorf("%.20q: %v %v", text, p, err)
		}
	}
	pattern(t, strings.Repeat("a", glob.MaxLength))
}

// TestOrder: the more specific pattern first. All pairs of the list are tried.
func TestOrder(t *testing.T) {
	ordered := []string{
		"notes/todo.md", "notes/todo*", "notes/*.md", "notes/*.m?", "notes/?", "notes/*?", "notes/*",
		"notes/**/*.md", "notes/", "notes/**/*", "notes/**", "**/notes/*.md", "**/todo.md", "*.md", "**/*.md",
		"*/*/*", "*/*", "?", "*", "**",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			c, want := glob.Compare(pattern(t, a), pattern(t, b)), i-j
			if c < 0 != (want < 0) || c > 0 != (want > 0) {
				t.Errorf("%q before %q: %d, want the sign of %d", a, b, c, want)
			}
		}
	}
}

// oracle is a pattern as a regular expression of the path with a slash at its
// end.
func oracle(text string) *regexp.Regexp {
	const anyNames = `(?:[^/]*/)*`
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "/"), "/") {
		if part == "**" {
			b.WriteString(anyNames)
			continue
		}
		quoted := regexp.QuoteMeta(part) + "/"
		b.WriteString(strings.NewReplacer(`\*`, `[^/]*`, `\?`, `[^/]`).Replace(quoted))
	}
	if strings.HasSuffix(text, "/") {
		b.WriteString(anyNames + `[^/]*/`)
	}
	return regexp.MustCompile(`^(?s:` + b.String() + `)$`)
}

var (
	somePart = rapid.OneOf(rapid.StringMatching(`[ab*?]{1,5}`), rapid.Just("**"), rapid.Just("*"), rapid.Just("a"))
	somePath = rapid.Map(rapid.SliceOfN(rapid.StringMatching(`[abé]{1,4}`), 1, 6), func(names []string) string { return strings.Join(names, "/") })
	someText = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(somePart, 1, 5).Draw(t, "parts"), "/") + rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
	})
)

// TestOracle: a match is what a regular expression says.
func TestOracle(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		text := someText.Draw(t, "pattern")
		p, err := glob.Parse(text)
		if err != nil {
			t.Skip(err)
		}
		for range 10 {
			path := somePath.Draw(t, "path")
			want := oracle(text).MatchString(path + "/")
			if p.Match(path) != want {
				t.Fatalf("%q on %q: %t", text, path, !want)
			}
			if want {
				matched++
			}
		}
	})
	if matched == 0 {
		t.Error("nothing ever matched")
	}
}

// TestTotalOrder: Compare is an order, and only the same text is equal.
func TestTotalOrder(t *testing.T) {
	some := rapid.Custom(func(t *rapid.T) glob.Pattern {
		for {
			if p, err := glob.Parse(someText.Draw(t, "pattern")); err == nil {
				return p
			}
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := some.Draw(t, "a"), some.Draw(t, "b"), some.Draw(t, "c")
		if (glob.Compare(a, b) == 0) != (a.String() == b.String()) || glob.Compare(a, b) != -glob.Compare(b, a) {
			t.Fatalf("%q and %q", a, b)
		}
		if glob.Compare(a, b) < 0 && glob.Compare(b, c) < 0 && glob.Compare(a, c) >= 0 {
			t.Fatalf("%q, %q and %q", a, b, c)
		}
	})
}

// TestHostile: no pattern makes a match slow. One that tries all ways to match
// would not end here within the time of any test.
func TestHostile(t *testing.T) {
	long := strings.Repeat("a/", 2000) + "b"
	wide := strings.Repeat("a", 4000) + "b"
	for _, test := range []struct{ pattern, path string }{
		{strings.Repeat("**/", 300) + "*a", long},
		{strings.Repeat("**/a/", 200) + "c", long},
		{strings.Repeat("**/a/", 200) + "c/**", long},
		{strings.Repeat("**/*a*/", 140) + "c/*", long},
		{strings.Repeat("*a", 500) + "*c*", wide},
		{strings.Repeat("*?a", 300) + "c*", wide},
		{"**/" + strings.Repeat("*a", 500) + "*c/**", long + "/" + wide},
	} {
		if pattern(t, test.pattern).Match(test.path) {
			t.Errorf("%.20q matches", test.pattern)
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	p := pattern(t, "a/**/*b*/?.md")
	if n := testing.AllocsPerRun(100, func() { p.Match("a/b/c/xbx/é.md") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzPattern: any text and any path; what is accepted prints as itself and
// matches what the regular expression matches.
func FuzzPattern(f *testing.F) {
	f.Add("**/*.md", "a/b.md")
	f.Add("a/?*/", "a/é/\xff")
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := glob.Parse(text)
		if err != nil {
			if !errors.Is(err, glob.ErrPattern) || p.String() != "" {
				t.Error(p, err)
			}
			return
		}
		want := path != "" && oracle(text).MatchString(path+"/")
		if p.String() != text || p.Match(path) != want {
			t.Errorf("%q on %q: %t", text, path, !want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p := pattern(b, "**/.config/*/credentials*.json")
	for b.Loop() {
		p.Match("home/somebody/.config/program/credentials-2.json")
	}
}

func ExampleCompare() {
	var patterns []glob.Pattern
	for _, text := range []string{"**/*.md", "notes/", "notes/todo.md"} {
		p, err := glob.Parse(text)
		if err != nil {
			panic(err)
		}
		patterns = append(patterns, p)
	}
	slices.SortFunc(patterns, glob.Compare)
	for _, p := range patterns {
		fmt.Println(p, p.Match("notes/todo.md"), p.Match("notes/2026/may.md"))
	}
	// Output:
	// notes/todo.md true false
	// notes/ true true
	// **/*.md true true
}
