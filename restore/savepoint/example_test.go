package savepoint_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A savepoint is prepared before a commit writes, and published after it.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := savepoint.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	key, err := bundle.GenerateKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	path, err := pathsafe.Parse("etc/app.conf")
	if err != nil {
		fmt.Println(err)
		return
	}

	const attempt = "0d6f3bd8-3c1c-4d5e-9a55-9e8dd4b3a2f1"
	draft := savepoint.Draft{
		Outputs: []bundle.Known{{Path: path, Bytes: 4, Digest: sha256.Sum256([]byte("on=1"))}},
		Report:  savepoint.Report{Markdown: []byte("# Restore Commit Report\n"), JSON: []byte("{}")},
	}
	prepared, err := store.Prepare(context.Background(), "/srv/app", attempt, draft, key, "git:abc1234")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Here the commit writes.
	id, err := store.Publish("/srv/app", attempt)
	fmt.Println(id == prepared, err)
	tip, ok, err := store.Tip("/srv/app")
	fmt.Println(tip.Sequence(), tip.Root(), ok, err)
	fmt.Println(store.VerifyChain("/srv/app", key.ValidatorID()))
	// Output:
	// true <nil>
	// 1 /srv/app true <nil>
	// <nil>
}
