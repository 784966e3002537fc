package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// withoutForged returns the snapshots without those that were never taken ([action.Logged]), and the
// damage of those.
func (s *snapshotCommand) withoutForged(all []snapshot.Header) (rest []snapshot.Header, forged []*snapshot.DamageError) {
	known, err := loggedSnapshots(s.state)
	if err != nil {
		return all, nil
	}
	return known.NeverTaken(all, s.store.Find)
}

// withoutChanged returns the snapshots without those whose manifests were changed in place, and the
// damage of those. Of manifests it reads as many bytes as recover does, the newest first.
func (s *snapshotCommand) withoutChanged(ctx context.Context, all []snapshot.Header) ([]snapshot.Header, []*snapshot.DamageError, error) {
	changed, err := s.store.Changed(ctx, all, statecheck.Glance)
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(all, func(h snapshot.Header) bool {
		return slices.ContainsFunc(changed, func(d *snapshot.DamageError) bool { return strings.HasSuffix(d.Path, "-"+h.ID) })
	}), changed, nil
}

func loggedSnapshots(state *statedir.Dir) (action.Logged, error) {
	return action.LoggedSnapshots(logOf(state))
}

// isUntaken reports whether the damage is a manifest of a snapshot that the audit log, which can be
// read, does not have.
func isUntaken(state *statedir.Dir, damaged string) bool {
	known, err := loggedSnapshots(state)
	return err == nil && known.IsUntaken(damaged)
}

// logRefused logs that a rollback could not begin.
func (a *app) logRefused(state *statedir.Dir, event audit.Event) {
	event.Kind = audit.RollbackRefused
	log, err := openLog(state)
	if err == nil {
		err = errors.Join(log.Append(event), log.Close())
	}
	if err != nil {
		a.tell("spectrum: its failure to begin could not be logged: %s", oneLine(err.Error()))
	}
}
