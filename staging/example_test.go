package staging_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/staging"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "staging")
	check(err)
	defer func() { check(os.RemoveAll(dir)) }()
	source := filepath.Join(dir, "source.txt")
	check(os.WriteFile(source, []byte("hello\n"), 0o600))
	check(os.Mkdir(filepath.Join(dir, "root"), 0o755))

	root, err := pathsafe.OpenRoot(filepath.Join(dir, "root"))
	check(err)
	defer root.Close()
	key := []byte("32 random bytes from a safe place") // it authenticates the journal
	target, _ := pathsafe.Parse("docs/hello.txt")
	report, _ := pathsafe.Parse("REPORT")
	spec := staging.Spec{
		Files: []staging.File{{
			Path: target, Size: 6, SHA256: sha256.Sum256([]byte("hello\n")), Perm: 0o644, ModTime: time.Unix(1_700_000_000, 0),
			Open: func() (*os.File, error) { return os.Open(source) },
			Check: func(_ context.Context, f io.ReaderAt) error {
				buf := make([]byte, 7)
				if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != "hello\n" {
					return errors.New("wrong content")
				}
				return nil
			},
		}},
		Artifacts: []staging.Artifact{{Path: report, Data: []byte("done"), Perm: 0o644}},
	}
	fmt.Println(staging.Run(context.Background(), root, key, spec))

	// Nothing is ever overwritten: the same once more is a conflict.
	var failed *staging.Error
	if err := staging.Run(context.Background(), root, key, spec); errors.As(err, &failed) {
		fmt.Println(failed.Step, failed.Path, failed.Rollback)
	}
	names, _ := root.Names()
	fmt.Println(names)
	// Output:
	// <nil>
	// conflict docs/hello.txt <nil>
	// [REPORT docs]
}
