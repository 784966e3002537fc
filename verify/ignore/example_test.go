package ignore_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// A file names the logs but one, and the caller what is built.
func Example() {
	top, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(top) }()
	if err := os.WriteFile(filepath.Join(top, ignore.File), []byte("*.log\n!keep.log\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	root, err := pathsafe.OpenRoot(top)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()
	rules, err := ignore.New(root, []string{"/build/"})
	if err != nil {
		log.Fatal(err)
	}
	for _, file := range []struct {
		path  string
		isDir bool
	}{{"a.log", false}, {"d/keep.log", false}, {"build", true}, {"d/build", true}} {
		why, err := rules.Match(file.path, file.isDir)
		fmt.Printf("%s %q %v\n", file.path, why, err)
	}
	// Output:
	// a.log "file" <nil>
	// d/keep.log "" <nil>
	// build "given" <nil>
	// d/build "" <nil>
}
