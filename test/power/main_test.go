package power

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) {
	os.Exit(harness.Main(m))
}

// A commit has so many runs of so many files.
type commit struct {
	name       string
	runs, size int
	syncfs     bool // it is too large to be synced file by file
}

var (
	single  = commit{"single", 1, 6, false}
	large   = commit{"single by syncfs", 1, 24, true}
	commits = []commit{single, large, {"chain", 2, 1, false}, {"chain by syncfs", 3, 8, true}}
)

// project signs the runs: a file of the root itself, and files in directories
// that are new as a whole or exist already, of no bytes, a few and several
// blocks.
func (c commit) project(t testing.TB) *harness.Project {
	t.Helper()
	var runs []harness.Files
	for r := range c.runs {
		files := harness.Files{fmt.Sprintf("top%d", r): "directly in the root"}
		for i := range c.size {
			dir := [...]string{"new/deep/er", "out", "new", "out/deep", "out/new"}[i%5]
			text := []byte(fmt.Sprintf("run %d file %d ", r, i))
			files[fmt.Sprintf("%s/f%d-%02d", dir, r, i)] = string(bytes.Repeat(text, i*i*11))
		}
		runs = append(runs, files)
	}
	return harness.New(t, runs...)
}
