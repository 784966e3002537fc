package action

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// A lost attempt has begun in the log and has not ended there, and its staging directory is not in
// the root. The root is compared with the snapshot before it, at the names that it was to change:
//
//   - The inode that was there, or nothing where nothing was: as before, or edited in place.
//   - What the attempt was to put there, by content: the attempt is half done, and halts the root.
//   - Anything else: another program may have put it there. The attempt is ended and named.
type lost struct {
	before *snapshot.Snapshot
	others map[string]snapshot.Entry // entries at the names that are not as before, by path
}

// The reasons of the end of an attempt of which nothing was found. Elsewhere is another directory
// than the one that the attempt began in, so that it may be found after all.
const (
	notFound  = "no trace of it was found"
	elsewhere = notFound + ": another directory is at the path of the root"
)

// errUnclear reports that the root is not as it was before an attempt that has ended.
var errUnclear = errors.New("the root has no staging directory of it, and some of its names are neither in their old nor in their new state")

// endLost ends, under the lock, the attempts of which nothing is in the root. Of one that is half done
// it returns the halt, which is marked and logged. A true end is logged as in [history.trueEnd].
func (r *Root) endLost(ids []string) (ended []staging.Outcome, halts []error, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	h := r.history
	var all savepoint.Survey
	if h.savepoints.store != nil {
		if all, err = h.savepoints.store.Survey(h.root); err != nil {
			return nil, nil, err
		}
	}
	for _, id := range ids {
		event, known := h.trueEnd(id, &all)
		var left error
		if !known {
			var halt bool
			event.Reason, halt, left = r.endOfLost(id)
			if halt {
				halts = append(halts, &staging.HaltError{Attempt: id, Kind: "action", Err: left})
				err = errors.Join(err, r.haltLost(id, left))
				continue
			}
			if event.Reason == "" {
				err = errors.Join(err, left)
				continue
			}
		}
		if len(event.Actions) > 0 {
			err = errors.Join(err, h.revoke(event.Actions))
		}
		err = errors.Join(err, h.once(event))
		switch {
		case event.Kind == audit.CommitEnd:
			ended = append(ended, staging.Outcome{Attempt: id, Kind: staging.KindCommit, Result: staging.Completed})
		case len(event.Actions)+len(event.Brings) > 0:
			ended = append(ended, staging.Outcome{Attempt: id, Kind: "rollback", Result: staging.Completed})
		case left != nil:
			ended = append(ended, staging.Outcome{Attempt: id, Kind: "action", Result: staging.Cleared, Left: left})
		}
		if r.entry.Halts != nil { // it may be marked, and all of it has gone
			err = errors.Join(err, r.entry.Halts.Release(id))
		}
	}
	return ended, halts, err
}

// haltLost marks and logs a halt.
func (r *Root) haltLost(id string, why error) error {
	var err error
	if r.entry.Halts != nil {
		err = r.entry.Halts.Halt(id)
	}
	return errors.Join(err, r.history.halt(id, why))
}

// endOfLost compares the root with the snapshot before a lost attempt, see [lost]. Left is why it
// halts the root, or a remark on one that ends; reason is the logged reason of its end, "" if
// a fault of the machine prevents a decision, and left is then that fault.
func (r *Root) endOfLost(id string) (reason string, halts bool, left error) {
	if r.history.snapshots == nil {
		return notFound, false, nil
	}
	before, err := beforeCommit(r.history.snapshots, r.history.root, id)
	switch {
	case err != nil && machine.IsFault(err):
		return "", false, err
	case err != nil:
		return "", true, fmt.Errorf("%w, and the earlier state is unknown: %w", errRemoved, err)
	}
	top, err := r.dir.Stat()
	if err != nil {
		return "", false, err
	}
	if was, err := before.At(pathsafe.Path{}); err == nil && was.Ino != 0 && was.Ino != top.ID.Ino {
		return elsewhere, false, fmt.Errorf("another directory is at %q than the one that it began in: if that was moved, run \"spectrum recover\" with its new path; the earlier state is in snapshot %s", r.history.root, short(before))
	}
	l := lost{before, map[string]snapshot.Entry{}}
	first := ""
	for e := range before.Entries() {
		if !r.isStill(&e) {
			l.others[e.Path], first = e, cmp.Or(first, e.Path)
		}
	}
	half, err := r.isHalfDone(id, &l) // also where nothing is another: what was not there is not listed beneath a directory
	switch {
	case err != nil:
		return "", false, err
	case half:
		return "", true, errRemoved
	case len(l.others) == 0:
		return notFound, false, nil
	}
	return notFound, false, fmt.Errorf("%w, %q for one; compare them with \"spectrum snapshot diff %s\"; \"spectrum snapshot restore %s\" brings back what was there before", errUnclear, first, short(before), short(before))
}

// isLost reports whether a lost attempt halts the root.
func (r *Root) isLost(id string) bool {
	_, halts, _ := r.endOfLost(id)
	return halts
}

// short is the beginning of the id of a snapshot.
func short(s *snapshot.Snapshot) string {
	const digits = 8
	return s.ID()[:digits]
}

