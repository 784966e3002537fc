package fusefs_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
)

// memory is a Content whose bytes need no check: nobody else can change them.
type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

// A view of two files, until Ctrl-C.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	view, err := fusefs.Mount(tree, "/mnt/view", fusefs.Options{Source: "example"})
	if err != nil {
		log.Fatal(err)
	}
	select {
	case <-view.Done(): // unmounted from outside
	case <-ctx.Done():
		if err := view.Unmount(context.Background(), 5*time.Second); err != nil {
			log.Fatal(err)
		}
	}
}

// A tree is refused when two of its files cannot both be there.
func ExampleNewTree() {
	_, err := fusefs.NewTree(func(yield func(fusefs.File) bool) {
		empty := fusefs.SourceFunc(func() (fusefs.Content, error) { return memory{bytes.NewReader(nil)}, nil })
		_ = yield(fusefs.File{Path: "a/b", Source: empty}) && yield(fusefs.File{Path: "a", Source: empty})
	}, nil)
	fmt.Println(err)
	// Output: this tree cannot be shown: "a" and "a/b" cannot both be there
}
