package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spf13/cobra"
)

// catBuffer is how much is read and checked at a time: several blocks, so that
// they are checked in parallel.
const catBuffer = 1 << 20

func newCat(app *app) *cobra.Command {
	var chain bool
	cmd := &cobra.Command{
		Use:   "cat [--chain] RUN_DIR... PATH | RUN_DIR... -- PATH...",
		Short: "write files of a candidate to stdout, checked, without a mount",
		Long: `cat verifies the candidate as mount does, and writes files of it to stdout, one
after the other. Each block of 32 KiB is checked against the signed hash again
after it was read, and only then written: at a byte that does not match cat ends
with exit status 1, having written the blocks before it and nothing of that one.

PATH is a file as "spectrum ls" lists it. The last argument is the one that is
wanted; several are named after a "--".

Neither FUSE nor a mount point is needed. Contents are no JSON value: --json is
wrong usage.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, paths, parted := splitPaths(cmd, args)
			if last := len(args) - 1; !parted && last >= 0 {
				runDirs, paths = args[:last], args[last:]
			}
			return unlessGone(runCat(cmd, app, chain, runDirs, paths))
		},
	}
	addChain(cmd, &chain)
	return cmd
}

func runCat(cmd *cobra.Command, app *app, chain bool, runDirs, paths []string) error {
	switch {
	case app.json:
		return usage(cmd, "cat writes contents, which are no JSON value; \"spectrum ls --json\" has the hashes")
	case len(paths) == 0, len(runDirs) == 0 && !chain:
		return usage(cmd, "cat needs a run directory and the path of a file")
	}
	l, err := app.lookInto(cmd, runDirs, chain)
	if err != nil {
		return err
	}
	defer l.close()
	files := make([]fusefs.File, 0, len(paths))
	for _, path := range paths { // all, before anything is written
		f, err := l.file(path)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	return l.whileReading(cmd.Context(), func() error { return app.writeContents(cmd.Context(), files) })
}

// file is the one file at a path.
func (l *look) file(path string) (fusefs.File, error) {
	files, err := l.at(path)
	if err != nil {
		return fusefs.File{}, err
	}
	if files[0].Path != path {
		return fusefs.File{}, refusedHint(fmt.Errorf("%q is a directory", path), fmt.Sprintf("\"spectrum ls RUN_DIR... -- %s\" lists the files in it", shownPath(path)))
	}
	return files[0], nil
}

func (a *app) writeContents(ctx context.Context, files []fusefs.File) error {
	buffer := make([]byte, catBuffer)
	for _, f := range files {
		if err := a.writeContent(ctx, f, buffer); err != nil {
			return err
		}
	}
	return nil
}

// contentOf is the content of a small file, checked.
func contentOf(f fusefs.File) ([]byte, error) {
	content, err := f.Source.Open()
	if err != nil {
		return nil, spoiled(f.Path, err)
	}
	defer content.Close()
	whole := make([]byte, f.Size)
	if _, err := io.ReadFull(io.NewSectionReader(content, 0, f.Size), whole); err != nil {
		return nil, spoiled(f.Path, err)
	}
	return whole, nil
}

// writeContent writes what was checked, also what stands before a block that does
// not match.
func (a *app) writeContent(ctx context.Context, f fusefs.File, buffer []byte) error {
	content, err := f.Source.Open()
	if err != nil {
		return spoiled(f.Path, err)
	}
	defer content.Close()
	checked := io.NewSectionReader(content, 0, f.Size)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := checked.Read(buffer)
		if _, failed := a.stdout.Write(buffer[:n]); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return spoiled(f.Path, err)
		}
	}
}
