package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// A back is the record of a rollback, or of the restore of a snapshot.
type back struct {
	Type     audit.Rollback // Session or Emergency
	Reason   string
	Target   string          // id of the snapshot that it restores; "" for none
	Affected []string        // ids of the commits that it undoes
	Brings   []string        // ids of the commits that are in force again afterwards
	Stays    bool            // the chain of savepoints stays as it is
	Scope    []pathsafe.Path // what it may change; nil is the whole root
	// Becomes, unless nil, is what it makes of everything in the scope.
	Becomes *snapshot.Snapshot
}

// work is the change of a rollback, or of the restore of a snapshot.
type work struct {
	kind   string // see [staging.Change]
	swaps  []staging.Swap
	target comes                           // what is restored at the names
	check  func(ctx context.Context) error // reads that, and writes nothing
	fill   fill                            // makes it
	// moved, unless nil, is called with the entries that could not be moved, before anything
	// is final; its error undoes everything.
	moved func(stayed []staging.Stayed, left []Left) error
}

// A Result is what a rollback or the restore of a snapshot does.
type Result struct {
	Done     Done
	Left     []Left             // in the order of their paths
	Changes  []Change           // in the order of their paths
	Parted   []Parted           // in the order of their paths
	Owners   []snapshot.Owner   // of the restored entries
	Programs []snapshot.Program // of the restored entries
	Spaces   []Space            // that it needs, of a dry run with what the snapshot before it needs
	Open     []pathsafe.Path    // of a dry run, files that would be kept as things stand: a process has them open to write to
	// InPart is set if names stay that should have been removed or restored, see [Left]. For a
	// restore these are names that could not be read, and immutable or append-only ones. Commits
	// of which names stay are in force, so that the rest of them can be undone later.
	InPart bool
}

// Done is the recorded result of a rollback.
type Done struct {
	Action   string             // its id; "" of a dry run
	Snapshot *snapshot.Snapshot // of the state before
	// Kept lists the entries that other processes made or changed at the swapped names
	// meanwhile: the snapshot does not have them.
	Kept []staging.Kept
}

var errNoSnapshots = errors.New("no snapshot store")

// mayChange requires that this user can make something in the root, so that a dry run and what
// follows it end alike. The mode of a directory of his own is opened for that.
func (r *Root) mayChange() error {
	if r == nil || r.lock == nil {
		return nil // before says why
	}
	st, err := r.dir.Stat()
	if err != nil {
		return err
	}
	if why := restore.FixedBy(st, pathsafe.Stat{}); why != "" {
		return &FixedError{why}
	}
	if int(st.UID) == os.Geteuid() {
		if err := r.dir.Writable(); err != nil && machine.IsFault(err) { // such as a read-only file system
			return err
		}
		return nil
	}
	if err := r.dir.Writable(); err != nil {
		if !errors.Is(err, fs.ErrPermission) { // such as a read-only file system
			return err
		}
		return fmt.Errorf("the restore root belongs to user %d, and %w: %w", st.UID, errOthers, err)
	}
	return nil
}

// copyUp copies the entries that a rollback is going to change to the upper layer of an
// overlay, if the root is on one, before a snapshot records their inodes. swaps returns these
// entries from a look at the present state.
func (r *Root) copyUp(ctx context.Context, b back, dry bool, swaps func(look *snapshot.Snapshot) ([]staging.Swap, error)) error {
	if dry || r == nil || r.lock == nil || r.entry.DryRun || r.history.snapshots == nil {
		return nil // before says why
	}
	kind, err := r.dir.FileSystem()
	if err != nil || kind != unix.OVERLAYFS_SUPER_MAGIC {
		return err
	}
	if err := r.Hold(ctx); err != nil {
		return err
	}
	h := r.history
	look, err := h.snapshots.Look(ctx, snapshot.Request{Root: h.root, Dir: r.dir, Kind: snapshot.PreAction, Scope: b.Scope, Becomes: b.Becomes, Live: true})
	if err != nil {
		return err
	}
	all, err := swaps(look)
	if err != nil {
		return err
	}
	return r.lock.CopyUp(all)
}

// before is the first step of a rollback (rollback contract, section 4.2): earlier previews
// become void, and a snapshot of everything that can change is taken. A dry run only reads
// what may change: it writes nothing, in the root or elsewhere; its snapshot has no ID, and
// there is no action.
func (r *Root) before(ctx context.Context, b back, dry bool) (Done, error) {
	if r == nil || r.lock == nil {
		return Done{}, fmt.Errorf("the restore root was not entered: %w", r.reason())
	}
	h := r.history
	if h.snapshots == nil {
		return Done{}, errNoSnapshots
	}
	if dry {
		before, err := h.snapshots.Look(ctx, snapshot.Request{Root: h.root, Dir: r.dir, Kind: snapshot.PreAction, Scope: b.Scope, Becomes: b.Becomes, Live: true})
		return Done{Snapshot: before}, err
	}
	if r.entry.DryRun {
		return Done{}, errors.New("the restore root was entered for a dry run")
	}
	if err := r.Hold(ctx); err != nil { // before the snapshot, so that no other command changes its entries
		return Done{}, err
	}
	if h.authority != nil { // earlier previews and approvals become void, whatever the outcome
		if err := h.authority.Attempt(h.root); err != nil {
			return Done{}, err
		}
	}
	done := Done{Action: uuid.NewString()}
	var err error
	done.Snapshot, err = h.snap(ctx, done.Action, b.Scope, &b, b.members)
	if err != nil {
		return Done{}, err
	}
	return done, nil
}

