package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// The owner of a file can hold a lease on it (fcntl), which has to be given up before another
// process opens the file. The kernel asks for that, and takes the lease away when
// fs.lease-break-time is over (45 s). All files are tried before one is waited for, so that all
// leases run out at the same time, and there is one time for all of an action.

// leases are those that an action waits for.
type leases struct {
	mu    sync.Mutex
	until time.Time // the end of all waiting; zero before the first
}

// leasePoll is how often a leased file is opened again.
const leasePoll = 20 * time.Millisecond

// LeasePatience returns how long an action waits for all leases: as long as the kernel lets their
// owners keep them, and a little more.
var LeasePatience = sync.OnceValue(func() time.Duration {
	const usual, most = 45, 60
	seconds := usual
	if raw, err := os.ReadFile("/proc/sys/fs/lease-break-time"); err == nil {
		if n, err := strconv.Atoi(string(bytes.TrimSpace(raw))); err == nil {
			seconds = min(n, most)
		}
	}
	return time.Duration(seconds+2) * time.Second
})

// errLeased: a process does not give up its lease on a file in time.
var errLeased = machine.Disturbed("it cannot be opened: another process holds a lease on it")

// leased are the files of a take that could not be opened for that, so far.
type leased struct {
	mu    sync.Mutex
	files []*Entry
}

func (l *leased) add(e *Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files = append(l.files, e)
}

// await reads the files that were leased when everything else was read.
func (r *reader) await(ctx context.Context, files []*Entry) error {
	slices.SortFunc(files, func(a, b *Entry) int { return comparePaths(a.Path, b.Path) })
	for _, e := range files {
		err := r.file(ctx, e)
		if errors.Is(err, pathsafe.ErrLeased) {
			err = r.awaitOne(ctx, e)
		}
		if err != nil {
			return &scanError{e.Path, asMounted(err)}
		}
	}
	return nil
}

func (r *reader) awaitOne(ctx context.Context, e *Entry) error {
	if r.sysHook.watch.Waits != nil {
		r.sysHook.watch.Waits(e.Path)
	}
	until := r.leases.begin()
	for {
		err := r.file(ctx, e)
		if !errors.Is(err, pathsafe.ErrLeased) {
			return err
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w (%s)", errLeased, machine.LeaseText(e.Dev, e.Ino))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leasePoll):
		}
	}
}

func (l *leases) begin() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until.IsZero() {
		l.until = time.Now().Add(LeasePatience())
	}
	return l.until
}
