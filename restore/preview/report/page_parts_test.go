package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
)

func itemsOf(paths ...string) []preview.Item {
	var items []preview.Item
	for n, path := range paths {
		items = append(items, preview.Item{ID: preview.ItemID(n + 1), Path: path, Class: preview.Create, Label: preview.RestoreActive, Mode: "0644", Bytes: 1, Number: n + 1})
	}
	return items
}

// outline is a tree in words.
func outline(b *branch) string {
	var out strings.Builder
	for _, sub := range b.Branches {
		out.WriteString(sub.Name + "{" + outline(sub) + "}")
	}
	for _, l := range b.Leaves {
		out.WriteString(l.Name + " ")
	}
	if b.More != "" {
		out.WriteString("+ " + b.More)
	}
	return out.String()
}

// TestTree checks that a directory with a single directory is joined with it.
func TestTree(t *testing.T) {
	for _, c := range []struct{ paths, want string }{
		{"a", "a "},
		{"a b", "a b "},
		{"d/a", "d/{a }"},
		{"d/e/f/a", "d/e/f/{a }"},
		{"d/e/a d/e/b d/x", "d/{e/{a b }x }"},
		{"d/a d/e/f/b z", "d/{e/f/{b }a }z "},
		{"d-e/a d/a", "d-e/{a }d/{a }"},
		{"r1/a/b r2/a/b", "r1/a/{b }r2/a/{b }"},
	} {
		if got := outline(treeOf(itemsOf(strings.Fields(c.paths)...), true, nil, &budget{1 << 20})); got != c.want {
			t.Errorf("%s: %s, want %s", c.paths, got, c.want)
		}
	}
}

// TestTreeLimits checks that the tree counts the entries that it leaves out.
func TestTreeLimits(t *testing.T) {
	many := func(n int, format string) (paths []string) {
		for i := range n {
			paths = append(paths, fmt.Sprintf(format, i))
		}
		return paths
	}
	for _, c := range []struct {
		paths       []string
		room        int
		dirs, files int
		more        string
	}{
		{many(250, "%04d"), 1 << 20, 0, 250, ""},
		{many(2000, "%04d"), 1 << 20, 0, 2000, ""},
		{many(2000, "%04d"), 250 * 132, 0, 250, "1,750 more files"},
		{many(501, "%04d/a"), 1 << 20, 501, 0, ""},
		{append(many(600, "%04d/a"), many(300, "f%04d")...), 1 << 20, 600, 300, ""},
		{many(10, "%04d"), 3 * 132, 0, 3, "7 more files"},
		{many(10, "%04d/a"), 0, 0, 0, "10 more directories"},
	} {
		b := treeOf(itemsOf(c.paths...), true, nil, &budget{c.room})
		if len(b.Branches) != c.dirs || len(b.Leaves) != c.files || b.More != c.more {
			t.Errorf("%d directories, %d files, %q; want %+v", len(b.Branches), len(b.Leaves), b.More, c)
		}
	}
}

// TestTreeIsBounded: whatever the names are, and however deep, a tree stays
// within its room and nests no deeper than it may.
func TestTreeIsBounded(t *testing.T) {
	for name, path := range map[string]func(n int) string{
		"quotes": func(n int) string { return strings.Repeat(`"`, 250) + fmt.Sprint(n) },
		"flat":   func(n int) string { return fmt.Sprint(n) },
		"alone":  func(n int) string { return fmt.Sprintf("%d/%d/x", n, n) },
		"deep":   func(n int) string { return strings.Repeat("d/", n%2000) + fmt.Sprint(n) },
		"fan":    func(n int) string { return fmt.Sprintf("%d/%d/%d/%d/%d", n%2, n%3, n%7, n%101, n) },
		"hidden": func(n int) string {
			return strings.Repeat("\u202e", 80) + fmt.Sprintf("/%d/", n) + strings.Repeat("\u202e", 80)
		},
	} {
		var paths []string
		for n := range 4000 {
			paths = append(paths, path(n))
		}
		const room = 1 << 18
		var page strings.Builder
		tree := treeOf(itemsOf(paths...), true, nil, &budget{room})
		if err := pageTemplate().ExecuteTemplate(&page, "branch", tree); err != nil {
			t.Fatal(err)
		}
		if page.Len() > room*5/4 {
			t.Errorf("%s: %d bytes", name, page.Len())
		}
		if deep := depthOf(tree); deep > maxNesting {
			t.Errorf("%s: %d deep", name, deep)
		}
	}
}

func depthOf(b *branch) int {
	deepest := 0
	for _, sub := range b.Branches {
		deepest = max(deepest, 1+depthOf(sub))
	}
	return deepest
}

