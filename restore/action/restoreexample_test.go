package action_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// ExampleRestore takes a snapshot of a root, and goes back to it.
func ExampleRestore() {
	dir, err := os.MkdirTemp("", "rollback")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"root", "snapshots", "savepoints"} {
		_ = os.Mkdir(filepath.Join(dir, name), 0o700)
	}
	notes := filepath.Join(dir, "root", "notes")
	_ = os.WriteFile(notes, []byte("Monday"), 0o600)
	snapshots, err := snapshot.Open(filepath.Join(dir, "snapshots"))
	if err != nil {
		log.Fatal(err)
	}
	savepoints, err := savepoint.Open(filepath.Join(dir, "savepoints"))
	if err != nil {
		log.Fatal(err)
	}
	key, err := bundle.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	in, _, err := action.Enter(context.Background(), filepath.Join(dir, "root"), action.Entry{
		Key: []byte("32 random bytes from a safe place"), Snapshots: snapshots, Savepoints: savepoints,
		Host: func() (action.Host, error) { return action.Host{Key: key, BuildID: "example"}, nil },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer in.Leave()

	taken, err := in.Snapshot(context.Background(), snapshot.Manual, "before lunch")
	if err != nil {
		log.Fatal(err)
	}
	_ = os.WriteFile(notes, []byte("Tuesday"), 0o600)
	done, err := action.Restore(context.Background(), in, taken, action.How{Type: audit.Session, Reason: "asked for"})
	if err != nil {
		log.Fatal(err)
	}
	raw, _ := os.ReadFile(notes)
	fmt.Printf("%s; as it was before is in a snapshot too, of %d file\n", raw, done.Done.Snapshot.Header().Files)
	// Output: Monday; as it was before is in a snapshot too, of 1 file
}
