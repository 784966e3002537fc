package words

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// TestShell has bash read what was quoted: it is the very same word, and was on
// one line that moves no cursor.
func TestShell(t *testing.T) {
	words := []string{
		"", "plain", "/srv/a b", "it's", "a\nb", "\x1b[2J", "tab\there", `back\slash`, "a\n'q' \\x41", "\xff\xfeab", "ü\u202egpj", "$(id) `id` $HOME", "\n4", "~", "*", "-n", "\uFFFD", "#x", "!!",
		"\u3164", "a\u2800b", "\u200b", "e\ufe0f", "e\u0301\u0301\u0301", "\x9b", "\u009b2J",
	}
	for _, word := range words {
		quoted := Shell(word)
		if strings.ContainsFunc(quoted, func(r rune) bool { return !unicode.IsPrint(r) }) || visible.Escape(quoted) != quoted {
			t.Errorf("%q is quoted as %q, which is not one plain line", word, quoted)
		}
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s x"+quoted).CombinedOutput()
		if err != nil || string(out) != "x"+word {
			t.Errorf("%q is quoted as %s, which is %q (%v)", word, quoted, out, err)
		}
	}
}
