package quarantine_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/restore/quarantine"
)

// A candidate is held as long as something is found, or until a person has
// clarified it.
func Example() {
	dir, err := os.MkdirTemp("", "quarantine")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := quarantine.Open(dir, func(c quarantine.Change) error {
		fmt.Println("log:", c.Kind, c.Mark.Rule)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	ctx := context.Background()
	c := quarantine.Candidate{Source: strings.Repeat("5c", 32), RestoreRoot: "/srv/restore"}
	found := []quarantine.Finding{{Rule: quarantine.ArtifactStatus, Detail: `run "r1" is deprecated`}}
	held, _, err := store.Update(ctx, c, found)
	fmt.Println(len(held), err)
	_, err = store.Release(ctx, "5c5c5c5c", "it is the one we want")
	fmt.Println(err)
	held, _, err = store.Update(ctx, c, found)
	fmt.Println(len(held), err)

	// Output:
	// log: hold artifact_status
	// 1 <nil>
	// log: release artifact_status
	// <nil>
	// 0 <nil>
}