// isStill reports whether the inode of an entry is at its path, or the path is free if it was
// free before. A directory counts if its earlier entries do.
func (r *Root) isStill(was *snapshot.Entry) bool {
	if was.Path == "" || was.Type != snapshot.File && was.Type != snapshot.Link && was.Type != snapshot.Absent {
		return true
	}
	now, err := r.standsAt(was.Path)
	if was.Type == snapshot.Absent {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && now.ID.Ino == was.Ino && now.Mode.Type() == was.Stat().Mode.Type()
}

func (r *Root) standsAt(path string) (pathsafe.Stat, error) {
	at, err := pathsafe.Found(path)
	if err != nil {
		return pathsafe.Stat{}, err
	}
	return standing(r.dir, at)
}

// isHalfDone reports whether an entry that the attempt was to make is at a name: a file of the
// commit; for a restore the entry of its target snapshot; for a rollback any other entry.
func (r *Root) isHalfDone(id string, l *lost) (bool, error) {
	if r.history.savepoints.store != nil {
		sp, err := r.history.savepoints.store.Prepared(r.history.root, id)
		if err == nil {
			return r.isHalfCommitted(sp, l)
		}
		if machine.IsFault(err) {
			return false, err
		}
	}
	all, _, err := r.history.snapshots.Survey(r.history.root)
	if err != nil {
		return false, err
	}
	target := TargetOf(l.before.Header())
	hasTarget := slices.ContainsFunc(all, func(h snapshot.Header) bool { return h.ID == target })
	for _, h := range slices.Backward(all) {
		if h.ID == l.before.ID() || hasTarget && h.ID != target {
			continue
		}
		s, err := r.history.snapshots.Find(h.ID)
		if err != nil && machine.IsFault(err) {
			return false, err
		}
		if err == nil && (r.lacksSome(l, s) || r.hasSome(l, s.Entries())) {
			return true, nil
		}
	}
	return false, nil
}

// isHalfCommitted is isHalfDone for a commit. A removed file counts if it is gone.
func (r *Root) isHalfCommitted(sp savepoint.Savepoint, l *lost) (bool, error) {
	created, err := createdBy(sp)
	if err != nil {
		return false, err
	}
	removed, err := removedBy(created, l.before)
	if err != nil {
		return false, err
	}
	for _, e := range removed {
		if _, err := r.standsAt(e.Path); errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
	}
	return r.hasSome(l, func(yield func(snapshot.Entry) bool) {
		for _, e := range created {
			if !yield(snapshot.Entry{Path: e.Path.String(), Type: snapshot.File, Size: anySize, Digest: e.Digest}) {
				return
			}
		}
	}), nil
}

// anySize is the size of an entry that does not say it.
const anySize = -1

// hasSome reports whether one of these files, which was not there before, is at a name that is not as
// before, or beneath one, or at which nothing was.
func (r *Root) hasSome(l *lost, files iter.Seq[snapshot.Entry]) bool {
	for want := range files {
		at, err := pathsafe.Found(want.Path)
		if err != nil || want.Type != snapshot.File || !l.isNew(at, &want) {
			continue
		}
		now, err := standing(r.dir, at)
		if err == nil && now.Mode.IsRegular() && (want.Size == anySize || want.Size == now.Size) && r.holds(at, want.Digest) {
			return true
		}
	}
	return false
}

// isNew reports whether a file is at a name that is not as before, or beneath one, and has another
// content than was there; or at one at which nothing was.
func (l *lost) isNew(file pathsafe.Path, want *snapshot.Entry) bool {
	for at := file; at != (pathsafe.Path{}); at, _ = at.Parent() {
		if was, is := l.others[at.String()]; is {
			return was.Path != want.Path || was.Type != snapshot.File || was.Digest != want.Digest
		}
	}
	was, err := l.before.At(file)
	return err == nil && was.Type == snapshot.Absent
}

// lacksSome reports whether nothing is at a name at which something was, and nothing in another
// snapshot.
func (r *Root) lacksSome(l *lost, other *snapshot.Snapshot) bool {
	for path, was := range l.others {
		at, err := pathsafe.Found(path)
		if err != nil || was.Type == snapshot.Absent {
			continue
		}
		if e, err := other.At(at); err != nil || e.Type != snapshot.Absent {
			continue
		}
		if _, err := standing(r.dir, at); errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// holds reports whether the content of a file has this digest, as far as it can be read.
func (r *Root) holds(at pathsafe.Path, digest snapshot.Digest) bool {
	f, _, err := r.dir.OpenRegular(at, pathsafe.NoLinks)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return err == nil && snapshot.Digest(sum.Sum(nil)) == digest
}

// isReleased reports whether an operator has released an attempt that is in the root without a
// halt mark: its staging directory was away then, and was put back. It is not resumed, since
// its remains were to stay. An attempt with another end in the log, or with none, is resumed:
// its journal is better evidence than the log, in which an attempt without a trace in the root
// is ended; and a power cut or a restored disk image can bring back a half-done root. The
// entries are compared by identity, so names change only if they were not changed since.
func (r *Root) isReleased(u *staging.Unfinished, mode staging.Mode) (bool, error) {
	marked := r.isMarked(&staging.HaltError{Attempt: u.Attempt, Staging: u.Staging})
	if r.history.log == nil || mode == staging.Acknowledged || u.Err != nil || marked || !r.hasFile(u.Staging, intentName) {
		return false, nil
	}
	end, err := r.history.log.Ended(u.Attempt)
	if err != nil || end.Kind != audit.Released {
		return false, err
	}
	_, strange := staging.Inspect(r.dir, r.entry.Key, u.Staging) // a journal that cannot be believed halts the root
	return strange == nil, nil
}

// intentName is the first record of a journal.
const intentName = sys.Prefix + "intent"

// asReleased returns the outcome of a released attempt, which is left untouched.
func (r *Root) asReleased(u *staging.Unfinished) staging.Outcome {
	at := strings.ReplaceAll(filepath.Join(r.real, u.Staging), "'", `'\''`)
	left := fmt.Errorf("it was released, so it is not resumed; its staging directory was put back later and is left as it is: inspect it, then remove it with \"rm -r '%s'\"", at)
	return staging.Outcome{Attempt: u.Attempt, Kind: u.Kind, Result: staging.Released, Left: left}
}
