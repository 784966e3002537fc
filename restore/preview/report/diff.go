package report

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
)

// Limits of the differences of a page.
const (
	maxDiffs     = 50      // differences line by line
	maxReasons   = 200     // reasons why there is none
	maxDiffLines = 2000    // lines in all
	maxDiffRunes = 500     // characters of a line
	maxDiffBytes = 1 << 18 // of a file
	openDiffs    = 3       // are open from the start
)

// Limits of a summary, which counts lines and shows none.
const (
	maxCounted   = 1000    // files
	countedBytes = 1 << 24 // in all; each counts as 4 KiB more
)

// diffs are the differences of existing text files at targets, and on the page the new files after them.
type diffs struct {
	List []difference
	More int // differences that are left out

	counts     bool   // only count lines
	room       budget // for lines, or for bytes if lines are only counted
	shownLines int
	shownDiffs int
	read       bool // a file beneath the restore root was read
}

// difference is the difference between an existing file and that of the candidate.
type difference struct {
	Number     int // of the item
	ID, Name   string
	Why        string // why there are no lines, or ""
	Added      int
	Removed    int
	Lines      []diffLine
	LinesMore  int // that are left out
	Open       bool
	old, young []byte
}

// diffLine is a line of a unified difference.
type diffLine struct {
	Kind  string // "add", "del", "same", "hunk" or "note"
	Mark  string // at the beginning of the line
	Parts []part
	More  int // characters that are left out
}

// shown returns the numbers of the items whose lines are shown.
func (d *diffs) shown() map[int]bool {
	numbers := map[int]bool{}
	for n := range d.List {
		if d.List[n].Why == "" {
			numbers[d.List[n].Number] = true
		}
	}
	return numbers
}

// compared returns the items whose existing files are compared, proposed and diverged ones, and after them,
// if requested, the new ones.
func (p *Report) compared(withNew bool) (items []preview.Item) {
	for n, i := range slices.Concat(p.Block.Items, p.Block.DoNotRestore) {
		if isProposed := n < len(p.Block.Items); i.Differs() && (isProposed || i.IsDiverged()) {
			items = append(items, i)
		}
	}
	for _, i := range p.Block.Items {
		if withNew && i.Class == preview.Create {
			items = append(items, i)
		}
	}
	return items
}

// differences compares the proposed items that differ with the existing files. With new items it also
// returns these, and the lines of all; else it only counts changed lines. It returns [ErrUnsettled] if a file
// beneath the restore root is not the one that was previewed.
func (p *Report) differences(ctx context.Context, withNew bool) (diffs, error) {
	d := diffs{room: budget{diffBytes}}
	if !withNew {
		d.counts, d.room = true, budget{countedBytes}
	}
	for _, i := range p.compared(withNew) {
		if err := ctx.Err(); err != nil {
			return diffs{}, err
		}
		if err := d.add(p.preview.Restore().Root(), &i); err != nil {
			return diffs{}, fmt.Errorf("item %s, %q: %w", i.ID, i.Path, err)
		}
	}
	if !d.read {
		return d, nil
	}
	return d, p.preview.CheckRoot(ctx)
}

// add appends the difference of an item, or counts it if there is no room.
func (d *diffs) add(root *pathsafe.Dir, i *preview.Item) error {
	full := d.shownDiffs == maxDiffs || d.shownLines == maxDiffLines || d.room.left == 0
	if d.counts {
		full = d.shownDiffs == maxCounted || !d.room.take(int(min(i.Bytes, maxDiffBytes))+maxDiffBytes/64)
	}
	if full || len(d.List)-d.shownDiffs == maxReasons {
		d.More++
		return nil
	}
	one := difference{Number: i.Number, ID: i.ID, Name: name(i.Path), Open: d.shownDiffs < openDiffs && i.Class != preview.Create}
	if err := one.read(root, i, &d.read); err != nil {
		return err
	}
	if one.Why == "" {
		lines := maxDiffLines - d.shownLines
		if d.counts {
			lines = 0
		}
		one.compare(lines, &d.room)
		d.shownLines += len(one.Lines)
		d.shownDiffs++
	}
	one.old, one.young = nil, nil
	d.List = append(d.List, one)
	return nil
}

