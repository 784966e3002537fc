package verify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// sealExample makes a project with one sealed run.
func sealExample(ctx context.Context) (root string, project *pathsafe.Dir, runDir string, err error) {
	if root, err = os.MkdirTemp("", "example"); err != nil {
		return
	}
	if err = os.WriteFile(filepath.Join(root, "app.bin"), []byte("the program"), 0o644); err != nil {
		return
	}
	if project, err = pathsafe.OpenRoot(root); err != nil {
		return
	}
	key, err := bundle.GenerateKey()
	if err != nil {
		return
	}
	runDir = filepath.Join(root, "CONTRACTS/_runs/run-1")
	_, err = bundle.Seal(ctx, bundle.SealOptions{Project: project, RunDir: runDir, Outputs: []string{"app.bin"}, Key: key, BuildID: "git:abc1234"})
	return
}

// Verify a run directory and read an output, every byte checked against the
// hash that was signed.
func Example() {
	ctx := context.Background()
	root, project, runDir, err := sealExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	defer project.Close()

	run, err := verify.OpenRun(project, runDir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	b, err := verify.Strict(ctx, run, verify.Watch{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for o := range b.Outputs() {
		source, err := o.Open(nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		content, err := io.ReadAll(io.NewSectionReader(source, 0, o.Size()))
		fmt.Printf("%s: %s %q %v\n", b.RunID(), o.Path(), content, err)
		source.Close()
	}
	// Output: run-1: app.bin "the program" <nil>
}

// A verdict is an error with a code of the law and what it is about.
func ExampleReject() {
	ctx := context.Background()
	root, project, runDir, err := sealExample(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(root)
	defer project.Close()
	if err := os.Remove(filepath.Join(root, "app.bin")); err != nil {
		fmt.Println(err)
		return
	}

	run, err := verify.OpenRun(project, runDir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer run.Close()
	_, err = verify.Strict(ctx, run, verify.Watch{})
	var reject *verify.Reject
	if errors.As(err, &reject) {
		fmt.Println(reject.Code, reject.Details["path"])
	}
	// Output: OUTPUT_MISSING app.bin
}
