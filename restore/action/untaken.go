package action

import (
	"errors"
	"strings"

	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A manifest that does not verify and that the audit log does not have was never a snapshot: it is
// damage, and to name it is a mistake, which halts nothing. A log that cannot be read proves nothing:
// then no manifest counts as one that was never taken.

// A Logged is the set of snapshots that the audit log names, and "" if an entry names none.
type Logged map[string]bool

// LoggedSnapshots returns the snapshots that the audit log names.
func LoggedSnapshots(read ReadLog) (Logged, error) {
	known := Logged{}
	_, err := read(func(e audit.Entry) error {
		known[e.Snapshot] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return known, nil
}

// NeverTaken separates the snapshots of which the manifests do not verify and that the log does not
// have, and returns the damage of those.
func (l Logged) NeverTaken(all []snapshot.Header, find func(id string) (*snapshot.Snapshot, error)) (rest []snapshot.Header, forged []*snapshot.DamageError) {
	for _, h := range all {
		if !l[h.ID] {
			_, err := find(h.ID)
			if d, is := errors.AsType[*snapshot.DamageError](err); is {
				forged = append(forged, d)
				continue
			}
		}
		rest = append(rest, h)
	}
	return rest, forged
}

// IsUntaken reports whether a damaged path of the store is the manifest of a snapshot that the log does
// not have. A log without any entry proves nothing.
func (l Logged) IsUntaken(damaged string) bool {
	_, id, isManifest := strings.Cut(damaged[strings.LastIndexByte(damaged, '/')+1:], "-")
	return isManifest && strings.HasPrefix(damaged, "roots/") && len(l) > 0 && !l[id]
}
