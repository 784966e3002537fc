package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/visible"
)

// diffForm is what is printed of each file.
type diffForm int

const (
	formPatch diffForm = iota // the lines of text files, as a patch
	formList                  // a line
	formStat                  // how many lines were added and removed
	formNames                 // a letter and the name
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
		formPatch: d.printPatch, formList: d.printList, formStat: d.printStat, formNames: d.printNames,
	}[d.form]
	return errors.Join(show(ctx, w), w.out.Flush())
}

// classColors are the colors of the classes that are listed.
var classColors = map[class]string{classCreate: greenText, classConflict: boldText, classBlocked: redText, classReplace: boldText, classRemove: redText, classDiverged: redText}

func (d *rootDiff) printList(_ context.Context, w *diffWriter) error {
	for i := range d.files {
		w.line(classColors[d.files[i].class], d.files[i].line(true))
	}
	w.line(plainText, d.summary(true))
	return nil
}

// summary is one line about all files.
func (d *rootDiff) summary(hashes bool) string {
	source := d.plan.SourceID()
	if !hashes {
		source = source[:shortest]
	}
	text := fmt.Sprintf("DIFFERS %s %s: %s create, %s conflict, %s blocked", source,
		words.Of(len(d.files), d.total, "file"), number(d.counts[classCreate]), number(d.counts[classConflict]), number(d.counts[classBlocked]))
	if d.plan.IsChangeSet() {
		text += fmt.Sprintf(", %s replace, %s remove, %s diverged", number(d.counts[classReplace]), number(d.counts[classRemove]), number(d.counts[classDiverged]))
	}
	return text
}

// printPatch prints the patch. One that could not be made to its end has an end that no program
// applies.
func (d *rootDiff) printPatch(ctx context.Context, w *diffWriter) error {
	err := d.eachSection(ctx, patchForm{room: math.MaxInt, hashes: w.exact}, func(s section) error {
		for _, comment := range s.comments {
			w.line(classColors[s.class], comment)
		}
		w.patch(s.text)
		return w.out.Flush()
	})
	if err != nil && w.exact {
		w.line(plainText, "# this patch is cut short by an error")
		w.line(plainText, "@@ -1 +1 @@")
	}
	return err
}

// printNames prints a letter and the name: A new, M other content, D removed, U diverged, T not a
// regular file, B blocked.
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
