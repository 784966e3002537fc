package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/standing"
)

// maxUnified is the size of the largest file whose lines are compared.
const maxUnified = 1 << 20

// class is how a file of a candidate stands to a restore root, in the words of a
// preview.
type class string

const (
	classCreate    class = "create"
	classIdentical class = "identical"
	classConflict  class = "conflict"
	classBlocked   class = "blocked"
)

// rootDiff is what a restore of a candidate would find in a restore root.
type rootDiff struct {
	look     *look
	root     *pathsafe.Dir
	rootPath string

	files  []heldAgainst // those that are not identical, in path order
	counts map[class]int // of all
}

// heldAgainst is a file of a candidate held against what stands in the root.
type heldAgainst struct {
	fusefs.File
	path     pathsafe.Path
	class    class
	there    standing.File
	obstacle standing.Obstacle // unless there is a regular file
}

func (d *rootDiff) compare(ctx context.Context) error {
	paths := make([]pathsafe.Path, len(d.look.files))
	for i, f := range d.look.files {
		var err error
		if paths[i], err = pathsafe.Parse(f.Path); err != nil {
			return err
		}
	}
	bar := d.look.app.newBar("comparing")
	defer bar.done()
	bar.begin("comparing", len(paths), unknown)
	there, err := standing.Read(ctx, d.root, paths, bar.add)
	if err != nil {
		return d.unreadable(err)
	}
	d.counts = map[class]int{classCreate: 0, classIdentical: 0, classConflict: 0, classBlocked: 0}
	for i, f := range d.look.files {
		h := heldAgainst{File: f, path: paths[i], there: there[i]}
		if err := h.classify(d.root); err != nil {
			return d.unreadable(err)
		}
		d.counts[h.class]++
		if h.class != classIdentical {
			d.files = append(d.files, h)
		}
	}
	return nil
}

func (d *rootDiff) unreadable(err error) error {
	return unreadable(fmt.Errorf("restore root %q: %w", d.rootPath, err), "diff has to read what is there")
}

func (h *heldAgainst) classify(root *pathsafe.Dir) (err error) {
	if h.there.Refused == nil {
		h.class = classConflict
		if h.digest() == sha256Of(h.File) {
			h.class = classIdentical
		}
		return nil
	}
	h.obstacle, err = standing.Find(root, h.path)
	switch h.obstacle.Path {
	case "":
		h.class = classCreate
	case h.Path:
		h.class = classConflict
	default:
		h.class = classBlocked
	}
	return err
}

// digest is that of the regular file that is there, in hex.
func (h *heldAgainst) digest() string { return hex.EncodeToString(h.there.Digest[:]) }

// line is one line for people and scripts.
func (h *heldAgainst) line() string {
	line := fmt.Sprintf("%s %q %d bytes %s", h.class, h.Path, h.Size, sha256Of(h.File))
	switch {
	case h.there.Refused == nil:
		line += fmt.Sprintf(", there: %d bytes %s", h.there.Size, h.digest())
	case h.class == classConflict:
		line += ", there: " + h.obstacle.Kind
	case h.class == classBlocked:
		line += fmt.Sprintf(", in the way: %q, %s", h.obstacle.Path, h.obstacle.Kind)
	}
	return oneLine(line)
}

// record is the same for programs.
func (h *heldAgainst) record() map[string]any {
	r := map[string]any{"bytes": h.Size, "class": string(h.class), "path": jsonText(h.Path), "sha256": sha256Of(h.File), "there": nil}
	switch {
	case h.there.Refused == nil:
		r["there"] = map[string]any{"bytes": h.there.Size, "kind": "a regular file", "path": jsonText(h.Path), "sha256": h.digest()}
	case h.obstacle.Path != "":
		r["there"] = map[string]any{"kind": h.obstacle.Kind, "path": jsonText(h.obstacle.Path)}
	}
	return r
}

// print prints a line for each file that is not identical; with unified, the lines
// of text files too.
func (d *rootDiff) print(ctx context.Context, unified bool) error {
	var failed error
	err := d.look.app.writeLines(func(yield func(string) bool) {
		for i := range d.files {
			h := &d.files[i]
			if failed = ctx.Err(); failed != nil || !yield(h.line()) {
				return
			}
			if !unified || h.class != classConflict || h.there.Refused != nil {
				continue
			}
			var text string
			if text, failed = d.unified(h); failed != nil || !yield(text) {
				return
			}
		}
		yield(fmt.Sprintf("DIFFERS %s %d of %d files: %d create, %d conflict, %d blocked", preview.SourceID(d.look.plan),
			len(d.files), len(d.look.files), d.counts[classCreate], d.counts[classConflict], d.counts[classBlocked]))
	})
	if failed != nil {
		return failed
	}
	return err
}

// unified is the difference line by line, or a line that says why there is none.
func (d *rootDiff) unified(h *heldAgainst) (string, error) {
	const none = "no lines are shown: "
	if h.Size > maxUnified || h.there.Size > maxUnified {
		return none + "too large, the limit is " + bytesText(maxUnified), nil
	}
	young, err := contentOf(h.File)
	if err != nil {
		return "", err
	}
	old, err := d.contentThere(h)
	switch {
	case err != nil:
		return "", d.unreadable(err)
	case sha256.Sum256(old) != h.there.Digest:
		return none + "what is there has just changed", nil
	case !isText(old) || !isText(young):
		return none + "it is no text", nil
	}
	name := shownPath(h.Path)
	return strings.TrimSuffix(string(diff.Diff("current/"+name, old, "candidate/"+name, young)), "\n"), nil
}

// contentThere is what stands in the restore root, as far as it would be shown.
func (d *rootDiff) contentThere(h *heldAgainst) ([]byte, error) {
	f, _, err := standing.Open(d.root, h.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxUnified+1))
}

// isText says whether lines can be shown: what moves a cursor is no text.
func isText(content []byte) bool {
	lines := bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	return utf8.Valid(lines) && !bytes.ContainsFunc(lines, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n'
	})
}

// verdict is the result, or, where there is a difference, the error.
func (d *rootDiff) verdict() error {
	source, total := preview.SourceID(d.look.plan), len(d.look.files)
	fields := map[string]any{"candidate": source, "counts": d.counts, "restore_root": jsonText(d.rootPath), "total": total}
	if len(d.files) == 0 {
		return d.look.app.result(fmt.Sprintf("OK %s %s", source, numberOf(total, "file")), map[string]any{"code": "OK", "details": fields, "ok": true})
	}
	records := make([]any, 0, len(d.files))
	for i := range d.files {
		records = append(records, d.files[i].record())
	}
	fields["files"] = records
	return rootDiffers(len(d.files), total, d.rootPath, fields)
}

func rootDiffers(differing, total int, root string, details map[string]any) error {
	return &codedError{
		code: codeDiffers, details: details,
		err:  fmt.Errorf("%d of %d files are not in %q as a restore would put them there", differing, total, root),
		hint: "\"spectrum preview --restore-root DIR RUN_DIR...\" says what a restore would do",
	}
}
