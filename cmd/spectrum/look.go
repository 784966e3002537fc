package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spf13/cobra"
)

// A look is at a candidate as its view shows it, without a mount: the same plan,
// the same files, and the same checked way to read them.
type look struct {
	app       *app
	candidate *candidate
	typed     []string // how its run directories were named
	scene     *view.Scene
	lazy      *view.Lazy       // if the outputs are checked as they are read; nil if they were verified
	bundles   []*verify.Bundle // if they were
	files     []fusefs.File    // in path order
}

// addLazy adds the flag that has outputs checked as they are read.
func addLazy(cmd *cobra.Command, lazy *bool) {
	cmd.Flags().BoolVar(lazy, "lazy", false, "verify only the signature first, and check each block when it is read")
}

// lookInto opens a candidate and verifies it as a mount does. The caller closes
// the look.
func (a *app) lookInto(cmd *cobra.Command, runDirs []string, chain, lazy bool) (*look, error) {
	if len(runDirs) == 0 && !chain {
		return nil, withoutRuns(usage(cmd, "no run directory was given"))
	}
	c, err := a.openToLook(cmd, runDirs, chain, lazy)
	if err != nil {
		return nil, err
	}
	c.reread = !lazy
	l := &look{app: a, candidate: c, typed: runDirs}
	if err := l.verify(cmd.Context(), lazy); err != nil {
		c.close()
		return nil, err
	}
	if c.ranges != nil {
		context.AfterFunc(cmd.Context(), func() { _ = c.ranges.Close() }) // a reader waits for no server any more
	}
	a.sayRenamed(l.scene.Bundles())
	return l, nil
}

func (l *look) verify(ctx context.Context, lazy bool) (err error) {
	if lazy {
		if l.lazy, err = l.app.attestForView(ctx, l.candidate); err != nil {
			return err
		}
		l.scene, l.files = l.lazy.Scene(), slices.SortedFunc(l.lazy.Files(), byPath)
		return nil
	}
	plan, err := l.app.planForView(ctx, l.candidate)
	if err != nil {
		return err
	}
	l.scene, l.files = view.SceneOf(plan), slices.SortedFunc(view.Files(plan), byPath)
	for run := range plan.Runs() {
		l.bundles = append(l.bundles, run.Bundle())
	}
	return nil
}

// saySigned prints the signers of the runs.
func (l *look) saySigned() {
	if l.lazy == nil {
		l.app.saySigned(l.bundles)
		return
	}
	for b := range l.scene.Bundles() {
		l.app.sayRun(b, "attested")
	}
}

// sayChecked prints how much of a candidate was checked, if that is not all.
func (l *look) sayChecked() {
	if l.lazy != nil {
		l.app.say("%s", l.lazy.State())
	}
}

func (l *look) close() { l.candidate.close() }

// at are the files at a path of the view, which is a file or a directory.
func (l *look) at(path string) ([]fusefs.File, error) {
	lists := fmt.Sprintf("\"%s\" lists the paths of the candidate", l.app.commandLine(append([]string{"ls"}, l.typed...)...))
	if _, err := pathsafe.Parse(path); err != nil {
		return nil, refusedHint(err, lists)
	}
	if n, found := l.index(path); found {
		return l.files[n : n+1], nil
	}
	begin, _ := l.index(path + "/")
	end, _ := l.index(path + "0") // the byte after the slash
	if begin == end {
		return nil, refusedHint(fmt.Errorf("%q is not in the candidate", path), lists)
	}
	return l.files[begin:end], nil
}

func (l *look) index(path string) (int, bool) {
	return slices.BinarySearchFunc(l.files, path, func(f fusefs.File, path string) int { return strings.Compare(f.Path, path) })
}

// splitPaths separates run directories from paths, which follow them after a "--". A "--" in front
// of all arguments has its usual meaning, and separates nothing.
func splitPaths(cmd *cobra.Command, args []string) (runDirs, paths []string, parted bool) {
	if at := cmd.ArgsLenAtDash(); at > 0 {
		return args[:at], args[at:], true
	}
	return args, nil, false
}

// spoiled is what a file is that is not what was signed, or cannot be read.
func spoiled(path string, err error) error {
	return unreadable(&fusefs.SourceError{Path: path, Err: err}, "\"spectrum verify RUN_DIR...\" shows the current state")
}

// unreadable is what could not be read, with the next step where that is not the machine's fault.
func unreadable(err error, hint string) error { return hinted(err, readHint(err, hint)) }

// sha256Of is the signed SHA-256 of a file, in hex; of a result artifact, that of
// what would be written. A file that is removed has none: it is "".
func sha256Of(f fusefs.File) string {
	if f.Source == nil {
		return ""
	}
	for _, x := range f.Source.XAttrs() {
		if x.Name == view.SHA256Attr {
			return x.Value
		}
	}
	return ""
}

// shownPath is a path that cannot be taken for anything else in a list: as it is,
// or quoted when it has a character that is not printed, or begins with a quote.
func shownPath(path string) string {
	if strings.HasPrefix(path, `"`) || oneLine(path) != path {
		return visible.Quote(path)
	}
	return path
}

// writeLines writes a result line by line, with an escape for what cannot be seen.
func (a *app) writeLines(lines iter.Seq[string]) error {
	out := bufio.NewWriter(a.stdout)
	for line := range lines {
		if _, err := out.WriteString(visible.Lines(line) + "\n"); err != nil {
			return err
		}
	}
	return out.Flush()
}

// unlessGone returns the error of a command whose reader may end early, as "head" does; that is not
// an error.
func unlessGone(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) && failed.Op == "write" && errors.Is(failed.Err, syscall.EPIPE) {
		return nil
	}
	return err
}

// whileReading runs a function that reads a candidate.
func (l *look) whileReading(ctx context.Context, do func() error) error {
	_, err := examine(ctx, l.candidate, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// viewMode is the mode that a view shows of a file.
func viewMode(f fusefs.File) fs.FileMode { return f.Mode &^ 0o222 }
