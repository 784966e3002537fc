package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// maxUnified is the size of the largest file whose lines are compared.
const maxUnified = 1 << 20

// noRoom is why a patch lacks the lines of a file.
const noRoom = "the patch of a view has reached its limit; \"spectrum diff\" shows them"

// section is what a patch has of one file, or at its end of all. Comments are lines, each with a #,
// which programs that apply patches skip.
type section struct {
	class    class
	comments []string
	text     []byte // empty where the file is only named
}

// patchForm is what a patch has: bytes up to a limit, and hashes in its comments.
type patchForm struct {
	room   int
	hashes bool
}

// eachSection makes a patch from the restore root to the candidate, file by file. From the first
// file that exceeds the limit, files are only named.
func (d *rootDiff) eachSection(ctx context.Context, form patchForm, yield func(section) error) error {
	if len(d.files) == 0 {
		return nil
	}
	d.parents = map[string]string{}
	shared, err := d.shared()
	if err != nil {
		return err
	}
	without := 0
	for i := range d.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := &d.files[i]
		s, why, third := section{class: h.class}, "", []string(nil)
		switch {
		case h.Path == restore.ManifestName || h.Path == restore.ReportName:
			why = "only a commit writes it"
		case !h.hasLines():
		case shared[h.Path]:
			why = "a symbolic link resolves another file of the candidate to the same path"
		case form.room <= 0:
			why = noRoom
		default:
			if s.text, why, err = d.patch(h); err != nil {
				return err
			}
			if why == oddText {
				s.text, third = nil, commented(s.text)
			}
			if h.class == classDiverged && len(s.text) > 0 {
				third = d.sinceBase(h)
			}
			if form.room -= len(s.text) + len(h.line(form.hashes)) + len(strings.Join(third, "\n")); form.room < 0 {
				s.text, third, why = nil, nil, noRoom
			}
		}
		comment := "# " + h.line(form.hashes)
		if why == oddText {
			comment += "; " + why + ":"
		} else if why != "" {
			comment += "; no lines: " + why
		}
		s.comments = append([]string{comment}, third...)
		if n := hiddenLines(s.text); n > 0 {
			s.comments = append(s.comments, fmt.Sprintf("# characters that cannot be seen are in %s below", numberOf(n, "line")))
		} else if len(s.text) == 0 {
			without++
		}
		if err := yield(s); err != nil {
			return err
		}
	}
	end := section{comments: []string{"# " + d.summary(form.hashes)}}
	if without > 0 {
		end.comments = append(end.comments, fmt.Sprintf("# %s of these files %s only listed: the patch does not change them", number(without), areOf(without)))
	}
	return yield(end)
}

// sinceBase is the third side of a file that has diverged, as comments: what is in the root against
// what the change set started from, where some snapshot has that.
func (d *rootDiff) sinceBase(h *heldAgainst) (comments []string) {
	for _, run := range d.plan.Parts() {
		was, exists := run.Changes.Base(h.Path)
		if !exists || d.store == "" {
			return nil
		}
		base, err := snapshot.Peek(d.store, snapshot.Digest(was), maxUnified)
		if err != nil || !patch.IsText(base) {
			return nil
		}
		var there *patch.Version
		if h.there.Refused == nil {
			if there, err = d.versionThere(h); err != nil || sha256.Sum256(there.Content) != h.there.Digest {
				return nil
			}
			there.Mode = 0
		}
		comments = append(comments, fmt.Sprintf("# what has changed there since the %s that the change set started from, which a snapshot has:", numberOf(len(base), "byte")))
		for line := range bytes.Lines(patch.Text(h.Path, &patch.Version{Content: base}, there)) {
			comments = append(comments, "#   "+strings.TrimSuffix(string(line), "\n"))
		}
	}
	return comments
}

// hiddenLines is how many lines of a patch have characters that a reader cannot see.
func hiddenLines(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		shown := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if visible.Lines(shown) != shown {
			n++
		}
	}
	return n
}

// hasLines reports whether a file can be shown as a patch: its entry is absent, or a regular file.
func (h *heldAgainst) hasLines() bool {
	return h.class == classCreate || h.there.Refused == nil || h.class == classDiverged && !h.removed
}

// commented returns the lines of a patch as comments, with escapes.
func commented(text []byte) (comments []string) {
	for line := range bytes.Lines(text) {
		comments = append(comments, "#   "+visible.Lines(strings.TrimSuffix(string(line), "\n")))
	}
	return comments
}

// oddText is why a text is shown with escapes only, and not as a patch.
const oddText = "control characters or bytes that are not UTF-8 are shown with escapes"

