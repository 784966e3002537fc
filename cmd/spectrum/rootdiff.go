package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// class is the state of a file in the restore root, in the words of a preview.
type class string

const (
	classCreate    class = "create"
	classIdentical class = "identical"
	classConflict  class = "conflict"
	classBlocked   class = "blocked"

	// Those of a change set.
	classReplace  class = "replace"
	classRemove   class = "remove"
	classDiverged class = "diverged"
)

// rootDiff is what a restore of a candidate would find in a restore root.
type rootDiff struct {
	plan      *view.Scene
	candidate []fusefs.File // all of it, in path order
	root      *pathsafe.Dir
	rootPath  string // without links
	form      diffForm
	previews  string // the command that previews the same
	store     string // of snapshots, which may not exist; "" for none

	files  []heldAgainst // those that are not identical, in path order
	total  int           // how many were compared
	counts map[class]int // of all

	parents map[string]string // directories of files, and where they are; nil: not kept, see resolve
}

// heldAgainst is a file of a candidate compared with its entry in the root.
type heldAgainst struct {
	fusefs.File
	path     pathsafe.Path
	class    class
	removed  bool // the candidate removes it; then the File has nothing but its path
	modeOnly bool // of a change set: the content is there, with another executable bit
	there    existing.File
	obstacle existing.Obstacle // unless there is a regular file
}

// names are the files of the candidate and those that it removes, which have nothing but a path, in
// path order.
func (d *rootDiff) names() (all []fusefs.File, paths []pathsafe.Path, err error) {
	all = slices.Clone(d.candidate)
	for _, path := range d.plan.Removes() {
		all = append(all, fusefs.File{Path: path.String()})
	}
	slices.SortStableFunc(all, byPath)
	paths = make([]pathsafe.Path, len(all))
	for i, f := range all {
		if paths[i], err = pathsafe.Parse(f.Path); err != nil {
			return nil, nil, err
		}
	}
	return all, paths, nil
}

// compare holds all files against the root. done is called as that of [existing.Read].
func (d *rootDiff) compare(ctx context.Context, done func(bytes int64)) error {
	all, paths, err := d.names()
	if err != nil {
		return err
	}
	there, err := existing.Read(ctx, d.root, paths, done)
	if err != nil {
		return d.unreadable(err)
	}
	d.counts = map[class]int{classCreate: 0, classIdentical: 0, classConflict: 0, classBlocked: 0}
	if d.plan.IsChangeSet() {
		d.counts[classReplace], d.counts[classRemove], d.counts[classDiverged] = 0, 0, 0
	}
	d.total = len(all)
	for i, f := range all {
		h := heldAgainst{File: f, path: paths[i], there: there[i], removed: f.Source == nil}
		if err := h.classify(d.root); err != nil {
			return d.unreadable(err)
		}
		d.holdAgainstBase(&h)
		d.counts[h.class]++
		if h.class != classIdentical {
			d.files = append(d.files, h)
		}
	}
	return nil
}

func (d *rootDiff) unreadable(err error) error {
	return unreadable(fmt.Errorf("restore root %q: %w", d.rootPath, err), "diff must be able to read the existing files")
}

