package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// savepoints prepares the record of a commit before anything is written, and
// publishes it when everything is in place: whenever the commit is killed, the
// next one to enter the root finds which of both it must be. The zero savepoints
// keeps none.
type savepoints struct {
	store *savepoint.Store
	host  func() (Host, error)
}

// prepare ignores signals: it is short, and the attempt has begun.
func (s savepoints) prepare(root, id, attempt string, draft *savepoint.Draft) error {
	if s.store == nil || draft == nil {
		return nil
	}
	draft.Said[rootID] = id
	host, err := s.host()
	if err != nil {
		return fmt.Errorf("the key that signs savepoints: %w", err)
	}
	_, err = s.store.Prepare(context.Background(), root, attempt, *draft, host.Key, host.BuildID)
	return err
}

// key is the key of the host.
func (s savepoints) key() (bundle.Key, error) {
	if s.host == nil {
		return bundle.Key{}, errors.New("the restore root was entered without a host")
	}
	host, err := s.host()
	return host.Key, err
}

func (s savepoints) publish(root, attempt string) (string, error) {
	if s.store == nil {
		return "", nil
	}
	id, err := s.store.Publish(root, attempt)
	if err == nil && id == "" {
		id, err = s.store.PublishMoved(attempt)
	}
	return id, err
}

func (s savepoints) drop(root, attempt string) error {
	if s.store == nil {
		return nil
	}
	return s.store.Drop(root, attempt)
}

// SavepointOf is a savepoint as the audit log is compared with it.
func SavepointOf(sp savepoint.Savepoint) audit.Savepoint {
	return audit.Savepoint{ID: sp.ID(), Attempt: sp.Attempt(), Root: sp.Root(), Mark: sp.Said(LogMark)}
}

// active is the id of the active savepoint: the newest of the chain that can be read; "" for
// none.
func (s savepoints) active(root string) (string, error) {
	if s.store == nil {
		return "", nil
	}
	all, err := s.store.Survey(root)
	if err != nil || len(all.Standing) == 0 {
		return "", err
	}
	return all.Standing[len(all.Standing)-1].ID(), nil
}

// activate moves the chain back, or forward again, as recorded before anything was changed. A
// damaged chain does not block a root that is in its final state already.
func (s savepoints) activate(root string, gone, back []string) error {
	if s.store == nil {
		return nil
	}
	err := s.store.Activate(root, gone, back)
	var damaged *savepoint.DamageError
	if errors.As(err, &damaged) {
		return nil
	}
	return err
}

// bundlesOf returns the bundle roots of commits, in force or undone.
func (s savepoints) bundlesOf(root string, commits []string) ([]string, error) {
	if s.store == nil || len(commits) == 0 {
		return nil, nil
	}
	all, err := s.store.Survey(root)
	if err != nil {
		return nil, err
	}
	var roots []string
	for _, sp := range append(all.Standing, all.Retired...) {
		if slices.Contains(commits, sp.Attempt()) {
			roots = append(roots, sp.Texts(BundleRoots)...)
		}
	}
	return roots, nil
}

// rootID is the member of a savepoint's constraints that identifies its directory among others
// at the same path.
const rootID = "restore_root_id"

// dropAll drops the savepoints that are still prepared for a directory in which every attempt
// has ended. Those prepared for another directory that had the same path stay: it may come
// back with a commit that is complete.
func (s savepoints) dropAll(root, id string) error {
	if s.store == nil {
		return nil
	}
	attempts, err := s.pending(root, id)
	for _, attempt := range attempts {
		err = errors.Join(err, s.store.Drop(root, attempt))
	}
	return err
}

// pending are the attempts of this very root for which a savepoint is prepared.
func (s savepoints) pending(root, id string) (own []string, err error) {
	if s.store == nil {
		return nil, nil
	}
	attempts, err := s.store.Pending(root)
	if _, is := errors.AsType[*savepoint.DamageError](err); is { // no rollback needs its contents
		return nil, nil
	}
	for _, attempt := range attempts {
		sp, strange := s.store.Prepared(root, attempt)
		if strange == nil && sp.Said(rootID) == id {
			own = append(own, attempt)
		}
	}
	return own, err
}

// draftOf returns the savepoint of an approved restore: its files, what was approved, and the
// approver. Its report has the result once it is published.
func draftOf(a *preview.Approved) (*savepoint.Draft, error) {
	outputs, err := a.Targets()
	if err != nil {
		return nil, err
	}
	outcome := a.Outcome()
	raw, err := outcome.JSON()
	if err != nil {
		return nil, err
	}
	said := a.Claims()
	maps.Copy(said, map[string]any{
		"approval":              outcome.Statement,
		"parent_savepoint_id":   outcome.ParentID,
		"preview_id":            outcome.PreviewID,
		"restored_candidate_id": outcome.RestoredID,
		BundleRoots:             a.BundleRoots(),
		resultArtifacts:         artifactsOf(a),
		SourceID:                outcome.SourceID,
		Signers:                 signersOf(a),
	})
	if completed := a.Completed(); !completed.IsZero() && completed.Before(time.Now()) { // what is yet to come is not a time of completion
		said[preview.CandidateCompleted] = completed.UTC().Format(time.RFC3339Nano)
	}
	return &savepoint.Draft{Outputs: outputs, Said: said, Report: savepoint.Report{Markdown: report.Commit(outcome), JSON: raw}}, nil
}

// BundleRoots is the member of a savepoint's constraints with the bundle roots of the
// candidate, and of the runs derived from it.
const BundleRoots = "bundle_roots"

// SourceID is the member of a savepoint's constraints with the candidate that was approved.
const SourceID = "source_savepoint_id"

// Signers is the member of a savepoint's constraints with the runs of the candidate, in chain order,
// each as the validator_id that signed it, a space and its run_id. Savepoints of older versions have
// none.
const Signers = "signers"

func signersOf(a *preview.Approved) []string {
	var all []string
	for _, run := range a.Signed() {
		all = append(all, run.ValidatorID+" "+run.RunID)
	}
	return all
}

// LogMark is the member of a savepoint's constraints that has the last entry of the audit
// log before the commit, see [audit.Log.Mark]. Savepoints of older versions have none.
const LogMark = "audit_log"

// resultArtifacts is the member of a savepoint's constraints that has the hashes of
// the result artifacts.
const resultArtifacts = "result_artifacts"

// OwnArtifacts returns the digests of the result artifacts that the commit of the active savepoint of a
// root made, by their paths: the next commit replaces them.
func OwnArtifacts(savepoints *savepoint.Store, root string) (map[string][sha256.Size]byte, error) {
	active, ok, err := savepoints.Tip(root)
	if err != nil || !ok {
		return nil, err
	}
	files, err := active.Hashes(resultArtifacts)
	if err != nil {
		return nil, err
	}
	own := map[string][sha256.Size]byte{}
	for _, f := range files {
		own[f.Path.String()] = f.Digest
	}
	return own, nil
}

// artifactsOf are the hashes of the result artifacts, by path beneath the restore
// root.
func artifactsOf(a *preview.Approved) map[string]string {
	hashes := map[string]string{}
	for run := range a.Restore().Plan().Runs() {
		for _, artifact := range run.Artifacts() {
			sum := sha256.Sum256([]byte(artifact.Data))
			hashes[artifact.Path] = "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return hashes
}
