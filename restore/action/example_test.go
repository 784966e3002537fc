package action_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// ExampleCommit seals a file, has its restore approved, and carries it out.
func ExampleCommit() {
	dir, err := os.MkdirTemp("", "commit")
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

	r, err := restore.ForRoot(ctx, restore.Candidate{Runs: []*verify.Run{run}}, root)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	shown, err := preview.New(ctx, r, preview.Request{Origin: preview.Origin{RestoreRoot: root}})
	if err != nil {
		log.Fatal(err)
	}
	kept, _ := shown.Keep()
	record, err := preview.ParseRecord(kept, shown.ID())
	if err != nil {
		log.Fatal(err)
	}
	said, err := statement.Parse("Approved: commit the restore preview exactly as proposed.")
	if err != nil {
		log.Fatal(err)
	}
	approval, err := record.Approve(shown, said)
	if err != nil {
		log.Fatal(err)
	}
	approved, err := approval.Accept(r, restoretest.Forgetful{})
	if err != nil {
		log.Fatal(err)
	}

	key := []byte("32 random bytes from a safe place") // it authenticates the journal
	in, _, err := action.Enter(ctx, root, action.Entry{Key: key})
	if err != nil {
		log.Fatal(err)
	}
	result := restore.ResultOf(action.Commit(ctx, in, approved, action.Watch{}))
	in.Leave()
	text, _ := result.JSON()
	fmt.Printf("%s\n", text)
	entries, _ := os.ReadDir(root)
	for _, e := range entries {
		fmt.Println(e.Name())
	}
	// Output:
	// {"cause_code":null,"code":null,"ok":true,"phase":"VERIFY"}
	// RESTORE_MANIFEST.json
	// RESTORE_REPORT.json
	// report.txt
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
