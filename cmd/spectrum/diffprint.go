package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/standing"
)

// maxUnified is the size of the largest file whose lines are compared.
const maxUnified = 1 << 20

// diffForm is what is printed of each file.
type diffForm int

const (
	formList    diffForm = iota // a line
	formUnified                 // a line, and the lines of text files
	formStat                    // how many lines were added and removed
	formNames                   // a letter and the name
)

// diffWriter writes for a terminal, where nothing that came from outside reaches it as it is,
// or else for a program, to which patches are exact.
type diffWriter struct {
	out   *bufio.Writer
	color bool
	exact bool
	width int
}

// The colors, as git has them.
const (
	plainText = ""
	boldText  = "1"
	redText   = "31"
	greenText = "32"
	cyanText  = "36"
)

// line writes one line of our own words.
func (w *diffWriter) line(color, text string) { w.write(color, visible.Lines(text)) }

func (w *diffWriter) write(color, text string) {
	if w.color && color != plainText {
		text = "\x1b[" + color + "m" + text + "\x1b[m"
	}
	_, _ = w.out.WriteString(text + "\n") // the error is that of Flush
}

// patch writes the lines of a patch.
func (w *diffWriter) patch(text []byte) {
	inHunks := false
	for line := range bytes.Lines(text) {
		color := boldText
		inHunks = inHunks || bytes.HasPrefix(line, []byte("@@"))
		if inHunks {
			color = map[byte]string{'+': greenText, '-': redText, '@': cyanText}[line[0]]
		}
		text := strings.TrimSuffix(string(line), "\n")
		if w.exact {
			w.write(color, text)
		} else {
			w.line(color, text)
		}
	}
}

// print prints each file that is not identical.
func (d *rootDiff) print(ctx context.Context, w *diffWriter) error {
	show := map[diffForm]func(context.Context, *diffWriter) error{
		formList: d.printList, formUnified: d.printList, formStat: d.printStat, formNames: d.printNames,
	}[d.form]
	return errors.Join(show(ctx, w), w.out.Flush())
}

// classColors are the colors of the classes that are listed.
var classColors = map[class]string{classCreate: greenText, classConflict: boldText, classBlocked: redText, classReplace: boldText, classRemove: redText, classDiverged: redText}

func (d *rootDiff) printList(ctx context.Context, w *diffWriter) error {
	for i := range d.files {
		h := &d.files[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		w.line(classColors[h.class], h.line())
		if d.form != formUnified || !h.hasLines() {
			continue
		}
		text, why, err := d.patch(h)
		if err != nil {
			return err
		}
		if why != "" {
			w.line(plainText, "no lines are shown: "+why)
		}
		w.patch(text)
		if err := w.out.Flush(); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("DIFFERS %s %d of %d files: %d create, %d conflict, %d blocked", preview.SourceID(d.look.plan),
		len(d.files), d.total, d.counts[classCreate], d.counts[classConflict], d.counts[classBlocked])
	if d.look.plan.IsChangeSet() {
		text += fmt.Sprintf(", %d replace, %d remove, %d diverged", d.counts[classReplace], d.counts[classRemove], d.counts[classDiverged])
	}
	w.line(plainText, text)
	return nil
}

// printNames prints a letter and the name: A for what is not there, M for another content, D for
// what is removed, U for what has diverged, T for what is no regular file, B for what is blocked.
func (d *rootDiff) printNames(_ context.Context, w *diffWriter) error {
	for i := range d.files {
		h := &d.files[i]
		letter, color := "M", boldText
		switch {
		case h.class == classCreate:
			letter, color = "A", greenText
		case h.class == classRemove:
			letter, color = "D", redText
		case h.class == classDiverged:
			letter, color = "U", redText
		case h.class == classBlocked:
			letter, color = "B", redText
		case h.there.Refused != nil:
			letter, color = "T", redText
		}
		w.line(color, letter+"\t"+shownPath(h.Path))
	}
	return nil
}

// hasLines reports whether a file can be shown as a patch: nothing stands there, or a
// regular file.
func (h *heldAgainst) hasLines() bool {
	return h.class == classCreate || h.there.Refused == nil || h.class == classDiverged && !h.removed
}

// patch is the difference line by line, or why there is none.
func (d *rootDiff) patch(h *heldAgainst) (text []byte, why string, err error) {
	if h.Size > maxUnified || h.there.Size > maxUnified {
		return nil, "too large, the limit is " + bytesText(maxUnified), nil
	}
	var young, old *patch.Version
	if !h.removed {
		young = &patch.Version{Mode: h.Mode}
		if young.Content, err = contentOf(h.File); err != nil {
			return nil, "", err
		}
	}
	if h.there.Refused == nil {
		if old, err = d.versionThere(h); err != nil {
			return nil, "", d.unreadable(err)
		}
		if sha256.Sum256(old.Content) != h.there.Digest {
			return nil, "what is there has just changed", nil
		}
	}
	if young != nil && !patch.IsText(young.Content) || old != nil && !patch.IsText(old.Content) {
		return nil, "it is no text", nil
	}
	return patch.Text(h.Path, old, young), "", nil
}

// versionThere is what stands in the restore root, as far as it would be shown.
func (d *rootDiff) versionThere(h *heldAgainst) (*patch.Version, error) {
	f, st, err := standing.Open(d.root, h.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxUnified+1))
	return &patch.Version{Mode: st.Mode, Content: content}, err
}
