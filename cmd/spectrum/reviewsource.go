package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// reviewSource reads what a review shows: the files of the candidate, checked, and those in the
// restore root. It reads one at a time, and none once the review has ended.
type reviewSource struct {
	app     *app
	preview *preview.Preview
	diff    rootDiff
	files   []fusefs.File // by number of the item, from 1; of what is removed there is only the path
	created []bool        // by number: nothing was there
	made    *proposal

	mu    sync.Mutex
	ended bool
}

func newReviewSource(a *app, made *proposal, p *preview.Preview, items []report.Item) *reviewSource {
	root := made.restore.Root()
	s := &reviewSource{app: a, preview: p, made: made, diff: rootDiff{plan: view.SceneOf(made.restore.Plan()), root: root, rootPath: root.Name()}, files: make([]fusefs.File, len(items)+1), created: make([]bool, len(items)+1)}
	numbers := make(map[string]int, len(items))
	for _, i := range items {
		numbers[i.Path] = i.Number
		s.files[i.Number].Path, s.created[i.Number] = i.Path, i.Fate == report.Created
	}
	for f := range view.Files(made.restore.Plan()) {
		if n, is := numbers[f.Path]; is { // else it is a result artifact
			s.files[n] = f
		}
	}
	return s
}

// Draft composes the statement for a choice.
func (s *reviewSource) Draft(c preview.Choice) preview.Draft { return s.preview.Draft(c) }

// reading runs what reads the candidate or the restore root.
func (s *reviewSource) reading(ctx context.Context, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return context.Canceled
	}
	_, err := examine(ctx, s.made.candidate, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// end waits for current reads, and stops later ones.
func (s *reviewSource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// Changes returns what "spectrum diff -u" prints of an item, without the comments.
func (s *reviewSource) Changes(ctx context.Context, number int) (text []byte, why string, err error) {
	err = s.reading(ctx, func() (err error) {
		text, why, err = s.changes(ctx, s.files[number], s.created[number])
		return err
	})
	return text, why, err
}

func (s *reviewSource) changes(ctx context.Context, f fusefs.File, created bool) ([]byte, string, error) {
	h := heldAgainst{File: f, removed: f.Source == nil}
	var err error
	if h.path, err = pathsafe.Parse(h.Path); err != nil {
		return nil, "", err
	}
	if st, err := s.diff.root.StatPath(h.path, pathsafe.LinksBeneath); f.Size > maxUnified || err == nil && st.Mode.IsRegular() && st.Size > maxUnified {
		return nil, "too large, the limit is " + bytesText(maxUnified), nil
	}
	there, err := existing.Read(ctx, s.diff.root, []pathsafe.Path{h.path}, nil)
	if err != nil {
		return nil, "", s.diff.unreadable(err)
	}
	h.there = there[0]
	if err := h.classify(s.diff.root); err != nil {
		return nil, "", s.diff.unreadable(err)
	}
	if !s.isAsShown(&h, created) {
		return nil, "what is there has changed since the preview was made: leave, and start the review again", nil
	}
	if h.removed && h.class == classCreate {
		return nil, "it is to be removed, but no longer exists", nil
	}
	s.diff.holdAgainstBase(&h)
	switch {
	case !h.removed && h.class == classIdentical:
		return nil, "the same content is there", nil
	case !h.hasLines():
		return nil, h.line(false), nil
	}
	return s.diff.patch(&h)
}

// isAsShown reports whether what was read at a target is what the preview has found there, if an
// approval would write to it or relies on it.
func (s *reviewSource) isAsShown(h *heldAgainst, created bool) bool {
	if t := s.made.restore.Target(h.Path); t != nil {
		return h.there.Refused == nil && h.there.Digest == t.Digest
	}
	return !created || h.class == classCreate
}

// Page shows the checked content of an item in the operator's pager.
func (s *reviewSource) Page(ctx context.Context, number int) error {
	command := pagerCommand()
	if command == "" {
		return errors.New("there is no pager: set SPECTRUM_PAGER or PAGER, or install less")
	}
	var page bytes.Buffer
	if err := s.reading(ctx, func() error { return writePage(&page, s.files[number]) }); err != nil {
		return err
	}
	shown := *s.app
	shown.stdout = s.app.stderr // where the screen is; stdout has the result only
	err := runPager(command, stayingLess(), &shown, func(to io.Writer) error {
		_, err := to.Write(page.Bytes())
		return err
	})
	const instead = "set SPECTRUM_PAGER or PAGER to another"
	var ended *exec.ExitError
	switch {
	case errors.Is(err, errUnread): // without a pager the text would stay on the terminal
		return fmt.Errorf("the pager %q has read nothing: %s", command, instead)
	case errors.As(err, &ended):
		return fmt.Errorf("the pager %q cannot be started: %s", command, instead)
	}
	return err
}

// stayingLess are the options of a less that does not end by itself where a file fits on the
// screen, since the review would cover it at once, and that leaves no text on the terminal.
func stayingLess() string { return strings.TrimRight("-R "+os.Getenv("LESS"), " ") + " -+F -+E -+X" }

// writePage writes the content of a file as it can be shown: text with escapes, anything else in
// hex, the beginning of it where it is large.
func writePage(page *bytes.Buffer, f fusefs.File) error {
	opened, err := f.Source.Open()
	if err != nil {
		return spoiled(f.Path, err)
	}
	defer opened.Close()
	begin := make([]byte, min(f.Size, maxUnified))
	if _, err := io.ReadFull(io.NewSectionReader(opened, 0, f.Size), begin); err != nil {
		return spoiled(f.Path, err)
	}
	fmt.Fprintf(page, "%s, %s, as it was signed\n\n", visible.Lines(shownPath(f.Path)), bytesText(f.Size))
	if patch.IsText(begin) {
		page.WriteString(visible.Lines(string(begin)))
	} else {
		page.WriteString(hex.Dump(begin))
	}
	if f.Size > maxUnified {
		fmt.Fprintf(page, "\nonly the first %s are shown; \"spectrum cat\" writes all of it\n", bytesText(maxUnified))
	}
	return nil
}
