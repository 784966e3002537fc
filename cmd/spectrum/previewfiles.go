package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// previewFiles are the files that a preview writes beside what it shows.
type previewFiles struct{ page, report newFile }

// newFile is a file that must not exist yet, in a directory that is open. The zero newFile is
// none.
type newFile struct {
	flag string
	name string
	dir  *pathsafe.Dir
}

// openFiles opens the directories of the requested files, so that a file that cannot be written is
// rejected before anything else is done.
func (o *previewOptions) openFiles(state *statedir.Dir) (files previewFiles, err error) {
	if o.html != "" {
		files.page, err = openNew("--html", "web page", o.html, state, o.restoreRoot)
	}
	if err == nil && o.report != "" && o.report != onStream {
		files.report, err = openNew("--report", "report", o.report, state, o.restoreRoot)
	}
	if err != nil {
		files.close()
	}
	return files, err
}

// openNew opens the directory of a new file. A file that another process creates there later is
// found when this one is written.
func openNew(flag, what, path string, state *statedir.Dir, restoreRoot string) (newFile, error) {
	f := newFile{flag: flag, name: filepath.Base(path)}
	if err := overlap(what, path, []reserved{{"the restore root", restoreRoot}}); err != nil {
		return f, refusedHint(err, "name a file elsewhere: only approved files are written under the restore root")
	}
	if err := overlap(what, path, []reserved{{"the state directory", state.Path()}}); err != nil {
		return f, refusedHint(err, "name a file elsewhere: the state directory is only for files of this program")
	}
	if strings.HasSuffix(path, "/") {
		return f, f.refused(fmt.Errorf("%q names a directory", path))
	}
	dir, err := pathsafe.OpenOwn(filepath.Dir(path))
	if err != nil {
		return f, f.refused(err)
	}
	st, err := dir.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		f.dir = dir
		return f, nil
	}
	switch {
	case err != nil:
	case !st.Mode.IsRegular() && !st.Mode.IsDir():
		err = fmt.Errorf("%q is not a regular file", path)
	default:
		err = fmt.Errorf("%q exists", path)
	}
	return f, errors.Join(f.refused(err), dir.Close())
}

func (f newFile) refused(err error) error {
	return refusedHint(fmt.Errorf("%s: %w", f.flag, err), "name a file that does not exist yet, in a directory that does")
}

// close has no error: nothing is written through the handle of a directory.
func (f previewFiles) close() {
	f.page.close()
	f.report.close()
}

func (f newFile) close() {
	if f.dir != nil {
		_ = f.dir.Close()
	}
}

// write writes the files, each of which appears whole or not at all and replaces none. Who may
// read the page may read all that it shows; the report is the operator's. Approve is the command
// line that approves what is recommended, and free the bytes that are free for it.
func (f previewFiles) write(ctx context.Context, p *preview.Preview, markdown []byte, approve string, free uint64) error {
	if f.page.dir != nil {
		var page bytes.Buffer
		if err := report.Of(p).WritePage(ctx, &page, approve, free); err != nil {
			return err
		}
		if err := f.page.dir.WriteFile(f.page.name, page.Bytes(), uint32(report.Of(p).PagePerm())); err != nil {
			return f.page.refused(err)
		}
	}
	if f.report.dir != nil {
		if err := f.report.dir.WriteFile(f.report.name, markdown, 0o600); err != nil {
			return f.report.refused(err)
		}
	}
	return nil
}
