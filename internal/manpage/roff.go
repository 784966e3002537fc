package manpage

import (
	"regexp"
	"strings"
)

// page is a page while it is written, in the macros of man(7).
type page struct{ strings.Builder }

// line writes a line that is roff already.
func (p *page) line(roff string) { p.WriteString(roff + "\n") }

func (p *page) heading(title string) { p.line(".SH " + quoted(title)) }

// row writes a term, which is roff, and its text.
func (p *page) row(term, text string) {
	p.line(".TP")
	p.line(term)
	p.line(escape(text))
}

// prose writes plain text, paragraph by paragraph.
func (p *page) prose(text string) {
	for n, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if paragraph == "" {
			continue
		}
		if n > 0 {
			p.line(".PP")
		}
		if strings.TrimLeft(paragraph, " \t") == paragraph {
			p.lines(paragraph)
			continue
		}
		p.line(".nf\n.RS 4")
		p.lines(outdented(paragraph))
		p.line(".RE\n.fi")
	}
}

func (p *page) lines(text string) {
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		p.line(escape(line))
	}
}

// outdented is a paragraph without the indentation of its first line.
func outdented(paragraph string) string {
	indentation := paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " \t"))]
	lines := strings.Split(paragraph, "\n")
	for n, line := range lines {
		lines[n] = strings.TrimPrefix(line, indentation)
	}
	return strings.Join(lines, "\n")
}

// escapes replaces the characters that roff interprets: \ begins an escape, and the others would
// become hyphens, quotes and accents that cannot be pasted.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\t", "    ")

// escape is plain text as roff prints it. A dot at the beginning of a line is not
// a request.
func escape(text string) string {
	text = escapes.Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}

// quoted is an argument of a macro.
func quoted(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

// written matches the words of a synopsis that are typed literally, and the placeholders.
var written = regexp.MustCompile(`--?[A-Za-z][a-z-]*|[A-Z][A-Z_]*`)

// markUp is a synopsis with the first bold and the others in italics.
func markUp(synopsis string) string {
	var b strings.Builder
	at := 0
	for _, found := range written.FindAllStringIndex(synopsis, -1) {
		word, font := synopsis[found[0]:found[1]], `\fI`
		if word[0] == '-' {
			font = `\fB`
		}
		b.WriteString(escape(synopsis[at:found[0]]) + font + escape(word) + `\fP`)
		at = found[1]
	}
	return b.String() + escape(synopsis[at:])
}
