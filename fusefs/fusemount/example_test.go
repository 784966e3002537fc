package fusemount_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
)

// memory is a Content whose bytes need no check: no other code can change them.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// A view of two files is mounted, looked at by another process, and removed.
func Example() {
	tree, err := fusefs.NewTree(func(yield func(fusefs.File) bool) {
		for _, path := range []string{"docs/readme.txt", "docs/index.txt"} {
			data := []byte("this is " + path + "\n")
			file := fusefs.File{
				Path:    path,
				Size:    int64(len(data)),
				Mode:    0o644, // shown as 0444
				ModTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Source:  fusefs.SourceFunc(func() (fusefs.Content, error) { return memory{bytes.NewReader(data)}, nil }),
			}
			if !yield(file) {
				return
			}
		}
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	mountpoint, err := os.MkdirTemp("", "view")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(mountpoint)
	view, err := fusemount.Mount(tree, mountpoint, fusemount.Options{Source: "example"})
	if err != nil {
		log.Fatal(err)
	}

	look := exec.Command("sh", "-c", "find docs -type f -printf '%M %f %s\\n'; cat docs/readme.txt; rm -f docs/readme.txt 2>/dev/null || echo read-only")
	look.Dir, look.Env = mountpoint, []string{"LC_ALL=C"}
	seen, err := look.CombinedOutput()
	fmt.Printf("%s%v\n", seen, err)
	fmt.Println(view.Unmount(context.Background(), 5*time.Second))
	// Output:
	// -r--r--r-- index.txt 23
	// -r--r--r-- readme.txt 24
	// this is docs/readme.txt
	// read-only
	// <nil>
	// <nil>
}
