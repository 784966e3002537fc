package report

import (
	"regexp"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// Names and claims stand in code spans, whose content is shown as it is. Escapes with
// a backslash are not enough: GitHub and GitLab make links of #12, GH-1, @user, commit
// IDs and addresses, and signs of :word:, after Markdown has been read and the
// backslashes are gone, and skip nothing but code.

// Quote returns a name as a code span that is safe on a terminal and in a cell of a
// table in Markdown: what cannot be seen is an escape.
func Quote(name string) string { return codeSpan(visible.Quote(name)) }

// text makes words safe in the same way. Plain words stay as they are.
func text(words string) string {
	list := strings.Split(escaped(words), " ")
	for n, word := range list {
		core := strings.TrimRight(word, ".,;:")
		if open := strings.TrimRight(core, ")"); !strings.Contains(open, "(") { // it was opened before this word
			core = open
		}
		if strings.ContainsAny(core, "&:") { // &lt; and :word: are to be code as a whole
			core = word
		}
		if core != "" && (!plainWord.MatchString(core) || commitID.MatchString(core)) {
			list[n] = codeSpan(core) + word[len(core):]
		}
	}
	return strings.Join(list, " ")
}

// plainWord is a word of letters or a number, with the punctuation that sentences have
// around it, or a dash. GH-1 is not one.
var plainWord = regexp.MustCompile(`^(["'(/]*(\pL[\pL\pM]*(['’/-]\pL[\pL\pM]*)*|[0-9]{1,6}([.,][0-9]{1,6})*%?)[)"'!?…]*|[-–—…])$`)

// commitID matches digits that look like the beginning of a commit ID.
var commitID = regexp.MustCompile(`[0-9A-Fa-f]{7}`)

// codeSpan returns text as code, between more backticks than it has in a row.
func codeSpan(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " " // one of each is not part of the code
	}
	return fence + strings.ReplaceAll(text, "|", `\|`) + fence // a cell ends at a bare |
}
