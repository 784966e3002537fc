package action

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// A Pruning removes snapshots that no record needs. Each removal is logged before it happens.
type Pruning struct {
	Snapshots  *snapshot.Store
	Savepoints func() (*savepoint.Store, error) // opens the store, which is closed after its use
	Log        OpenLog
	State      PruneState
	// WithEdits: snapshots with edits that a rollback removed are removed too.
	WithEdits bool
	Reason    string // of the operator, for the log; "" for none
}

// PruneState is what the state directory has of restore roots.
type PruneState interface {
	Bars
	// Halts returns the attempts that halt a root.
	Halts() ([]string, error)
	// RootPath returns where the root is now that is known by a path.
	RootPath(name string) (string, error)
}

// Prune removes the snapshots that neither the policy nor a record keeps ([Retention]). The records are
// read when no snapshot is being taken any more. If they cannot be read, nothing is removed.
func (p *Pruning) Prune(ctx context.Context, policy snapshot.Policy) (snapshot.Pruned, error) {
	log, err := p.Log()
	if err != nil {
		return snapshot.Pruned{}, err
	}
	defer log.Close()
	policy.Goes = func(h snapshot.Header) error {
		return log.Append(audit.Event{Kind: audit.SnapshotPruned, Action: uuid.NewString(), Root: h.Root, Snapshot: h.ID, Reason: p.Reason})
	}
	retention := sync.OnceValues(p.retention)
	pruned, err := p.Snapshots.Prune(ctx, policy, func(h snapshot.Header) string {
		keep, err := retention()
		if err != nil {
			return "cannot determine what refers to it"
		}
		return keep.Of(h)
	})
	if _, unknown := retention(); err == nil {
		err = unknown
	}
	return pruned, err
}

// retention returns why snapshots must stay. Edits that a rollback removed are a reason, unless they are
// to be removed too.
func (p *Pruning) retention() (*Retention, error) {
	savepoints, err := p.Savepoints()
	if err != nil {
		return nil, err
	}
	defer savepoints.Close()
	log, err := p.Log()
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var attempts audit.Attempts
	var rolledBack []string
	head, err := log.Read(func(e audit.Entry) error {
		attempts.See(&e)
		if e.Kind == audit.RolledBack && !p.WithEdits {
			rolledBack = append(rolledBack, e.Action)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	marked, err := p.State.Halts()
	if err != nil {
		return nil, err
	}
	return RetentionOf(savepoints, p.Snapshots, Records{
		Open: slices.Collect(maps.Keys(head.Open)), Halted: append(marked, attempts.Halted...), Roots: attempts.Roots, Path: p.State.RootPath, Bars: p.State,
		RolledBack: rolledBack,
	})
}
