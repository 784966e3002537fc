package snapshot

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// A file that is written through a mapping gets a new time of change only when a page
// becomes writable, not with each write. So equal times prove equal content only for
// pages that were not writable when the content was read: a sync of the file system
// takes that right away from every page, and the next write to it is seen again. Hence
// the rule: the content of a file may be taken over later if a sync that ended before it
// was read had begun after its time of change, plus a tick of the clock.

// syncProtects are the file systems on which a sync takes the right to write away from
// every mapped page, and the next write changes the time of change. In memory no sync
// does; over a network and in user space others write too.
var syncProtects = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC}

// tracksMappings reports whether the rule can be followed in a root.
func tracksMappings(root dir) (tracks bool, err error) {
	if root.s.everywhere {
		return true, nil
	}
	err = root.s.Do("file system of", root.H.Name(), func() error {
		magic, err := root.H.FileSystem()
		tracks = slices.Contains(syncProtects, magic)
		return err
	})
	return tracks, err
}

// syncBeforeReading syncs the file system of the root before any content is read, and records when
// that began. It first lets the clock tick once for a file that was changed just now. Where nothing is
// read the sync of the baseline counts.
func (t *take) syncBeforeReading(ctx context.Context, entries []Entry) error {
	t.synced = time.Time{}
	if !t.tracked || t.looks {
		return nil
	}
	if !slices.ContainsFunc(entries, func(e Entry) bool { return e.unread }) {
		if b := t.base(); b != nil {
			t.synced = b.synced
		}
		return nil
	}
	now := time.Now()
	var last time.Time
	for i := range entries {
		if e := &entries[i]; e.unread && e.ChangeTime.After(last) && e.ChangeTime.Before(now.Add(fineTick)) {
			last = e.ChangeTime
		}
	}
	if err := ticked(ctx, last); err != nil {
		return err
	}
	t.synced = time.Now().UTC().Round(0)
	return t.root.SyncFS()
}

// ticked waits until the clock of a file system has ticked after a change, if that was
// just now.
func ticked(ctx context.Context, change time.Time) error {
	wait := time.Until(change.Add(fineTick + time.Millisecond))
	if wait <= 0 || wait > 2*fineTick {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// fresh reports whether a file may have pages that can be written without being seen: it
// was changed after the sync began, or right before. Times without fractions are too
// coarse to tell.
func (t *take) fresh(change time.Time) bool {
	return !t.synced.IsZero() && change.Nanosecond() != 0 &&
		!change.Add(fineTick).Before(t.synced) && change.Before(time.Now().Add(fineTick))
}

// errRestless: a file is written to whenever it is looked at.
var errRestless = restless{errUnsettled}

type restless struct{ error }

func (r restless) Unwrap() error { return r.error }

// rested syncs a file that was changed just now, and returns what it is then. From then on
// every write to it is seen.
func (r *reader) rested(ctx context.Context, f *os.File, st pathsafe.Stat) (pathsafe.Stat, error) {
	if err := ticked(ctx, st.ChangeTime); err != nil {
		return st, err
	}
	begun := time.Now()
	if err := r.sysHook.SyncFile(f); err != nil {
		return st, err
	}
	st, err := r.sysHook.Identify(f)
	if err == nil && !st.ChangeTime.Add(fineTick).Before(begun) {
		err = errRestless
	}
	return st, err
}

// The names that a take reports.
type notes struct {
	restless map[string]bool // files that were written to while they were read
	leftOut  map[string]bool // what went away or became another thing meanwhile
}

func (t *take) note(set *map[string]bool, path string) {
	t.noting.Lock()
	defer t.noting.Unlock()
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[path] = true
}
