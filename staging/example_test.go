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

func parse(path string) pathsafe.Path {
	p, err := pathsafe.Parse(path)
	check(err)
	return p
}

var key = []byte("32 random bytes from a safe place") // it authenticates the journal

// carryOut is what every change of a root looks like.
func carryOut(ctx context.Context, dir *pathsafe.Dir, c staging.Change, fill func(context.Context, *pathsafe.Dir) error) (err error) {
	root, err := staging.Lock(ctx, dir, key, 0)
	if err != nil {
		return err
	}
	defer root.Close()
	unfinished, err := root.Unfinished()
	if err != nil {
		return err
	}
	for _, u := range unfinished {
		defer u.Close()
		if _, err := u.Resolve(ctx, staging.Automatic); err != nil {
			return u.Halt(err)
		}
		if _, err := u.Forget(); err != nil {
			return u.Halt(err)
		}
	}
	tx, err := root.Plan(c) // nothing is written before Begin
	if err != nil {
		return err
	}
	defer tx.Abort(&err) // does nothing after Commit
	if err := tx.Begin(); err != nil {
		return err
	}
	if err := tx.Stage(ctx, fill); err != nil {
		return err
	}
	if err := tx.Move(ctx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return tx.Close()
}

// A file and an artifact are put where nothing is.
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

	c := staging.Change{Kind: staging.KindCommit, Swaps: []staging.Swap{
		{Path: parse("docs/hello.txt"), New: &staging.File{
			Size: 6, SHA256: sha256.Sum256([]byte("hello\n")), Perm: 0o644, ModTime: time.Unix(1_700_000_000, 0),
			Open: func(*pathsafe.Opener) (staging.Source, error) { return os.Open(source) },
			Check: func(_ context.Context, f io.ReaderAt) error {
				buf := make([]byte, 7)
				if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != "hello\n" {
					return errors.New("wrong content")
				}
				return nil
			},
		}},
		{Path: parse("REPORT"), New: &staging.Artifact{Data: []byte("done"), Perm: 0o644}},
	}}
	fmt.Println(carryOut(context.Background(), root, c, nil))

	// Nothing is ever overwritten: the same once more is a conflict.
	var failed *staging.Error
	if err := carryOut(context.Background(), root, c, nil); errors.As(err, &failed) {
		fmt.Println(failed.Step, failed.Path, failed.Rollback)
	}
	names, _ := root.Names()
	fmt.Println(names)
	// Output:
	// <nil>
	// conflict docs/hello.txt <nil>
	// [REPORT docs]
}

// One file goes and another one is replaced; or neither.
func ExampleTx() {
	path, err := os.MkdirTemp("", "staging")
	check(err)
	defer func() { check(os.RemoveAll(path)) }()
	root, err := pathsafe.OpenRoot(path)
	check(err)
	defer root.Close()
	c := staging.Change{Kind: "rollback"}
	for i, name := range []string{"a", "b"} {
		check(root.WriteFile(name, []byte("old "+name), 0o600))
		old, err := root.Lstat(name)
		check(err)
		c.Swaps = append(c.Swaps, staging.Swap{Path: parse(name), Old: &old})
		if i == 1 {
			c.Swaps[i].New = staging.Tree{}
		}
	}
	for _, fails := range []bool{true, false} {
		fmt.Println(carryOut(context.Background(), root, c, func(_ context.Context, dir *pathsafe.Dir) error {
			if fails {
				return errors.New("not like this")
			}
			return dir.WriteFile("1", []byte("new b"), 0o600)
		}))
		for _, name := range []string{"a", "b"} {
			content, err := os.ReadFile(filepath.Join(path, name))
			fmt.Printf("%s: %q, %t\n", name, content, err == nil)
		}
	}
	// Output:
	// stage: not like this
	// a: "old a", true
	// b: "old b", true
	// <nil>
	// a: "", false
	// b: "new b", true
}
