package transcript

import (
	"os/user"
	"strings"
	"testing"
)

// TestCompareShown: what is not the same is found.
func TestCompareShown(t *testing.T) {
	a, b, c := strings.Repeat("a1", 32), strings.Repeat("b2", 32), strings.Repeat("c3", 32)
	const early, late = "2026-01-01T00:00:00Z", "2026-12-31T23:59:59.5Z"
	tests := []struct{ name, shown, printed, err string }{
		{"same", "x\ny", "x\ny", ""},
		{"word", "x y", "x z", "shown:"},
		{"less", "x\ny", "x", "nothing more"},
		{"more", "x", "x\ny", "more was printed"},
		{"gap", "x\n...\nz", "x\ny\ny\nz", ""},
		{"gap at the end", "x\n...", "x\ny", ""},
		{"gap of nothing", "x\n...\ny", "x\ny", ""},
		{"after a gap", "x\n...\nw", "x\ny\nz", "nothing like this"},
		{"time", "at " + early, "at " + late, ""},
		{"no time", "at " + early, "at noon", "shown:"},
		{"id", a + " " + b + " " + a, b + " " + c + " " + b, ""},
		{"another id", a + " " + a, b + " " + c, "another one"},
		{"two ids in one", a + " " + b, c + " " + c, "another one"},
		{"beginning", a + " " + a[:8], b + " " + b[:8], ""},
		{"another beginning", a + "\n" + a[:8], b + "\n" + c[:8], "another one"},
		{"length", a[:8], b[:12], "shown:"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := identities{}.compare(strings.Split(test.shown, "\n"), strings.Split(test.printed, "\n"))
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, not %q", err, test.err)
			}
		})
	}
}

// TestOperatorOfOutput: the user who runs the tests is ada on a page.
func TestOperatorOfOutput(t *testing.T) {
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for shown, printed := range map[string]string{
		"3 2026-01-01T00:00:00Z ada commit_begin":                    "3 2026-01-01T00:00:00Z " + who.Username + " commit_begin",
		`x, released 2026-01-01T00:00:00Z by ada "y"`:                `x, released 2026-01-01T00:00:00Z by ` + who.Username + ` "y"`,
		"2026-01-01T00:00:00Z commit   4969c5ea done /r by ada: why": "2026-01-01T00:00:00Z commit   4969c5ea done /r by " + who.Username + ": why",
		"restore root": "restore root",
	} {
		if got := operator.ReplaceAllString(printed, asAda); got != shown {
			t.Errorf("%q, not %q", got, shown)
		}
	}
}
