package snapshot_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A snapshot is taken, found again, and a part of it written elsewhere.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	for _, name := range []string{"store", "root", "elsewhere"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := os.WriteFile(filepath.Join(root, "app.conf"), []byte("on=1"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	store, err := snapshot.Open(filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	handle, err := pathsafe.OpenRoot(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handle.Close()

	ctx := context.Background()
	taken, err := store.Take(ctx, snapshot.Request{
		Root: root, Dir: handle, Kind: snapshot.Manual, Reason: "before the move", Key: bundle.GenerateKey,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := store.Find(taken.ID()[:8])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.Header().Reason, found.Header().Files, found.Header().Bytes)
	damaged, err := store.Verify(ctx, found)
	fmt.Println(len(damaged), err)

	to, err := pathsafe.OpenRoot(filepath.Join(dir, "elsewhere"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer to.Close()
	path, err := pathsafe.Parse("app.conf")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Write(ctx, found, path, to, "app.conf"))
	content, err := os.ReadFile(filepath.Join(dir, "elsewhere", "app.conf"))
	fmt.Println(string(content), err)
	// Output:
	// before the move 1 4
	// 0 <nil>
	// <nil>
	// on=1 <nil>
}