// goBack rolls back a root (rollback contract, sections 4.2, 7 and 11), after before has
// returned what is done so far: all of the change happens or nothing. A dry run only adds to the
// result what would happen. Afterwards the chain of savepoints is that of the earlier state, and the
// result has the kept entries, and the directories that stay since other processes work in them. The
// error is a [*staging.Error], whose Rollback is nil if the root is as it was, and halts the root if
// not; or an [*UnfinishedError], which halts nothing: the change could not be undone for now, or is
// complete but could not be recorded.
func (r *Root) goBack(ctx context.Context, to *Result, b back, w work, dry bool) (err error) {
	before := to.Done.Snapshot
	if to.Changes, err = changesOf(w.swaps, before, w.target); err != nil {
		return err
	}
	if to.Spaces, err = roomFor(r, before, w.target, to.Changes); err != nil {
		return err
	}
	brought := restoredBy(to.Changes, to.Left, w.target)
	to.Parted = partedOf(brought)
	to.Owners, to.Programs = snapshot.OwnersOf(brought), snapshot.ProgramsOf(brought)
	if r.entry.DryRun { // what is to be done reads it when it writes it
		if err := w.check(ctx); err != nil {
			return err
		}
	}
	if dry {
		to.Open = staging.HeldOpen(r.dir, w.swaps)
		return nil
	}
	left, err := r.swap(ctx, to, b, w)
	if err == nil && left != nil {
		return &UnfinishedError{left}
	}
	if err == nil {
		return nil
	}
	r.halt(err)
	if stands := r.unmarked(err, w.kind); stands != nil {
		return stands
	}
	return r.history.failed(err, err)
}

// maxDisturbed is how often a rollback begins that other processes disturb.
const maxDisturbed = 5

// undisturbed does it again, from the beginning, where nothing was changed since other processes
// made something else of a name or of the directories to it, while that was planned or moved.
func undisturbed[T any](do func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		done, err := do()
		var failed *staging.Error
		again := errors.Is(err, snapshot.ErrUnsettled) || errors.As(err, &failed) && failed.Rollback == nil && failed.IsDisturbance()
		if !again || try == maxDisturbed {
			return done, err
		}
	}
}

// fill makes the trees of a change, see [staging.Tx.Stage].
type fill func(ctx context.Context, dir *pathsafe.Dir) error

