package pathsafe

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// pathCases are the path cases of the reliability plan, by number; want is nil
// for a legal form.
var pathCases = []struct {
	no   int
	path string
	want error
}{
	{1, "../x", ErrTraversal},
	{2, "a/../../x", ErrTraversal},
	{3, "a/../b", ErrTraversal},
	{4, "..", ErrTraversal},
	{5, ".", ErrTraversal},
	{6, "./a", ErrTraversal},
	{7, "a/./b", ErrTraversal},
	{7, "a/.", ErrTraversal},
	{8, "/etc/passwd", ErrTraversal},
	{8, "/", ErrTraversal},
	{9, "//a", ErrTraversal},
	{10, "a//b", ErrTraversal},
	{11, "a/", ErrTraversal},
	{12, "", ErrTraversal},
	{13, `..\x`, ErrTraversal},
	{14, `a\b`, ErrTraversal},
	{15, `C:\x`, ErrTraversal},
	{15, `\\srv\x`, ErrTraversal},
	{16, "a\x00b", ErrNullByte},
	{16, "\x00", ErrNullByte},
	{16, "a/.\x00/b", ErrNullByte},
	{17, "../\x00", ErrTraversal},
	{17, "\x00/..", ErrTraversal},
	{17, "\x00\\", ErrTraversal},
	{18, "...", nil},
	{18, "..a", nil},
	{18, "a../..b", nil},
	{19, "RESTORE_REPORT.json", nil},
	{20, "RESTORE_MANIFEST.json/x", nil},
	{21, ".spectrum06_staging_x/a", nil},
	{21, ".spectrum06_chain_x.json", nil},
	{22, strings.Repeat("n", 256), nil},
	{22, "d/" + strings.Repeat("n", 256) + "/f", nil},
	{23, strings.Repeat("abcd/", 999) + "abcde", nil},
	{23, strings.Repeat("d/", 2000) + "f", nil},
	{24, longPath(4090), nil},
	{24, longPath(4095), nil},
	{25, "clash", nil},
	{26, "A", nil},
	{26, "a", nil},
	{27, "caf\u00e9", nil},
	{27, "cafe\u0301", nil},
	{28, "esc\x1b[2J\x1b]0;x\x07", nil},
	{28, "new\nline", nil},
	{28, "tab\t|`cell`|", nil},
	{28, "rtl\u202egpj.exe", nil},
	{28, "<script>", nil},
	{28, "bad\xffutf8", nil},
	{29, "%2e%2e/x", nil},
	{29, "．．/x", nil},
	{29, "..%00", nil},
	{30, "--json", nil},
	{30, "-rf", nil},
	{31, "proc/self/fd/3", nil},
	{31, "nul", nil},
	{31, " ", nil},
}

// longPath returns a legal path of n bytes with names as long as they may be.
func longPath(n int) string {
	s := strings.Repeat(strings.Repeat("p", MaxName)+"/", n/(MaxName+1)+1)[:n]
	if strings.HasSuffix(s, "/") {
		return s[:n-2] + "/q"
	}
	return s
}

func tooLongCase(s string) bool {
	return len(s) > MaxPath || strings.Contains(s, strings.Repeat("n", 256))
}

func TestParse(t *testing.T) {
	seen := map[int]bool{}
	for _, c := range pathCases {
		seen[c.no] = true
		p, err := Parse(c.path)
		if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("case %d: Parse(%.40q) = %v, want %v", c.no, c.path, err, c.want)
		}
		if err != nil {
			var fe *FormError
			if p != (Path{}) || !errors.As(err, &fe) || fe.Path != c.path {
				t.Errorf("case %d: Parse(%.40q) gave %v with error %#v", c.no, c.path, p, err)
			}
			continue
		}
		checkPath(t, p, c.path)
	}
	for no := 1; no <= 31; no++ {
		if !seen[no] {
			t.Errorf("case %d is missing", no)
		}
	}
}

// TestNamesFoundOnDisk: a name found on the disk may have a backslash; all else is as in an output
// path.
func TestNamesFoundOnDisk(t *testing.T) {
	for _, c := range pathCases {
		p, err := Found(c.path)
		if !strings.Contains(c.path, "\\") {
			parsed, want := Parse(c.path)
			if p != parsed || (err == nil) != (want == nil) || !errors.Is(err, c.want) {
				t.Errorf("Found(%.40q) = %v, %v", c.path, p, err)
			}
			continue
		}
		_, want := Parse(strings.ReplaceAll(c.path, "\\", "_"))
		if (err == nil) != (want == nil) || err == nil && p.String() != c.path {
			t.Errorf("Found(%.40q) = %v, %v", c.path, p, err)
		}
	}
}

// checkPath compares a parsed path with the standard library.
func checkPath(t *testing.T, p Path, s string) {
	t.Helper()
	if p.String() != s || strings.Join(p.Components(), "/") != s {
		t.Errorf("%q came out as %q, %q", s, p, p.Components())
	}
	if !filepath.IsLocal(s) || path.Clean(s) != s || s == "." {
		t.Errorf("%q was accepted but is not local and clean", s)
	}
	for _, name := range strings.Split(s, "/") {
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\\\x00") {
			t.Errorf("%q was accepted with component %q", s, name)
		}
	}
	if p.Base() != path.Base(s) {
		t.Errorf("base of %q is %q", s, p.Base())
	}
	checkParent(t, p)
}

func checkParent(t *testing.T, p Path) {
	t.Helper()
	up, ok := p.Parent()
	if n := len(p.Components()); ok != (n > 1) {
		t.Errorf("Parent of %q, with %d components: %v", p, n, ok)
	}
	if again, err := up.Child(p.Base()); err != nil || again != p {
		t.Errorf("%q is not the child of its parent: %q, %v", p, again, err)
	}
	if got, _ := p.prefix(len(p.Components()) - 1); got != up.s {
		t.Errorf("prefix of %q is %q, parent %q", p, got, up)
	}
	if _, ok := p.prefix(len(p.Components()) + 1); ok {
		t.Errorf("%q has more components than it has", p)
	}
}

func TestChildTakesOneComponent(t *testing.T) {
	p, err := Parse("a")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "b/c", "/", "b/", `b\c`} {
		if got, err := p.Child(name); !errors.Is(err, ErrTraversal) || got != (Path{}) {
			t.Errorf("Child(%q) = %q, %v", name, got, err)
		}
	}
	if got, err := p.Child("b\x00"); !errors.Is(err, ErrNullByte) || got != (Path{}) {
		t.Errorf("Child with NUL = %q, %v", got, err)
	}
}

func TestZeroPath(t *testing.T) {
	var p Path
	if p.Components() != nil || p.String() != "" || p.Base() != "" {
		t.Error("the zero path holds something")
	}
	if _, ok := p.Parent(); ok {
		t.Error("the zero path has a parent")
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range pathCases {
		f.Add(c.path)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err == nil {
			checkPath(t, p, s)
			return
		}
		// What is rejected must really be wrong, or the law is narrower here.
		clean := filepath.IsLocal(s) && path.Clean(s) == s && s != "."
		if clean && !strings.ContainsAny(s, "\\\x00") {
			t.Errorf("%q was refused: %v", s, err)
		}
		if p != (Path{}) {
			t.Errorf("%q was refused with a path", s)
		}
	})
}
