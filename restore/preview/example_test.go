package preview_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Example keeps a preview, and later takes an approval of it: not a vague one,
// and not twice.
func Example() {
	dir, err := os.MkdirTemp("", "preview")
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

	// show verifies, plans, and makes a preview.
	show := func(q preview.Request) (*preview.Preview, *restore.Restore) {
		r, err := restore.ForRoot(ctx, restore.Candidate{Runs: []*verify.Run{run}}, root)
		if err != nil {
			log.Fatal(err)
		}
		p, err := preview.New(ctx, r, q)
		if err != nil {
			log.Fatal(err)
		}
		return p, r
	}
	shown, r := show(preview.Request{Origin: preview.Origin{RestoreRoot: root}})
	r.Close()
	raw, err := shown.Keep()
	if err != nil {
		log.Fatal(err)
	}
	kept := filepath.Join(dir, shown.ID())
	if err := os.WriteFile(kept, raw, 0o600); err != nil {
		log.Fatal(err)
	}

	// Later, in another process: everything is done again.
	raw, err = os.ReadFile(kept)
	if err != nil {
		log.Fatal(err)
	}
	record, err := preview.ParseRecord(raw, shown.ID())
	if err != nil {
		log.Fatal(err)
	}
	again, r := show(preview.Request{Origin: record.Origin(), Asked: record.Asked()})
	defer r.Close()
	_, err = statement.Parse("Looks good.")
	fmt.Println("vague:", errors.Is(err, preview.ErrVague))
	said, err := statement.Parse(preview.Exactly)
	if err != nil {
		log.Fatal(err)
	}
	approval, err := record.Approve(again, said)
	if err != nil {
		log.Fatal(err)
	}
	approved, err := approval.Accept(r, ledger(dir))
	fmt.Println("approved:", err == nil && approved.PreviewID() == shown.ID())
	_, err = approval.Accept(r, ledger(dir))
	fmt.Println("used:", errors.Is(err, preview.ErrUsed))
	// Output:
	// vague: true
	// approved: true
	// used: true
}

// ledger is a directory with a file for each preview that was used.
type ledger string

func (l ledger) Use(id string) error {
	f, err := os.OpenFile(filepath.Join(string(l), id+".used"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
