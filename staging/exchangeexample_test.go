package staging_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/staging"
)

// One file goes and another one is replaced; or neither.
func ExampleSession_Exchange() {
	path, err := os.MkdirTemp("", "staging")
	check(err)
	defer func() { check(os.RemoveAll(path)) }()
	for _, name := range []string{"a", "b"} {
		check(os.WriteFile(filepath.Join(path, name), []byte("old "+name), 0o600))
	}
	root, err := pathsafe.OpenRoot(path)
	check(err)
	defer root.Close()
	session, err := staging.Lock(context.Background(), root, []byte("32 random bytes from a safe place"), 0)
	check(err)
	defer session.Close()
	_, err = session.Recover(context.Background(), staging.Automatic)
	check(err)

	var swaps []staging.Swap
	for _, name := range []string{"a", "b"} {
		p, err := pathsafe.Parse(name)
		check(err)
		old, err := root.Lstat(name)
		check(err)
		swaps = append(swaps, staging.Swap{Path: p, Old: &old, New: name == "b"})
	}
	e := staging.Exchange{
		Kind: "rollback", Swaps: swaps,
		Stage:   func(_ context.Context, dir *pathsafe.Dir) error { return dir.WriteFile("1", []byte("new b"), 0o600) },
		Settled: func(context.Context, *pathsafe.Dir) error { return errors.New("not like this") },
	}
	show := func() {
		for _, name := range []string{"a", "b"} {
			content, err := os.ReadFile(filepath.Join(path, name))
			fmt.Printf("%s: %q, %t\n", name, content, err == nil)
		}
	}
	fmt.Println(session.Exchange(context.Background(), e))
	show()
	e.Settled = nil
	fmt.Println(session.Exchange(context.Background(), e))
	show()
	// Output:
	// verify: not like this
	// a: "old a", true
	// b: "old b", true
	// <nil>
	// a: "", false
	// b: "new b", true
}