// read reads both sides, or records why they are not compared. Only a candidate's file that differs from the
// signed one is an error.
func (o *difference) read(root *pathsafe.Dir, i *preview.Item, read *bool) error {
	if i.Scope == scope.RestrictedContext {
		o.Why = "not shown: it is restricted context"
		return nil
	}
	if i.Class == preview.Create {
		return o.readNew(i)
	}
	*read = true
	old, size, err := readCurrent(root, i.Path)
	sizes := fmt.Sprintf("current state %s, candidate %s", visible.Size(size), visible.Size(i.Bytes))
	switch {
	case errors.Is(err, errNotRegular):
		o.Why = "no text: " + err.Error()
		return nil
	case err != nil:
		o.Why = "the existing file cannot be read"
		return nil
	case old == nil || i.Bytes > maxDiffBytes:
		o.Why = fmt.Sprintf("too large to compare here, the limit is %s: %s", visible.Size(maxDiffBytes), sizes)
		return nil
	}
	if o.young, err = readCandidate(i); err != nil {
		return err
	}
	if o.old = old; !isText(old) || !isText(o.young) {
		o.Why = fmt.Sprintf("binary: %s; sha256 %x, %x", sizes, sha256.Sum256(old), sha256.Sum256(o.young))
	}
	return nil
}

// readNew reads the candidate's side of a file that is not there yet.
func (o *difference) readNew(i *preview.Item) (err error) {
	if i.Bytes > maxDiffBytes {
		o.Why = fmt.Sprintf("new, too large to show here, the limit is %s: candidate %s", visible.Size(maxDiffBytes), visible.Size(i.Bytes))
		return nil
	}
	if o.young, err = readCandidate(i); err == nil && !isText(o.young) {
		o.Why = fmt.Sprintf("new, binary: candidate %s, sha256 %x", visible.Size(i.Bytes), sha256.Sum256(o.young))
	}
	return err
}

var errNotRegular = errors.New("the existing file is not a regular file")

// readCurrent reads the entry at a target; nil and its size when that is too
// large.
func readCurrent(root *pathsafe.Dir, target string) ([]byte, int64, error) {
	path, err := pathsafe.Parse(target)
	if err != nil {
		return nil, 0, err
	}
	st, err := root.StatPath(path, pathsafe.LinksBeneath)
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode.IsRegular() {
		return nil, 0, errNotRegular
	}
	f, st, err := root.OpenRegular(path, pathsafe.LinksBeneath)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxDiffBytes+1))
	if err != nil {
		return nil, 0, err
	}
	if len(content) > maxDiffBytes {
		return nil, st.Size, nil
	}
	return content, int64(len(content)), nil
}

func readCandidate(i *preview.Item) ([]byte, error) {
	if i.Removed {
		return nil, nil
	}
	source, err := i.Source().Open(nil)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	content := make([]byte, i.Bytes)
	if _, err := io.ReadFull(io.NewSectionReader(source, 0, i.Bytes), content); err != nil {
		return nil, err
	}
	return content, nil
}

// isText reports whether the lines of a content are shown. A few control characters, or bytes that are
// not UTF-8, do not hide them: they are shown with escapes.
func isText(content []byte) bool { return visible.IsMostlyText(content) }

// withoutBroken returns a content with an escape for each byte that is not UTF-8, which would be shown as
// another character.
func withoutBroken(content []byte) []byte {
	if utf8.Valid(content) {
		return content
	}
	var text []byte
	for len(content) > 0 {
		r, n := utf8.DecodeRune(content)
		if r == utf8.RuneError && n == 1 {
			text = fmt.Appendf(text, `\x%02x`, content[0])
		} else {
			text = append(text, content[:n]...)
		}
		content = content[n:]
	}
	return text
}

// compare parses the unified difference, and keeps the lines that fit.
func (o *difference) compare(lines int, room *budget) {
	unified := string(diff.Diff("current", withoutBroken(o.old), "candidate", withoutBroken(o.young)))
	for range 3 { // the names
		_, unified, _ = strings.Cut(unified, "\n")
	}
	for line := range strings.Lines(unified) {
		one := lineOf(strings.TrimSuffix(line, "\n"))
		switch one.Kind {
		case "add":
			o.Added++
		case "del":
			o.Removed++
		}
		if len(o.Lines) == lines || !room.take(one.cost()) {
			o.LinesMore++
			continue
		}
		o.Lines = append(o.Lines, one)
	}
}

// cost returns the approximate size of a line on the page.
func (l *diffLine) cost() int {
	n := 40
	for _, p := range l.Parts {
		n += costOf(0, p.Text)
		if p.Escape {
			n += len("<mark></mark>")
		}
	}
	return n
}

func lineOf(line string) diffLine {
	switch line[0] {
	case '@':
		return diffLine{Kind: "hunk", Parts: partsOf(line)}
	case '\\':
		return diffLine{Kind: "note", Parts: partsOf(line)}
	}
	one := diffLine{Kind: "same", Mark: line[:1]}
	switch line[0] {
	case '+':
		one.Kind = "add"
	case '-':
		one.Kind = "del"
	}
	text := []rune(line[1:])
	one.More = max(0, len(text)-maxDiffRunes)
	one.Parts = partsOf(string(text[:len(text)-one.More]))
	return one
}
