package view

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
)

// ForRoot returns the mount points of this user's views of a restore root, which is identified by a
// name and a path; and those of the views that do not report what they show. Both are in the order
// of the mount table.
func ForRoot(ctx context.Context, name, path string) (mounted, silent []string, err error) {
	views, _, err := fusemount.Views()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, AskPatience)
	defer cancel()
	shown, errs := make([]shownRecord, len(views)), make([]error, len(views))
	var all sync.WaitGroup
	for i, other := range views {
		all.Go(func() { shown[i], errs[i] = readShown(ctx, other) })
	}
	all.Wait()
	roots := []string{words.JSON(name), words.JSON(path)}
	for i, other := range views {
		switch {
		case errors.Is(errs[i], fusemount.ErrNotMounted): // it has ended meanwhile
		case errs[i] != nil:
			silent = append(silent, other.Path())
		case slices.Contains(roots, shown[i].RestoreRoot):
			mounted = append(mounted, other.Path())
		}
	}
	return mounted, silent, nil
}
