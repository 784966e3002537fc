package statecheck

import (
	"context"
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// Broken is a snapshot with damaged contents, of the root at Path.
type Broken struct {
	Snapshot *snapshot.Snapshot
	Damaged  []*snapshot.DamageError
	Path     string
	Option   string // what commands need for that root
	To       string // the directory that was to be written instead of the root; "" for none
	Another  string // the step that leads to another snapshot; "" for none
}

// NextSteps returns the next steps for a broken snapshot, each on its own: only what works as things
// stand, the one that repairs most last.
func NextSteps(ctx context.Context, store *snapshot.Store, b Broken) []string {
	return b.steps(b.lost(ctx, store))
}

// lost returns the damaged contents that no file of the root has.
func (b *Broken) lost(ctx context.Context, store *snapshot.Store) []*snapshot.DamageError {
	root, err := pathsafe.OpenRoot(b.Path)
	if err != nil {
		return b.Damaged
	}
	defer root.Close()
	found, _ := store.Repairable(ctx, b.Snapshot, root, b.Damaged) // what cannot be looked for is not found
	return slices.DeleteFunc(slices.Clone(b.Damaged), func(d *snapshot.DamageError) bool { return slices.Contains(found, d) })
}

// steps are the next steps, where these contents are lost.
func (b *Broken) steps(lost []*snapshot.DamageError) (steps []string) {
	id := b.Snapshot.ID()[:words.Shortest]
	if len(lost) > 0 {
		var names []string
		for _, d := range lost {
			names = append(names, d.Names...)
		}
		steps = append(steps, fmt.Sprintf("no file in %q has the content of %s: put a copy of it there, and run this again", b.Path, words.List(names)))
	}
	switch {
	case len(lost) > 0 && b.To != "":
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot restore --without-damaged --to %s %s\" writes all of it but the files with damaged contents", words.Shell(b.To), id))
	case len(lost) > 0:
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot restore --without-damaged %s%s\" goes back to all of it but the files with damaged contents, which stay as they are now", b.Option, id))
	}
	if b.Another != "" {
		steps = append(steps, b.Another)
	}
	if able := len(b.Damaged) - len(lost); able > 0 {
		what := "what is damaged"
		if len(lost) > 0 {
			what = fmt.Sprintf("%d of %s", able, words.Count(len(b.Damaged), "content"))
		}
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot verify --repair %s\" brings %s again from %q", id, what, b.Path))
	}
	return steps
}
