package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The measures of the drawing, in pixels, and how many letters fit on a line.
const (
	columns = 104
	width   = 848
	size    = 13
	row     = 18
	margin  = 16
)

// style serves light and dark pages alike.
const style = `<style>
.page { fill: #f6f8fa; stroke: #d1d9e0; }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; white-space: pre; }
.command { font-weight: 600; }
.added { fill: #116329; }
.removed { fill: #b3261e; }
.cut { fill: #818b98; }
@media (prefers-color-scheme: dark) {
.page { fill: #161b22; stroke: #3d444d; }
text { fill: #f0f6fc; }
.added { fill: #7ee787; }
.removed { fill: #ff8f85; }
.cut { fill: #9198a1; }
}
</style>`

// draw gives the SVG of a session.
func draw(shots []shot) string {
	var text strings.Builder
	y := margin + size
	write := func(class, line string) {
		_, _ = fmt.Fprintf(&text, "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", margin, y, class, escape(fit(line)))
		y += row
	}
	for i, s := range shots {
		if i > 0 {
			y += row / 3
		}
		write(` class="command"`, "$ "+s.command)
		for _, line := range s.lines {
			write(classOf(line), line)
		}
	}
	const about = "A terminal session: an agent works on a repository that does not change, its change is looked at line by line, approved and committed, and taken back; the change of another agent has diverged."
	height := y - row + margin
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %[1]d %[2]d\" role=\"img\" aria-label=\"%s\">\n%s\n"+
		"<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n%s</svg>\n", width, height, about, style, width-1, height-1, text.String())
}

// classOf is how a line of output looks.
func classOf(line string) string {
	switch {
	case line == "…":
		return ` class="cut"`
	case strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++"):
		return ` class="added"`
	case strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---"):
		return ` class="removed"`
	}
	return ""
}

// fit cuts a line off at the edge.
func fit(line string) string {
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

func escape(line string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(line)) // a Builder takes everything
	return b.String()
}
