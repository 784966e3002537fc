package bundle_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Seal everything in the directory dist.
func ExampleSeal() {
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	if err := os.Mkdir(filepath.Join(root, "dist"), 0o755); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(root, "dist/app.bin"), []byte("the program"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	project, err := pathsafe.OpenRoot(root)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer project.Close()
	key, err := bundle.GenerateKey()
	if err != nil {
		fmt.Println(err)
		return
	}

	sealed, err := bundle.Seal(context.Background(), bundle.SealOptions{
		Project: project,
		RunDir:  filepath.Join(root, "CONTRACTS/_runs/run-1"),
		Outputs: []string{"dist"},
		Key:     key,
		BuildID: "git:abc1234",
	})
	fmt.Println(sealed.Files, sealed.Bytes, sealed.ValidatorID == key.ValidatorID(), err)
	// Output: 1 11 true <nil>
}

// A key is written once and never replaced.
func ExampleKey_Save() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	key, err := bundle.GenerateKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	path := filepath.Join(dir, "key.pem")
	fmt.Println(key.Save(path))
	fmt.Println(key.Save(path) != nil)
	again, err := bundle.LoadKey(path)
	fmt.Println(again.ValidatorID() == key.ValidatorID(), err)
	// Output:
	// <nil>
	// true
	// true <nil>
}
