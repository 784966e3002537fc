package main

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
)

// fileStat is what --stat shows of a file.
type fileStat struct {
	name           string
	added, removed int
	words          string // in place of lines
}

// printStat prints how many lines each file has more and less, as git does.
func (d *rootDiff) printStat(ctx context.Context, w *diffWriter) error {
	stats := make([]fileStat, len(d.files))
	var total fileStat
	name, count := 0, 1
	for i := range d.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		s, err := d.stat(&d.files[i])
		if err != nil {
			return err
		}
		stats[i] = s
		total.added, total.removed = total.added+s.added, total.removed+s.removed
		name, count = max(name, utf8.RuneCountInString(s.name)), max(count, s.added+s.removed)
	}
	digits := len(fmt.Sprint(count))
	room := max(w.width-name-digits-len("  |  "), 10)
	for _, s := range stats {
		front := fmt.Sprintf(" %s%s | ", s.name, strings.Repeat(" ", name-utf8.RuneCountInString(s.name)))
		if s.words != "" {
			w.line(plainText, front+s.words)
			continue
		}
		added, removed := share(s.added, count, room), share(s.removed, count, room)
		graph := w.colored(greenText, strings.Repeat("+", added)) + w.colored(redText, strings.Repeat("-", removed))
		w.write(plainText, strings.TrimRight(fmt.Sprintf("%s%*d %s", front, digits, s.added+s.removed, graph), " "))
	}
	w.line(plainText, fmt.Sprintf(" %s, %s(+), %s(-)", numberOf(len(stats), "file")+" changed", numberOf(total.added, "insertion"), numberOf(total.removed, "deletion")))
	return nil
}

func (w *diffWriter) colored(color, text string) string {
	if !w.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[m"
}

// share returns how many characters of the available width represent n of most lines.
func share(n, most, room int) int {
	if most <= room || n == 0 {
		return n
	}
	return max(n*room/most, 1)
}

func (d *rootDiff) stat(h *heldAgainst) (fileStat, error) {
	s := fileStat{name: shownPath(h.Path)}
	if !h.hasLines() {
		s.words = string(h.class) + ": " + oneLine(h.obstacle.Kind)
		return s, nil
	}
	text, why, err := d.patch(h)
	switch {
	case err != nil:
		return fileStat{}, err
	case why != "" && why != oddText:
		s.words = number(h.there.Size) + " -> " + numberOf(h.Size, "byte")
	default:
		s.added, s.removed = patch.Count(text)
	}
	return s, nil
}