func (h *heldAgainst) classify(root *pathsafe.Dir) (err error) {
	if h.there.Refused == nil {
		h.class = classConflict
		if h.digest() == sha256Of(h.File) {
			h.class = classIdentical
		}
		return nil
	}
	h.obstacle, err = existing.Find(root, h.path)
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

// holdAgainstBase sets the class of a file of a change set: the root has its base, or something
// else.
func (d *rootDiff) holdAgainstBase(h *heldAgainst) {
	for _, run := range d.plan.Parts() {
		c := run.Changes
		if c == nil || h.Path == restore.ManifestName || h.Path == restore.ReportName {
			return
		}
		was, exists := c.Base(h.Path)
		isFile := h.there.Refused == nil
		switch {
		case h.removed && h.class == classCreate:
			h.class = classIdentical // it was removed already
		case h.class == classIdentical && c.Executable(h.Path) != h.there.Executable:
			h.class, h.modeOnly = classReplace, true // of a mode only this is signed
		case h.class == classIdentical || h.class == classBlocked || !isFile && h.class != classCreate:
		case !isFile && !exists:
		case !isFile || !exists || was != h.there.Digest:
			h.class = classDiverged
		case h.removed:
			h.class = classRemove
		default:
			h.class = classReplace
		}
	}
}

// digest is that of the regular file that is there, in hex.
func (h *heldAgainst) digest() string { return hex.EncodeToString(h.there.Digest[:]) }

// plainBytes is a size as scripts read it, without commas.
func plainBytes(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// line is one line for people and scripts. Without the hashes it mostly fits a terminal.
func (h *heldAgainst) line(hashes bool) string {
	hashed := func(digest string) string {
		if !hashes {
			return ""
		}
		return " " + digest
	}
	line := fmt.Sprintf("%s %q %s%s", h.class, h.Path, plainBytes(h.Size), hashed(sha256Of(h.File)))
	if h.removed {
		line = fmt.Sprintf("%s %q", h.class, h.Path)
	}
	switch {
	case h.there.Refused == nil:
		line += fmt.Sprintf(", there: %s%s", plainBytes(h.there.Size), hashed(h.digest()))
		if h.modeOnly {
			line += ", only the executable bit differs"
		}
	case h.class == classDiverged:
		line += ", nothing is there"
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

// verdict is the result, or, where there is a difference, the error.
func (d *rootDiff) verdict(a *app) error {
	source, total := d.plan.SourceID(), d.total
	fields := map[string]any{"candidate": source, "counts": d.counts, "restore_root": jsonText(d.rootPath), "total": total}
	if len(d.files) == 0 {
		text := fmt.Sprintf("OK %s %s", source, numberOf(total, "file"))
		if d.form == formNames || d.form == formPatch && !onTerminal(a.stdout) {
			text = "" // as git has it, and no line of a patch
		}
		return a.result(text, map[string]any{"code": "OK", "details": fields, "ok": true})
	}
	records := make([]any, 0, len(d.files))
	for i := range d.files {
		records = append(records, d.files[i].record())
	}
	fields["files"] = records
	return rootDiffers(d, len(d.files), d.leftOut(a.secrets()), fields)
}

// leftOut names the files among the differences that a preview proposes only on request: they are
// absent on purpose.
func (d *rootDiff) leftOut(secrets privacy.Rules) (names []string) {
	left := preview.LeftOut(d.plan.Scoped(), secrets)
	for _, f := range d.files {
		if _, is := left[f.Path]; is && f.class == classCreate {
			names = append(names, f.Path)
		}
	}
	return names
}

// snapshotsPath is where the store of snapshots is, which is not made; "" without a home.
func (a *app) snapshotsPath() string {
	state, err := a.statePath()
	if err == nil {
		state, err = filepath.Abs(state)
	}
	if err != nil {
		return ""
	}
	return filepath.Join(state, "snapshots")
}

// secrets are the names that may hold a secret, as a preview has them.
func (a *app) secrets() privacy.Rules {
	state, err := a.statePath()
	if err != nil { // without a home it has no lists either
		state = trust.System
	}
	secrets, err := privacy.Load(state, trust.System)
	if err != nil { // a preview names what is wrong with a list
		return privacy.Builtin()
	}
	return secrets
}

// areOf returns the verb for a number of files.
func areOf(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// differOf returns the verb for a number of files.
func differOf(n int) string {
	if n == 1 {
		return "differs"
	}
	return "differ"
}

// rootDiffers is the error of a root that is not as the candidate, in which a preview leaves the
// named files out.
func rootDiffers(d *rootDiff, differing int, leftOut []string, details map[string]any) error {
	text := fmt.Sprintf("%s in %q %s from what a restore would write", words.Of(differing, d.total, "file"), d.rootPath, differOf(differing))
	if len(leftOut) > 0 {
		text += fmt.Sprintf("; of these a preview leaves out, until --scope asks for them: %s", words.List(leftOut))
	}
	return &codedError{
		code: codeDiffers, details: details,
		err:  errors.New(text),
		hint: "\"" + d.previews + "\" shows what a restore would do",
	}
}
