package action

import (
	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// After an audit log was deleted or cut, it does not prove earlier actions; snapshots, savepoints
// or the host's key may be lost too. Every check reports that from then on. Only a backup restores
// them; so an operator can accept the loss, and the log records the acceptance with exactly these
// records.

// AcceptLoss logs that an operator accepts the loss of records of the root of a name, with the
// operator's statement and, unless "", reason.
func AcceptLoss(log *audit.Log, root string, lost []string, statement, reason string) error {
	return log.Append(audit.Event{Kind: audit.LossAccepted, Action: uuid.NewString(), Root: root, Lost: lost, Reason: withReason(statement, reason)})
}
