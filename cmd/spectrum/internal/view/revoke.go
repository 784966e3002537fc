package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// This file is the authority reset after a rollback, for views (rollback and snapshot contract,
// sections 7.2 and 8): a view of what was rolled back does not outlive it, and a new one reports
// that it happened, never why (section 11).

// RolledBack is what a rollback undid.
type RolledBack struct {
	Root        string   // the path that the restore root is known by
	Path        string   // where it is; "" for the same
	BundleRoots []string // of the candidates whose commits were undone, and of what was derived of them
}

// A Revocation is what became of the views of what was rolled back.
type Revocation struct {
	Detached []string            // mount points, in the order of the mount table
	Left     []Left              // what may still show it, in that order
	Foreign  []fusemount.Foreign // those of other users, which were not queried
	Err      error               // the marks could not be made, or the mount table not be read
}

// Left is a view that could not be detached, or not be queried.
type Left struct {
	Mountpoint string
	Err        error
}

// AskPatience is how long a view may take to answer what it shows, and revokePatience how
// long to end.
const (
	AskPatience    = 5 * time.Second
	revokePatience = 15 * time.Second
)

// Revoke is to be called when a rollback is complete. It marks, durably, that there was one; then
// it detaches each live view of this user that shows one of the bundles or was mounted for the
// restore root, one after another. A view of many runs is detached as a whole. A view that does not
// answer is reported, as are those of other users: this process holds locks and a journal, so it
// sends nothing to their servers. Views are detached even if the marks could not be made.
func Revoke(ctx context.Context, state *statedir.Dir, of RolledBack) Revocation {
	var r Revocation
	marks := state.MarkRolledBack(of.Root, of.BundleRoots)
	views, foreign, err := fusemount.Views()
	for _, view := range views {
		ended, err := of.revoke(ctx, view)
		switch {
		case err != nil:
			r.Left = append(r.Left, Left{view.Path(), err})
		case ended:
			r.Detached = append(r.Detached, view.Path())
		}
	}
	r.Foreign, r.Err = foreign, errors.Join(marks, err)
	return r
}

// revoke detaches a view if it shows what was rolled back, and reports whether it
// was.
func (of RolledBack) revoke(ctx context.Context, view *fusemount.Other) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, revokePatience)
	defer cancel()
	concerned, err := of.concerns(ctx, view)
	switch {
	case errors.Is(err, fusemount.ErrNotMounted): // it has ended
		return false, nil
	case err != nil || !concerned:
		return false, err
	}
	err = view.Revoke(ctx)
	return err == nil, err
}

// MaxShown bounds the bytes that are read of a view. A view with more has about a thousand runs.
const MaxShown = 64 << 10

// concerns queries what a view shows, in one read. A view that shows more than fits, or that
// another mount hides, counts as if it showed what was rolled back: no path leads to the hidden
// one, but processes that opened it before can read on.
func (of RolledBack) concerns(ctx context.Context, view *fusemount.Other) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, AskPatience)
	defer cancel()
	record, err := readShown(ctx, view)
	if errors.Is(err, fusemount.ErrTooLong) || errors.Is(err, fusemount.ErrHidden) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return record.RestoreRoot == words.JSON(of.Root) || of.Path != "" && record.RestoreRoot == words.JSON(of.Path) || slices.ContainsFunc(record.BundleRoots, func(root string) bool {
		return slices.Contains(of.BundleRoots, root)
	}), nil
}

// readShown reads and parses shown.json; ctx bounds both.
func readShown(ctx context.Context, view *fusemount.Other) (shownRecord, error) {
	type outcome struct {
		record shownRecord
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		raw, err := view.Read(ctx, shownFile, MaxShown)
		if err == nil {
			err = json.Unmarshal(raw, &o.record)
		}
		if o.err = err; err != nil {
			o.record = shownRecord{}
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.record, o.err
	case <-ctx.Done():
		return shownRecord{}, fmt.Errorf("the view on %q does not answer: %w", view.Path(), ctx.Err())
	}
}

// Marks finds out whether what a view shows was rolled back.
type Marks struct {
	State string // path of the state directory
	Root  string // real path of the restore root; "" for none
}

// have reports whether there is a mark now. If the marks cannot be read, it reports that there may
// be one: a view never claims that nothing has happened without knowing it.
func (m Marks) have(bundleRoots ...string) bool {
	was, err := statedir.WasRolledBack(m.State, m.Root, bundleRoots)
	return was || err != nil
}
