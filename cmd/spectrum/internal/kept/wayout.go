package kept

import (
	"context"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// WayOut returns the next steps for a snapshot of the root at a path, contents of which are
// damaged: only what works as things stand. Option is what the commands need for that root. To is
// the directory that was to be written instead of the root; "" for none.
func WayOut(ctx context.Context, store *snapshot.Store, snap *snapshot.Snapshot, damaged []*snapshot.DamageError, path, option, to string) string {
	var steps []string
	id := snap.ID()[:words.Shortest]
	able := 0
	if root, err := pathsafe.OpenRoot(path); err == nil {
		defer root.Close()
		found, _ := store.Repairable(ctx, snap, root, damaged) // what cannot be looked for is not found
		able = len(found)
	}
	if able > 0 {
		what := "what is damaged"
		if able < len(damaged) {
			what = fmt.Sprintf("%d of %s", able, words.Count(len(damaged), "content"))
		}
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot verify --repair %s\" brings %s again from %q", id, what, path))
	}
	if able < len(damaged) && to != "" {
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot restore --without-damaged --to %s %s\" writes all of it but the files with damaged contents", words.Shell(to), id))
	}
	if able < len(damaged) && to == "" {
		steps = append(steps, fmt.Sprintf("\"spectrum snapshot restore --without-damaged %s%s\" goes back to all of it but the files with damaged contents, which stay as they are now", option, id))
	}
	if able < len(damaged) {
		steps = append(steps, fmt.Sprintf("the rest stands nowhere in %q with the same content: a copy from elsewhere that is put there can be brought again", path))
	}
	return strings.Join(steps, "; ")
}
