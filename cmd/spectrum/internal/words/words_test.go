package words

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// shells are the shells that are installed: every POSIX shell reads a quoted word in the same way.
func shells(t *testing.T) (found [][]string) {
	t.Helper()
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash"}, {"bash", "--posix"}, {"zsh", "-f"}, {"ksh"}, {"mksh"}, {"busybox", "sh"}} {
		if path, err := exec.LookPath(shell[0]); err == nil {
			found = append(found, append([]string{path}, shell[1:]...))
		}
	}
	if len(found) < 2 {
		t.Fatalf("only %q: a shell is required beside bash", found)
	}
	return found
}

// hostileWords are words that a shell may read in another way.
var hostileWords = []string{
	"", "plain", "/srv/a b", "it's", "a\nb", "\x1b[2J", "tab\there", `back\slash`, "a\n'q' \\x41", "\xff\xfeab", "ü\u202egpj", "$(id) `id` $HOME", "\n4", "~", "*", "-n", "\uFFFD", "#x", "!!",
	"\u3164", "a\u2800b", "\u200b", "e\ufe0f", "e\u0301\u0301\u0301", "\x9b", "\u009b2J", "-n\x1b", "-\n-", "100%s\x1b%", "\x1b\\\\n\\c\\0", "a\x1b!!b!", "\t\"$(id)`id`${x}\"",
	"\u200b'; touch hacked; '", "\u200b\\'; touch hacked; #'", "\x1b')\"; touch hacked; \"$(printf '", "\r\n ",
}

// TestShell has each shell read what was quoted: it is the very same word, and was on
// one line that moves no cursor.
func TestShell(t *testing.T) {
	all := shells(t)
	for _, word := range hostileWords {
		quoted := Shell(word)
		if strings.ContainsFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }) || visible.Escape(quoted) != quoted {
			t.Errorf("%q is quoted as %q, which is not one plain line", word, quoted)
		}
		for _, shell := range all {
			cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], "-c", "printf %s x"+quoted)...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != "x"+word {
				t.Errorf("%s: %q is quoted as %s, which is %q (%v)", shell, word, quoted, out, err)
			}
			if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
				t.Errorf("%s: %q is quoted as %s, which runs a command: %v, %v", shell, word, quoted, made, err)
			}
		}
	}
}

// TestShellEndsInLines: a word that ends in a line feed cannot be written on one line for every
// shell; what is printed runs nothing, and names the word.
func TestShellEndsInLines(t *testing.T) {
	for _, word := range []string{"/srv/a\n", "\n", "}\"; touch hacked; \"\n", "$(touch hacked)`touch hacked`\n", "ü\u202e\n\n", "'; touch hacked; '\n", `a\n` + "\n"} {
		quoted := Shell(word)
		if visible.Escape(quoted) != quoted {
			t.Errorf("%q is quoted as %q, which is not one plain line", word, quoted)
		}
		for _, shell := range shells(t) {
			cmd := exec.CommandContext(t.Context(), shell[0], append(shell[1:], "-c", "touch ran"+quoted)...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "type_this_name_by_hand") {
				t.Errorf("%s: %q is quoted as %s: %q (%v)", shell, word, quoted, out, err)
			}
			if made, err := os.ReadDir(cmd.Dir); err != nil || len(made) > 0 {
				t.Errorf("%s: %q is quoted as %s, which runs a command: %v, %v", shell, word, quoted, made, err)
			}
		}
	}
}

// TestLongTextsAreShortened: what people read of long paths and lists is short, and says how much more there is.
func TestLongTextsAreShortened(t *testing.T) {
	long := strings.Repeat("d/", 2000) + "end"
	if got := Path(long); len(got) > 400 || !strings.Contains(got, "(4,003 bytes)") || !strings.Contains(got, "end'") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := Path("a b"); got != "'a b'" {
		t.Error(got)
	}
	if got := Cut(strings.Repeat(long, 10)); len(got) > 2100 {
		t.Errorf("%d bytes", len(got))
	}
	all := make([]string, 25)
	if got := Few(all, MaxNamed); len(got) != 21 || got[20] != "and 5 more; --json names all of them" {
		t.Errorf("%q", got)
	}
	if got := List([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e, 2 more" {
		t.Error(got)
	}
}

// TestNumbers: a number that a person reads has a comma at every third digit, and one is one.
func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 20_000: "20,000", 123_456: "123,456", 1_234_567: "1,234,567", -1: "-1", -123: "-123", -1234: "-1,234", -123_456: "-123,456",
	} {
		if got := Number(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for got, want := range map[string]string{
		Count(1, "file"): "1 file", Count(2003, "file"): "2,003 files", Of(1, 1, "file"): "1 of 1 file", Of(1, 20_000, "file"): "1 of 20,000 files", Bytes(1): "1 byte",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
