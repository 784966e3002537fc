package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// The measures of the drawing, in pixels.
const (
	svgTop     = 76 // above the first bar
	svgRow     = 24 // from one bar to the next
	svgBar     = 12 // thickness of a bar
	svgChart   = 360
	svgMargin  = 12
	svgLetter  = 6.5 // width of a letter of 12 px, on average and rather too much
	svgOctaves = 10  // 1/1024 to 1024 is drawn as it is, what is beyond at the edge
)

// svgStyle serves light and dark pages alike; the background is the page's own.
const svgStyle = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 14px; }
.grid { stroke: #d1d9e0; }
.even { stroke: #59636e; }
.target { stroke: #1f2328; stroke-width: 2.5; }
.ok { fill: #2f81c7; }
.missed { fill: #d9622b; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.grid { stroke: #3d444d; }
.even { stroke: #9198a1; }
.target { stroke: #f0f6fc; }
}
</style>`

// chart draws rows with a target as bars on a logarithmic scale. A bar begins at 1, as fast
// as the other, and goes to the right where spectrum is faster.
type chart struct {
	svg       bytes.Buffer
	left      float64 // of the bars
	from, to  float64 // octaves
	textRight float64 // of the names
}

// drawing gives an SVG of the rows that want something, in their order. The same rows are
// always drawn the same.
func drawing(rows []row) []byte {
	var c chart
	var wanted []row
	longest := 0
	for _, r := range rows {
		if r.target > 0 {
			wanted = append(wanted, r)
			longest = max(longest, utf8.RuneCountInString(r.name))
		}
	}
	c.from, c.to = octaves(wanted)
	c.textRight = math.Ceil(svgMargin + svgLetter*float64(longest))
	c.left = c.textRight + svgMargin
	width, height := c.left+svgChart+16*svgMargin, svgTop+svgRow*len(wanted)+svgRow
	c.put(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %.0f %d" width="%.0f" height="%d">`,
		width, height, width, height)
	c.put("<title>spectrum against others, as ratios</title>\n%s", svgStyle)
	c.text(svgMargin, 22, "title", "start", "Their time ÷ ours, or the limit ÷ what was measured: more is better")
	c.text(svgMargin, 40, "legend", "start", "The upright mark on each bar is what was wanted.")
	c.grid(svgTop + svgRow*len(wanted))
	for i, r := range wanted {
		c.bar(float64(svgTop+svgRow*i), r)
	}
	c.put("</svg>")
	return c.svg.Bytes()
}

// octaves gives the part of the scale that the rows need, with some of each side of 1.
func octaves(rows []row) (from, to float64) {
	from, to = -1, 1
	for _, r := range rows {
		for _, v := range []float64{r.value, r.target} {
			from = min(from, math.Floor(octave(v)))
			to = max(to, math.Ceil(octave(v)))
		}
	}
	return from, to
}

func octave(value float64) float64 {
	return min(max(math.Log2(value), -svgOctaves), svgOctaves)
}

// x gives the place of a value on the scale.
func (c *chart) x(value float64) float64 {
	return c.left + svgChart*(octave(value)-c.from)/(c.to-c.from)
}

// grid draws the scale down to bottom.
func (c *chart) grid(bottom int) {
	step := math.Ceil((c.to - c.from) / svgOctaves)
	for o := math.Ceil(c.from/step) * step; o <= c.to; o += step {
		class := "grid"
		if o == 0 {
			class = "even"
		}
		x := c.x(math.Exp2(o))
		c.line(x, svgTop-4, float64(bottom), class)
		c.text(x, svgTop-10, "scale", "middle", fmt.Sprintf("%g", math.Exp2(o)))
	}
}

// bar draws a row whose top is at y: its name, its bar, what it wants, and its figures.
func (c *chart) bar(y float64, r row) {
	class, verdict := "ok", ""
	if !r.ok {
		class, verdict = "missed", ": missed"
	}
	from, to := min(c.x(1), c.x(r.value)), max(c.x(1), c.x(r.value))
	line := y + svgRow/2 + 4
	c.text(c.textRight, line, "name", "end", r.name)
	c.put(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`,
		class, from, y+(svgRow-svgBar)/2, max(to-from, 1), svgBar)
	c.line(c.x(r.target), y+3, y+svgRow-3, "target")
	c.text(c.left+svgChart+svgMargin, line, "figure", "start",
		fmt.Sprintf("%s, wanted %s%s", figure(r.value), figure(r.target), verdict))
}

// figure rounds to what is worth telling.
func figure(v float64) string {
	if v < 10 {
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	}
	return fmt.Sprintf("%.0f", v)
}

func (c *chart) line(x, from, to float64, class string) {
	c.put(`<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, class, x, from, x, to)
}

func (c *chart) text(x, y float64, class, anchor, text string) {
	var escaped bytes.Buffer
	_ = xml.EscapeText(&escaped, []byte(text)) // a buffer takes everything
	c.put(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, escaped.String())
}

// put adds a line.
func (c *chart) put(format string, args ...any) {
	c.svg.WriteString(fmt.Sprintf(format+"\n", args...))
}
