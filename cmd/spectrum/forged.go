package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/kept"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A manifest that does not verify and that the audit log does not know was never a snapshot: it is
// listed as damage, and to ask for it is a mistake, which halts nothing.

// withoutForged returns the snapshots without those that the audit log does not know and that do not
// verify, and the damage of those. Where the log cannot be read, none is forged.
func (s *snapshotShelf) withoutForged(all []snapshot.Header) (rest []snapshot.Header, forged []*snapshot.DamageError) {
	known, err := loggedSnapshots(s.state)
	if err != nil {
		return all, nil
	}
	for _, h := range all {
		if !known[h.ID] {
			_, err := s.store.Find(h.ID)
			if d, is := errors.AsType[*snapshot.DamageError](err); is {
				forged = append(forged, d)
				continue
			}
		}
		rest = append(rest, h)
	}
	return rest, forged
}

// withoutChanged returns the snapshots without those whose manifests were changed in place, and the
// damage of those. Of manifests it reads as many bytes as recover does, the newest first.
func (s *snapshotShelf) withoutChanged(ctx context.Context, all []snapshot.Header) ([]snapshot.Header, []*snapshot.DamageError, error) {
	changed, err := s.store.Changed(ctx, all, kept.Glance)
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(all, func(h snapshot.Header) bool {
		return slices.ContainsFunc(changed, func(d *snapshot.DamageError) bool { return strings.HasSuffix(d.Path, "-"+h.ID) })
	}), changed, nil
}

// loggedSnapshots returns the IDs of all snapshots that the audit log names.
func loggedSnapshots(state *statedir.Dir) (map[string]bool, error) {
	known := map[string]bool{}
	_, err := readLog(state, func(e audit.Entry) error {
		known[e.Snapshot] = true
		return nil
	})
	return known, err
}

// isUntaken reports whether what is damaged is a manifest of which the audit log, which can be read,
// does not know that it was ever taken.
func isUntaken(state *statedir.Dir, damaged string) bool {
	_, id, isManifest := strings.Cut(damaged[strings.LastIndexByte(damaged, '/')+1:], "-")
	if !isManifest || !strings.HasPrefix(damaged, "roots/") {
		return false
	}
	known, err := loggedSnapshots(state)
	return err == nil && len(known) > 0 && !known[id]
}

// logRefused logs that a rollback could not begin.
func (a *app) logRefused(state *statedir.Dir, event audit.Event) {
	event.Kind = audit.RollbackRefused
	log, err := openLog(state)
	if err == nil {
		err = errors.Join(log.Append(event), log.Close())
	}
	if err != nil {
		a.tell("spectrum: that it could not begin could not be logged: %s", oneLine(err.Error()))
	}
}