// swap returns what could not be recorded of a change that is complete.
func (r *Root) swap(ctx context.Context, to *Result, b back, w work) (left *staging.HaltError, err error) {
	h, done := r.history, &to.Done
	tx, err := r.lock.PlanLocked(ctx, staging.Change{Kind: w.kind, Attempt: done.Action, Swaps: w.swaps})
	if err != nil {
		return nil, err
	}
	defer tx.Abort(&err)
	err = h.append(audit.Event{
		Kind: audit.RollbackBegin, Action: done.Action, Rollback: b.Type, Snapshot: done.Snapshot.ID(), Reason: b.Reason, Actions: b.Affected, Brings: b.Brings,
	})
	if err != nil {
		return nil, err
	}
	if err := tx.Begin(); err != nil {
		return nil, err
	}
	if err := tx.Stage(ctx, w.fill); err != nil {
		return nil, err
	}
	if err := tx.Move(ctx); err != nil {
		return nil, err
	}
	var stayed []Left
	for _, s := range tx.Stayed() {
		stayed = append(stayed, Left{Path: s.Path.String(), Why: s.Why.Error()})
	}
	if w.moved != nil {
		if err := w.moved(tx.Stayed(), stayed); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	if err := h.endBack(done.Action, done.Snapshot.Header()); err != nil {
		why := fmt.Errorf("it was carried out, but its records could not be written: %w", err)
		return &staging.HaltError{Attempt: done.Action, Kind: w.kind, Staging: tx.Staging(), Err: why}, nil
	}
	if err := tx.Close(); err != nil && r.entry.Leftover != nil {
		r.entry.Leftover(tx.Staging(), err)
	}
	done.Kept, to.Left = tx.Kept(), append(to.Left, stayed...)
	return nil, nil
}

// The members of what a snapshot before a rollback keeps, so that the next one to enter the
// root can end one that was interrupted.
const (
	saidAffected = "affected"
	saidType     = "rollback"
	saidBrings   = "brings"
	saidReason   = "reason"
	saidTarget   = "target"
	saidStays    = "savepoints_stay"
)

// IsBeforeRollback reports whether a snapshot was taken before a rollback or the restore of a snapshot.
func IsBeforeRollback(h snapshot.Header) bool {
	return h.Kind == snapshot.PreAction && h.Texts[saidType] != ""
}

// TargetOf returns the id of the snapshot to which the action after a snapshot goes back; ""
// for none.
func TargetOf(h snapshot.Header) string { return h.Texts[saidTarget] }

// Brings are the ids of the commits that the action after a snapshot brings back.
func Brings(h snapshot.Header) []string { return strings.Fields(h.Texts[saidBrings]) }

// SavepointNow is the member of a snapshot with the active savepoint.
const SavepointNow = "savepoint"

func (b *back) members(active string) map[string]string {
	said := map[string]string{
		SavepointNow: active, saidType: string(b.Type), saidReason: b.Reason,
		saidAffected: strings.Join(b.Affected, " "), saidBrings: strings.Join(b.Brings, " "),
		saidTarget: b.Target,
	}
	if b.Stays {
		said[saidStays] = "yes"
	}
	return said
}

// Refused logs that a rollback could not begin, and why, and halts the root unless that is
// harmless; it returns why. An error of one that had begun is logged already.
func (r *Root) Refused(kind audit.Rollback, affected []string, why error) error {
	return r.refused(kind, affected, true, why)
}

// refused is Refused. Whole: it was to take all of a commit or of a snapshot back.
func (r *Root) refused(kind audit.Rollback, affected []string, whole bool, why error) error {
	if why == nil || r == nil || r.history == nil || r.entry.DryRun {
		return why
	}
	var e *staging.Error
	var unfinished *UnfinishedError
	refusal, id, errs := Refusal{Root: r.history.root, Kind: kind, Commits: affected, Why: why}, "", []error{why}
	switch {
	case errors.As(why, &e) && e.Attempt != "":
		id = e.Attempt
	case errors.As(why, &unfinished):
		id = unfinished.Of.Attempt
	default:
		id = uuid.NewString()
		errs = append(errs, r.history.append(refusal.event(id)))
	}
	if whole {
		errs = append(errs, refusal.halt(id, r.entry.Bars))
	}
	if errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(errs) == 1 {
		return why
	}
	return errors.Join(errs...)
}

// endBack records the end of a rollback, also of one that was found complete; its details are
// in the snapshot taken before it.
func (h *history) endBack(attempt string, before snapshot.Header) error {
	affected := strings.Fields(before.Texts[saidAffected])
	if before.Texts[saidStays] == "" {
		if err := h.savepoints.activate(h.root, affected, Brings(before)); err != nil {
			return err
		}
	}
	if err := h.revoke(affected); err != nil {
		return err
	}
	event := rolledBack(attempt, before)
	event.Reason = h.why(event.Reason)
	if err := h.once(event); err != nil {
		return err
	}
	if before.Texts[saidStays] == "" {
		h.unbar()
	}
	return nil
}

// rolledBack is the end of a rollback, as the snapshot before it describes it.
func rolledBack(attempt string, before snapshot.Header) audit.Event {
	return audit.Event{
		Kind: audit.RolledBack, Action: attempt, Rollback: audit.Rollback(before.Texts[saidType]), Snapshot: before.ID,
		Reason: before.Texts[saidReason], Actions: strings.Fields(before.Texts[saidAffected]), Brings: Brings(before),
	}
}

// revoke withdraws the access to the commits that were undone.
func (h *history) revoke(commits []string) error {
	if h.authority == nil {
		return nil
	}
	roots, err := h.savepoints.bundlesOf(h.root, commits)
	if err != nil {
		return err
	}
	return h.authority.RolledBack(h.root, roots)
}

// snapshotBefore is the snapshot that was taken before an action.
func (h *history) snapshotBefore(attempt string) (snapshot.Header, error) {
	if h.snapshots == nil {
		return snapshot.Header{}, errNoSnapshots
	}
	for _, root := range []string{h.root, ""} { // the root may have moved since
		all, _, err := h.snapshots.Survey(root)
		if err != nil {
			return snapshot.Header{}, err
		}
		for _, s := range all {
			if s.Action == attempt {
				return s, nil
			}
		}
	}
	return snapshot.Header{}, fmt.Errorf("the snapshot before %s is gone", attempt)
}

// snap takes the snapshot before an action (rollback contract, section 4.2). What
// cannot be taken back is not begun. A commit has no b.
func (h *history) snap(ctx context.Context, attempt string, scope []pathsafe.Path, b *back, said func(active string) map[string]string) (*snapshot.Snapshot, error) {
	active, err := h.savepoints.active(h.root)
	if err != nil {
		return nil, err
	}
	log, err := h.logged()
	if err != nil {
		return nil, err
	}
	h.snapped = true
	req := snapshot.Request{
		Root: h.root, Dir: h.dir, Kind: snapshot.PreAction, Action: attempt, Scope: scope, Texts: said(active),
		Log: log, Key: h.savepoints.key, Follows: h.logSnapshot,
	}
	if b != nil {
		req.AnyKey, req.Live, req.Becomes = true, true, b.Becomes
	}
	s, err := h.snapshots.Take(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("no snapshot could be taken before it, so it is not begun: %w", err)
	}
	if h.took != nil {
		h.took(s)
	}
	return s, nil
}
