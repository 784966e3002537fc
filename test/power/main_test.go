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
	places     int  // so many directories are there before, and get a file each; a file of the root is between two of them
}

var (
	single = commit{name: "single", runs: 1, size: 6}
	large  = commit{name: "single by syncfs", runs: 1, size: 24, syncfs: true}
	// Its files are staged by syncfs, and the directories that they leave are synced
	// one by one.
	spread  = commit{name: "single into many directories", runs: 1, size: 1, syncfs: true, places: 10}
	commits = []commit{
		single, large, {name: "chain", runs: 2, size: 1}, {name: "chain by syncfs", runs: 3, size: 8, syncfs: true}, spread,
	}
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
		for i := range c.places {
			files[fmt.Sprintf("place%02d/f", i)] = fmt.Sprintf("in place %d", i)
			files[fmt.Sprintf("place%02d-top", i)] = "directly in the root"
		}
		runs = append(runs, files)
	}
	p := harness.New(t, runs...)
	for i := range c.places {
		p.Places = append(p.Places, fmt.Sprintf("place%02d", i))
	}
	return p
}
