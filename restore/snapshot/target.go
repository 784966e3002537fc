package snapshot

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// Target is the snapshot that an emergency rollback of a root goes back to.
type Target struct {
	Snapshot *Snapshot // nil where there is none
	// Passed are the snapshots that were passed over: those that are newer, the newest first, and
	// manifests that cannot be read, whatever they were.
	Passed []Passed
}

// Passed is a snapshot that is damaged, or that is not signed by this host, or of a root not all
// of which could be read.
type Passed struct {
	Header  Header // the zero one for a manifest that cannot be read
	Damage  []*DamageError
	Foreign bool // it is signed by another validator; that is the first of the damage
	Partial bool // it lacks what could not be read; there is no damage
	Gone    bool // the caller knows of it, and it is not in the store; the header has no more than its ID and time
}

// Target returns the newest snapshot of a root that an emergency rollback may go back to
// ([Header.ForEmergency]), and that verifies. One that the validator host has signed comes
// before one that another has: that is taken only where there is no other. No host is "".
func (s *Store) Target(ctx context.Context, root, host string) (Target, error) {
	lock, err := s.share(ctx)
	if err != nil {
		return Target{}, err
	}
	defer lock.Close()
	at, ok, err := s.enter(keyOf(filepath.Clean(root)))
	if err != nil || !ok {
		return Target{}, err
	}
	defer at.Close()
	all, damaged, err := at.survey()
	if err != nil {
		return Target{}, err
	}
	found, err := s.target(ctx, at, all, host)
	if err != nil {
		return Target{}, err
	}
	unread := make([]Passed, 0, len(damaged))
	for _, d := range damaged {
		unread = append(unread, Passed{Damage: []*DamageError{d}})
	}
	found.Passed = append(unread, found.Passed...)
	return found, nil
}

// target is Target for a caller that holds the lock and has read the headers. It decides for
// the emergency rollback and for prune alike.
func (s *Store) target(ctx context.Context, at chainDir, headers []Header, host string) (Target, error) {
	var to Target
	var foreign *Snapshot // the newest that another has signed
	for _, h := range slices.Backward(headers) {
		if !h.ForEmergency() {
			if h.IsPartial() {
				to.Passed = append(to.Passed, Passed{Header: h, Partial: true})
			}
			continue
		}
		snap, err := at.load(h.fileName())
		d, err := asDamage(err)
		if err != nil {
			return Target{}, err
		}
		if d != nil {
			to.Passed = append(to.Passed, Passed{Header: h, Damage: []*DamageError{d}})
			continue
		}
		isForeign := host != "" && snap.header.Signer != host
		if isForeign {
			why := fmt.Errorf("it is signed by validator %s, not by this host's %s", snap.header.Signer, host)
			to.Passed = append(to.Passed, Passed{h, []*DamageError{{Path: at.path(h.fileName()), Err: why}}, true, false, false})
			if foreign != nil {
				continue
			}
		}
		damages, err := s.damages(ctx, snap)
		switch {
		case err != nil:
			return Target{}, err
		case len(damages) == 0 && !isForeign:
			to.Snapshot = snap
			return to, nil
		case len(damages) == 0:
			foreign = snap
		case isForeign:
			last := &to.Passed[len(to.Passed)-1]
			last.Damage = append(last.Damage, damages...)
		default:
			to.Passed = append(to.Passed, Passed{Header: h, Damage: damages})
		}
	}
	if foreign != nil { // it is not passed over
		to.Snapshot = foreign
		to.Passed = slices.DeleteFunc(to.Passed, func(p Passed) bool { return p.Header.ID == foreign.header.ID })
	}
	return to, nil
}