// patch is the difference line by line, or why there is none. With [oddText] it is of text that has a
// few control characters or bytes that are not UTF-8. It must be shown with escapes: raw it would
// control the terminal, and left out a single byte would hide what a script does.
func (d *rootDiff) patch(h *heldAgainst) (text []byte, why string, err error) {
	name, err := d.resolve(h.path)
	switch {
	case errors.Is(err, pathsafe.ErrMoved):
		return nil, "what is there has just changed", nil
	case err != nil:
		return nil, "", d.unreadable(err)
	case patch.IsGits(name):
		return nil, "git applies no patch beneath .git", nil
	case h.modeOnly:
		return patch.Text(name, patch.OfMode(h.there.Executable), patch.OfMode(!h.there.Executable)), "", nil
	case h.Size > maxUnified || h.there.Size > maxUnified:
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
		old, err = d.versionThere(h)
		if errors.Is(err, fs.ErrNotExist) || err == nil && sha256.Sum256(old.Content) != h.there.Digest {
			return nil, "what is there has just changed", nil
		}
		if err != nil {
			return nil, "", d.unreadable(err)
		}
	}
	is := func(what func([]byte) bool) bool {
		return (young == nil || what(young.Content)) && (old == nil || what(old.Content))
	}
	switch {
	case is(patch.IsText):
		return patch.Text(name, old, young), "", nil
	case is(visible.IsMostlyText):
		return patch.Text(name, old, young), oddText, nil
	default:
		return nil, "it is not text", nil
	}
}

// versionThere is the existing file in the restore root, as far as it would be shown.
func (d *rootDiff) versionThere(h *heldAgainst) (*patch.Version, error) {
	f, st, err := existing.Open(d.root, h.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxUnified+1))
	return &patch.Version{Mode: st.Mode, Content: content}, err
}

// resolve is the path beneath the root that a path leads to, by links on the way: programs
// that apply patches follow none.
func (d *rootDiff) resolve(p pathsafe.Path) (string, error) {
	names := p.Components()
	last := len(names) - 1
	if last == 0 {
		return p.String(), nil
	}
	above := strings.Join(names[:last], "/")
	real, known := d.parents[above]
	if !known {
		var err error
		if real, err = d.resolveParent(p, above); err != nil {
			return "", err
		}
		if d.parents != nil {
			d.parents[above] = real
		}
	}
	return strings.TrimPrefix(real+"/"+p.Base(), "/"), nil
}

// resolveParent is what the directory of p, above, is beneath the root: that of its parents that
// exist, and after it the others.
func (d *rootDiff) resolveParent(p pathsafe.Path, above string) (string, error) {
	plain, err := pathsafe.Parse(above)
	if err != nil {
		return "", err
	}
	if _, err := d.root.StatPath(plain, pathsafe.NoLinks); err == nil {
		return above, nil
	}
	names := p.Components()
	for n := len(names) - 1; n > 0; n-- {
		dir, err := d.root.OpenParent(p, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		defer dir.Close()
		root, err := d.root.RealPath()
		if err != nil {
			return "", err
		}
		real, err := dir.RealPath()
		if err != nil {
			return "", err
		}
		real, beneath := strings.CutPrefix(real+"/", strings.TrimSuffix(root, "/")+"/")
		if !beneath {
			return "", fmt.Errorf("%q: %w", above, pathsafe.ErrMoved)
		}
		return strings.TrimSuffix(real+strings.Join(names[n:len(names)-1], "/"), "/"), nil
	}
	return above, nil
}

// shared are the files that links lead to the place of another file, or to beneath one.
func (d *rootDiff) shared() (map[string]bool, error) {
	of := map[string]*heldAgainst{}
	shared := map[string]bool{}
	meet := func(a, b *heldAgainst) { shared[a.Path], shared[b.Path] = true, true }
	names := make([]string, len(d.files))
	for i := range d.files {
		h := &d.files[i]
		if !h.hasLines() {
			continue
		}
		name, err := d.resolve(h.path)
		if errors.Is(err, pathsafe.ErrMoved) {
			continue // as is found again when its lines are made
		}
		if err != nil {
			return nil, d.unreadable(err)
		}
		if other := of[name]; other != nil {
			meet(h, other)
		}
		names[i], of[name] = name, h
	}
	for i, name := range names {
		for at := strings.LastIndexByte(name, '/'); at > 0; at = strings.LastIndexByte(name[:at], '/') {
			if other := of[name[:at]]; other != nil {
				meet(&d.files[i], other)
			}
		}
	}
	return shared, nil
}
