package pathsafe_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "pathsafe")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	check(os.MkdirAll(filepath.Join(dir, "out"), 0o755))
	check(os.WriteFile(filepath.Join(dir, "out/report.txt"), []byte("all well\n"), 0o644))
	check(os.Symlink("/etc/passwd", filepath.Join(dir, "out/secret.txt")))

	root, err := pathsafe.OpenRoot(dir)
	check(err)
	defer root.Close()

	for _, s := range []string{"out/report.txt", "out/secret.txt", "out/../report.txt"} {
		p, err := pathsafe.Parse(s)
		if errors.Is(err, pathsafe.ErrTraversal) {
			fmt.Println(s, "is not an output path")
			continue
		}
		f, st, err := root.OpenRegular(p, pathsafe.LinksBeneath)
		if errors.Is(err, pathsafe.ErrEscape) {
			fmt.Println(s, "leads out")
			continue
		}
		check(err)
		content, err := io.ReadAll(f)
		check(errors.Join(err, f.Close()))
		fmt.Printf("%s: %d bytes: %s", s, st.Size, content)
	}
	// Output:
	// out/report.txt: 9 bytes: all well
	// out/secret.txt leads out
	// out/../report.txt is not an output path
}

func ExampleDir_Survey() {
	dir, err := os.MkdirTemp("", "pathsafe")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	check(os.MkdirAll(filepath.Join(dir, "src"), 0o755))

	root, err := pathsafe.OpenRoot(dir)
	check(err)
	defer root.Close()
	for _, s := range []string{"src", "src/gen/a.go", "doc/a.md"} {
		p, err := pathsafe.Parse(s)
		check(err)
		site, err := root.Survey(p)
		fmt.Println(s, site.Exists, site.Missing, err)
	}
	// Output:
	// src true 0 <nil>
	// src/gen/a.go false 1 <nil>
	// doc/a.md false 0 <nil>
}
