package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spf13/cobra"
)

// catBuffer is how much is read and checked at a time: several blocks, so that
// they are checked in parallel.
const catBuffer = 1 << 20

func newCat(app *app) *cobra.Command {
	var chain, lazy bool
	cmd := &cobra.Command{
		Use:   "cat [--chain] [--lazy] RUN_DIR... PATH | RUN_DIR... -- PATH...",
		Short: "write verified files of a candidate to stdout, without a mount",
		Long: `cat verifies the candidate as mount does, and writes files of it to stdout, one
after the other. It checks each block of 32 KiB against the signed hash again
before it writes it. If a block does not match, cat stops with exit status 1; it
has then written the blocks before that one, and nothing of it.

PATH is a file as "spectrum ls" lists it. With several files, put them after "--".

With --lazy, cat verifies only the signature first, and reads the blocks of the
signed block table; it reports how much of the candidate it checked. Of a run in
a store it fetches little more than those.

On a terminal, cat escapes characters that are not printable and rejects files
that are not text. Redirect stdout for the exact bytes.

cat requires neither FUSE nor a mount point. It does not accept --json, because
file contents are not JSON.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			runDirs, paths, parted := splitPaths(cmd, args)
			if last := len(args) - 1; !parted && last >= 0 {
				runDirs, paths = args[:last], args[last:]
			}
			return unlessGone(runCat(cmd, app, chain, lazy, runDirs, paths))
		},
	}
	addChain(cmd, &chain)
	addLazy(cmd, &lazy)
	app.addPatience(cmd)
	return cmd
}

func runCat(cmd *cobra.Command, app *app, chain, lazy bool, runDirs, paths []string) error {
	switch {
	case app.json:
		return usage(cmd, "cat has no --json: file contents are not JSON; \"spectrum ls --json\" has the hashes")
	case len(paths) == 0, len(runDirs) == 0 && !chain:
		use := &usageError{command: cmd.CommandPath(), err: errors.New("cat needs a run directory and the path of a file")}
		if len(paths) > 0 { // which is the run directory
			use.next = "the files of it: " + app.commandLine("ls", paths[0])
		}
		return use
	}
	l, err := app.lookInto(cmd, runDirs, chain, lazy)
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
	err = l.whileReading(cmd.Context(), func() error { return app.writeContents(cmd.Context(), files) })
	l.sayChecked()
	return err
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

// writeContent writes checked blocks, up to the first one that does not match.
func (a *app) writeContent(ctx context.Context, f fusefs.File, buffer []byte) error {
	if err := settleFile(ctx, &f); err != nil {
		return err
	}
	content, err := f.Source.Open()
	if err != nil {
		return spoiled(f.Path, err)
	}
	defer content.Close()
	checked := io.NewSectionReader(content, 0, f.Size)
	out := catWriter{to: a.stdout, path: f.Path, shown: onTerminal(a.stdout)}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := checked.Read(buffer)
		if failed := out.write(buffer[:n]); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return out.end()
		case err != nil:
			return spoiled(f.Path, err)
		}
	}
}

// catWriter writes the content of a file: exact, or on a terminal as it can be shown.
type catWriter struct {
	to    io.Writer
	path  string
	shown bool
	split []byte // the beginning of a character whose end was not read yet
}

func (w *catWriter) write(some []byte) error {
	if !w.shown {
		_, err := w.to.Write(some)
		return err
	}
	some = append(w.split, some...)
	whole := len(some)
	for n := 1; n < utf8.UTFMax && n <= len(some); n++ {
		if at := len(some) - n; utf8.RuneStart(some[at]) && !utf8.FullRune(some[at:]) {
			whole = at
		}
	}
	w.split = bytes.Clone(some[whole:])
	return w.show(some[:whole])
}

// end writes what is left of a character that has no end.
func (w *catWriter) end() error { return w.show(w.split) }

func (w *catWriter) show(text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return refusedHint(fmt.Errorf("%q is not text, and stdout is a terminal", w.path), "redirect stdout, as in \"spectrum cat RUN_DIR PATH >FILE\", or pipe it into another program")
	}
	_, err := io.WriteString(w.to, visible.Lines(string(text)))
	return err
}
