package limits

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// A project is a directory with runs, a state directory and a restore root
// beside it.
type project struct{ dir, state, root string }

func newProject(t testing.TB) *project {
	t.Helper()
	top := harness.MemoryDir(t)
	p := &project{filepath.Join(top, "project"), filepath.Join(top, "state"), filepath.Join(top, "root")}
	harness.Must(t, os.MkdirAll(filepath.Join(p.dir, "CONTRACTS/_runs"), 0o755))
	harness.Must(t, os.Mkdir(p.state, 0o700))
	harness.Must(t, os.Mkdir(p.root, 0o755))
	return p
}

func (p *project) runDir(id string) string { return filepath.Join(p.dir, "CONTRACTS/_runs", id) }

// forge makes a run over these outputs, signed and whole.
func (p *project) forge(t testing.TB, id string, outputs forge.Outputs) string {
	t.Helper()
	harness.Must(t, outputs.Write(p.dir))
	harness.Must(t, forge.New(outputs).Write(p.runDir(id)))
	return p.runDir(id)
}

// A printer writes so much of something, and no more than a little of it is in
// memory at any time.
type printer func(w *bufio.Writer)

// write writes a file and returns its size.
func write(t testing.TB, path string, parts ...printer) int64 {
	t.Helper()
	f, err := os.Create(path)
	harness.Must(t, err)
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, part := range parts {
		part(w)
	}
	harness.Must(t, w.Flush())
	info, err := f.Stat()
	harness.Must(t, err)
	return info.Size()
}

func text(s string) printer {
	return func(w *bufio.Writer) { _, _ = w.WriteString(s) }
}

// signed makes a run whose "hashes" has these members, which must be canonical,
// and returns the run directory and the size of OUTPUT_HASHES.json.
func (p *project) signed(t testing.TB, id string, members printer) (dir string, size int64) {
	t.Helper()
	r := forge.New(forge.Outputs{})
	dir = p.runDir(id)
	task := sha256.Sum256(r[forge.TaskSpec])
	h := sha256.New()
	w := bufio.NewWriter(h)
	for _, part := range []printer{text(`{"output_hashes":{`), members, text(`},"status":` + string(r[forge.Status]) + `,"task_spec_hash":"` + hex.EncodeToString(task[:]) + `"}`)} {
		part(w)
	}
	harness.Must(t, w.Flush())
	r.SignRoot(hex.EncodeToString(h.Sum(nil)), forge.Key(1))
	harness.Must(t, r.Write(dir))
	size = write(t, filepath.Join(dir, forge.OutputHashes), text(`{"generated_at":"2026-01-02T03:04:05Z","hashes":{`), members, text(`},"validator_build_id":"git:abc1234","validator_semver":"1.1.0"}`))
	return dir, size
}

// names are so many outputs, in order, that are nowhere.
func names(n int) printer {
	hash := `":"` + forge.Hash("") + `"`
	return func(w *bufio.Writer) {
		for i := range n {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			_, _ = fmt.Fprintf(w, `"%07x`, i)
			_, _ = io.WriteString(w, hash)
		}
	}
}
