package records

import (
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// Kind is the kind of a [Flaw].
type Kind int

// The kinds of flaws, and which fields they have.
const (
	SnapshotGone     Kind = iota // the log has it, and it was not pruned: ID, Root, HasOthers
	ChainBroken                  // a snapshot does not continue the one before it: Break
	SnapshotUnlogged             // the log does not have it: ID, Root, Number
	SnapshotUnsealed             // it signs another log: Misfit
	SavepointMisfit              // the log and a savepoint do not fit: Misfit
	EndGone                      // the log has no end of a completed action: ID, Root, Path, Number
	RootMarkGone                 // the mark of a rollback in a root: Root
	BundleMarkGone               // the mark of a rollback of a bundle: ID, Root
	StrangeMark                  // a mark that the log does not have: ID
	KeyUnusable                  // the key of this host: Err
	OtherSigner                  // records are not signed by the key of this host: ID, Host, Root, Snapshots, Savepoints
)

// A Flaw is a difference between records.
type Flaw struct {
	Kind   Kind
	Root   string   // as the record has it that shows the flaw
	Path   string   // of the root
	ID     string   // of a snapshot, an action, a bundle or a signer; the name of a mark
	Number int64    // of a snapshot, or of an entry of the log
	Lost   []string // IDs of savepoints and snapshots that are lost, or not borne out

	HasOthers             bool // the root has other snapshots
	Break                 snapshot.Break
	Misfit                audit.Misfit
	Err                   error
	Host                  string // the signer of this host, "" for none
	Snapshots, Savepoints int    // how many records
}
