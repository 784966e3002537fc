package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/records"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// lostSavepoint returns the newest commit in place by the log of a root, if its savepoint, which should be
// the tip, is lost; nil if it is not, or if an operator has accepted the loss.
func lostSavepoint(state *statedir.Dir, store *savepoint.Store, actions []*audit.Action, tip savepoint.Savepoint) (*audit.Action, error) {
	newest := action.NewestInForce(actions)
	if newest == nil || newest.Savepoint == "" || newest.Savepoint == tip.ID() {
		return nil, nil // none
	}
	all, err := store.Survey(audit.RootOf(newest.Root))
	if err != nil {
		return nil, err
	}
	is := func(sp savepoint.Savepoint) bool { return sp.ID() == newest.Savepoint }
	if slices.ContainsFunc(all.Standing, is) || slices.ContainsFunc(all.Retired, is) ||
		slices.ContainsFunc(all.Damaged, func(d *savepoint.DamageError) bool { return d.Attempt == newest.ID }) {
		return nil, nil // another command is at work, or it is damaged
	}
	if records.Acceptances(state)(newest.Savepoint) {
		return nil, nil
	}
	return newest, nil // also where a rollback of it was killed, and taken back
}

// partlyUndone is the newest rollback of a root that left part of its commits in place, and is not
// finished. The zero value is none.
type partlyUndone struct {
	rollback string
	commits  []string // that it undid in part, the newest first
	left     []string // names that are not as before the commits, as far as that is known
}

// partlyUndoneOf finds the rollback that left part of the commit of the active savepoint in place. There is
// none if a snapshot was restored later and the files are as committed again.
func partlyUndoneOf(actions []*audit.Action, commit string, isAsCommitted bool) (stays partlyUndone) {
	for _, c := range actions {
		commits := c.PartlyUndone()
		switch {
		case slices.Contains(commits, commit):
			stays = partlyUndone{rollback: c.ID, commits: commits}
		case !c.IsCommit() && c.State == audit.Done && isAsCommitted:
			stays = partlyUndone{}
		}
	}
	return stays
}

// find compares the root with the snapshots from before the commits.
func (p *partlyUndone) find(ctx context.Context, state *statedir.Dir, root *rootStatus) error {
	store, err := statecheck.Snapshots(state)
	if err != nil {
		return err
	}
	defer store.Close()
	dir, err := root.open()
	if err != nil {
		return err
	}
	defer dir.Close()
	all, _, _ := store.Survey(root.name) // examine reports what cannot be read
	for _, h := range all {
		if !slices.ContainsFunc(p.commits, h.IsBefore) {
			continue
		}
		before, err := store.Find(h.ID)
		if err != nil {
			return err
		}
		now, err := store.Look(ctx, snapshot.Request{Root: root.path, Dir: dir, Kind: snapshot.Manual, Scope: before.Scope()})
		if err != nil {
			return err
		}
		differences, _, err := snapshot.Compare(before, now)
		if err != nil {
			return err
		}
		for _, d := range differences {
			p.left = append(p.left, d.Path)
		}
	}
	slices.Sort(p.left)
	p.left = slices.Compact(p.left)
	return nil
}

// text describes what is left, and the command that finishes the rollback. Option is that of the root.
func (p *partlyUndone) text(option string) string {
	left, later := "", ""
	if len(p.left) > 0 {
		left = " (" + words.List(p.left) + ")"
	}
	if len(p.commits) > 1 {
		later = "--with-later "
	}
	return fmt.Sprintf("incomplete: rollback %s did not undo all of commit %s%s; \"spectrum rollback %s%s%s\" finishes it, or names what prevents that",
		p.rollback[:shortest], strings.Join(shortIDs(p.commits), " "), left, later, option, p.commits[len(p.commits)-1][:shortest])
}