// TestRegisterLimits: every conflict is in a group and counted there; what is
// not shown is said.
func TestRegisterLimits(t *testing.T) {
	var conflicts []registerRow
	for n := range 700 {
		conflicts = append(conflicts, registerRow{[]int{n + 1}, "", &preview.Conflict{Type: []preview.ConflictType{preview.AuthorityConflict, preview.StateConflict, preview.StaleContext}[n%3]}})
	}
	r := registerOf(conflicts, nil)
	count, rows := 0, 0
	for _, g := range r.Groups {
		count += g.Count
		rows += len(g.Rows)
	}
	if len(r.Groups) != 3 || count != 700 || rows != 700 || r.More != 0 {
		t.Errorf("%d groups of %d, %d rows, %d more", len(r.Groups), count, rows, r.More)
	}
	for n := range conflicts {
		conflicts[n].first.Current = strings.Repeat("\u202e", 4000)
	}
	if r := registerOf(conflicts, nil); r.More < 500 || r.Count != 700 {
		t.Errorf("only %d of long ones are left out", r.More)
	}
}

// FuzzDifference: a difference says how many lines there are more, and none of
// its lines is of no kind.
func FuzzDifference(f *testing.F) {
	for _, seed := range [][2]string{{"a\nb\n", "a\nc\n"}, {"", "a"}, {"a", "a\n"}, {"--- x\n", "+++ y\n"}, {"\\ x\n@@\n", "@@\n"}, {"\r\n", "\n"}, {"\n\n", "\n"}} {
		f.Add(seed[0], seed[1])
	}
	lines := func(s string) int {
		n := strings.Count(s, "\n")
		if s != "" && !strings.HasSuffix(s, "\n") {
			n++
		}
		return n
	}
	f.Fuzz(func(t *testing.T, old, young string) {
		o := difference{old: []byte(old), young: []byte(young)}
		o.compare(math.MaxInt, &budget{math.MaxInt})
		if o.Added-o.Removed != lines(young)-lines(old) {
			t.Errorf("+%d -%d", o.Added, o.Removed)
		}
		var whole strings.Builder
		for _, l := range o.Lines {
			if l.Kind == "" || (l.Kind == "hunk" || l.Kind == "note") != (l.Mark == "") {
				t.Errorf("%+v", l)
			}
			if l.Kind == "add" && l.More == 0 {
				for _, p := range l.Parts {
					if !p.Escape {
						whole.WriteString(p.Text)
					}
				}
			}
		}
		if o.Removed == 0 && o.Added == lines(young) && isText([]byte(young)) {
			for _, word := range strings.FieldsFunc(young, func(r rune) bool { return r > 'z' || r < 'a' }) {
				if len(young) < maxDiffRunes && !strings.Contains(whole.String(), word) {
					t.Errorf("%q is missing", word)
				}
			}
		}
	})
}

func TestShownNames(t *testing.T) {
	for text, want := range map[string]string{
		"plain/name-1_2.txt": "plain/name-1_2.txt", "": `""`, " ": `" "`, "a b": `"a b"`, "\"a\"": `"\"a\""`, "é": `"é"`,
		"\u202e": `"\u202e"`, `\u202e`: `"\\u202e"`, "<b>": `"<b>"`, "~": `"~"`,
	} {
		if got := name(text); got != want {
			t.Errorf("name(%q) = %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"a \"b\"\n": `a "b"\n`, `\n`: `\\n`, "\u00ad": `\u00ad`, "\xff": `\xff`, strings.Repeat("a", 5096): strings.Repeat("a", 4096) + " … (1,000 more bytes)"} {
		if got := words(text); got != want {
			t.Errorf("words(%q) = %s, want %s", text, got, want)
		}
	}
}

var colour = regexp.MustCompile(`--([a-z]+): (#[0-9a-f]{6})`)

// TestContrast: every ink can be read on every paper that it is put on, by day
// and by night (WCAG 2.1, 1.4.3: 4.5 to 1).
func TestContrast(t *testing.T) {
	day, night, _ := strings.Cut(pageCSS, "@media (prefers-color-scheme: dark)")
	night, _, _ = strings.Cut(night, "* {")
	for name, css := range map[string]string{"day": day, "night": night} {
		colours := map[string]string{}
		for _, m := range colour.FindAllStringSubmatch(css, -1) {
			colours[m[1]] = m[2]
		}
		for ink, papers := range map[string]string{
			"ink": "paper card add del mark", "soft": "paper card add del", "link": "paper card", "good": "paper", "warn": "paper", "bad": "paper",
		} {
			for _, paper := range strings.Fields(papers) {
				a, b := luminance(t, colours[ink]), luminance(t, colours[paper])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s on %s is %.2f to 1", name, ink, paper, ratio)
				}
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 24)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= 0.03928 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(rgb>>16) + 0.7152*linear(rgb>>8) + 0.0722*linear(rgb)
}
