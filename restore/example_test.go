package restore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Example plans the restore of a bundle under a directory where one of its
// files exists already.
func Example() {
	dir, err := os.MkdirTemp("", "restore")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	project, run := sealedRun(dir)
	defer project.Close()
	defer run.Close()
	root := filepath.Join(dir, "root")
	_ = os.Mkdir(root, 0o755)
	_ = os.WriteFile(filepath.Join(root, "report.txt"), []byte("an older report\n"), 0o644)

	r, err := restore.ForRoot(ctx, restore.Candidate{Runs: []*verify.Run{run}}, root)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	fmt.Println(r.Plan().Files(), "file,", r.Plan().Bytes(), "bytes")
	for run := range r.Plan().Runs() {
		fmt.Printf("%s\n", run.Artifacts()[0].Data)
	}
	for _, c := range r.Conflicts() {
		fmt.Printf("%s: %s\n", c.Path, c.State)
	}

	_, err = restore.ForRoot(ctx, restore.Candidate{Runs: []*verify.Run{run}}, "root")
	var failure *restore.Failure
	if errors.As(err, &failure) {
		fmt.Println(failure.Code, "in", failure.Phase)
	}
	// Output:
	// 1 file, 9 bytes
	// {"entries":[{"bytes":9,"relative_path":"report.txt","sha256":"sha256:76da3989f20c38c4876a1adff41129644d357f73a939d84cbe652a8f49e3a5b9"}]}
	// report.txt: a regular file of 16 bytes
	// RESTORE_TARGET_NOT_ABSOLUTE in PREFLIGHT
}

// sealedRun makes a project with one file, and a signed bundle of it.
func sealedRun(dir string) (*pathsafe.Dir, *verify.Run) {
	_ = os.WriteFile(filepath.Join(dir, "report.txt"), []byte("all well\n"), 0o644)
	project, err := pathsafe.OpenRoot(dir)
	if err != nil {
		log.Fatal(err)
	}
	key, err := bundle.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	runDir := filepath.Join(dir, "runs", "run-1")
	_, err = bundle.Seal(context.Background(), bundle.SealOptions{
		Project: project, RunDir: runDir, Outputs: []string{"report.txt"}, Key: key, BuildID: "git:abc1234",
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err := verify.OpenRun(project, runDir)
	if err != nil {
		log.Fatal(err)
	}
	return project, run
}
