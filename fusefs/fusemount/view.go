package fusemount

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"golang.org/x/sys/unix"
)

// A View is a mounted tree with its running server. It ends when it is
// unmounted, by [View.Unmount] or from outside.
type View struct {
	sys    system
	server *fusefs.Server
	seat   *mountpointDir
	path   string // as it was when it was mounted
	mount  mountID
	unique uint64 // see heldDir
	log    *slog.Logger
	done   chan struct{} // closed when the server has ended

	revoked chan struct{} // see Revoked
}

// Path is the mount point with all symbolic links resolved.
func (v *View) Path() string { return v.path }

// Wait returns when the view is no longer served: unmounted, or its connection
// was cut.
func (v *View) Wait() { <-v.done }

// Done is closed when the view is no longer served.
func (v *View) Done() <-chan struct{} { return v.done }

// serve runs the server to its end. A connection that was aborted from outside
// (/sys/fs/fuse/connections) leaves a dead mount of this process behind, which is unmounted.
// ready receives nil when v is complete, or the reason why not: then the caller keeps the
// seat.
func (v *View) serve(ready <-chan error) {
	defer close(v.done)
	v.server.Serve()
	failed := <-ready
	if failed != nil {
		return
	}
	defer v.seat.close()
	if err := v.takeAway(true); err != nil && !errors.Is(err, ErrHidden) {
		v.log.Warn("the server of the view has ended but the mount could not be removed", "mount point", v.path, "error", err)
	}
}

const (
	// retryEvery is the time between two attempts to unmount a busy view.
	retryEvery = 50 * time.Millisecond

	// endsWithin is the time limit for the server to end after the unmount: only a read that hangs
	// in its source takes time.
	endsWithin = 5 * time.Second
)

// ErrStuck means that the view is unmounted, but a read of a source does not return. The goroutine
// that waits for it ends with the process.
var ErrStuck = errors.New("a read of a source file hangs")

// Unmount unmounts the view. While it is held open, Unmount retries until the grace has passed
// or ctx is done, after logging the holders; then it detaches the view: it vanishes from the
// path, and the holders get errors. After a nil no goroutine and no descriptor of the view is
// left. A view that is not mounted any more is not an error.
func (v *View) Unmount(ctx context.Context, grace time.Duration) error {
	v.server.End()
	if err := v.detach(ctx, grace); err != nil {
		return err
	}
	if !v.end() {
		return fmt.Errorf("unmount %q: %w", v.path, ErrStuck)
	}
	return nil
}

// end waits for the server of an unmounted view, and reports whether it has ended. The kernel
// ends it when the mount has no holder; a remaining holder would keep it running, so after a
// moment the connection is closed.
func (v *View) end() bool {
	for deadline := time.Now().Add(endsWithin); time.Now().Before(deadline); {
		if v.endsIn(retryEvery) {
			return true
		}
		v.server.HangUp()
	}
	return false
}

func (v *View) endsIn(d time.Duration) bool {
	select {
	case <-v.done:
		return true
	case <-time.After(d):
		return false
	}
}

// detach unmounts the view, lazily when the grace period is over.
func (v *View) detach(ctx context.Context, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	named := false
	for {
		err := v.takeAway(false)
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		if !named {
			named = v.nameHolders()
		}
		if ctx.Err() != nil || !time.Now().Before(deadline) {
			v.log.Warn("the view is still in use: detaching it", "mount point", v.path)
			return v.takeAway(true)
		}
		select {
		case <-ctx.Done():
		case <-v.done:
		case <-time.After(retryEvery):
		}
	}
}

// takeAway unmounts this view and no other mount, by the directory beneath it. It returns nil if
// the view is already unmounted, and an error if it is hidden under another mount, because it then
// cannot be identified.
func (v *View) takeAway(lazily bool) error {
	err := v.seat.use(func(dir *heldDir) error {
		m, err := v.find(dir)
		if err != nil || m == nil {
			return err
		}
		if err := v.unmount(dir, m, lazily); err != nil {
			return err
		}
		if m, err := v.find(dir); err == nil && m != nil {
			return errReplaced
		}
		return nil
	})
	if err == nil {
		return nil
	}
	switch m, tableErr := inTable(v.mount); {
	case tableErr != nil:
	case m == nil || !isThere(v.unique):
		return nil // another process has unmounted it
	case m.covered:
		err = ErrHidden
	}
	return fmt.Errorf("unmount %q: %w", v.path, err)
}

// find returns the entry of the view on its directory, or nil.
func (v *View) find(dir *heldDir) (*entry, error) {
	m, err := inTable(v.mount)
	switch {
	case err != nil || m == nil:
		return nil, err
	case m.Parent != dir.mount.ID || !isThere(v.unique):
		return nil, nil
	case m.covered:
		return nil, ErrHidden
	}
	return m, nil
}

// unmount does the work of takeAway. The helper requires a path: before a view with holders is
// unmounted lazily, its connection is aborted, so that the helper finds a dead mount.
func (v *View) unmount(dir *heldDir, m *entry, lazily bool) error {
	switch {
	case v.sys.direct && lazily:
		return dir.unmount(unix.MNT_DETACH)
	case v.sys.direct:
		return dir.unmount(0)
	}
	view := &heldDir{fd: -1, path: m.Mountpoint, mount: m.Info, unique: v.unique}
	if !lazily {
		return v.sys.unmountNamed(view, false)
	}
	if abortConnection(m.Info, v.unique) != nil {
		v.server.HangUp()
	}
	return v.sys.unmountDead(view)
}

// nameHolders logs the holders that keep the view busy, and reports whether there were any.
func (v *View) nameHolders() bool {
	holders := holdersOf(v.mount, -1)
	for _, h := range holders {
		v.log.Warn("the view is in use", "mount point", v.path, "pid", h.PID, "command", h.Command, "how", h.How, "path", h.Path)
	}
	return len(holders) > 0
}

// dropWithin is the time limit for the kernel to drop its cache: it waits for reads in progress,
// and one that hangs in its source never ends.
const dropWithin = 5 * time.Second

// Revoked is closed when another process has revoked the view (see [Other.Revoke]). It then
// ends: processes that hold it open get errors, also for data that the kernel had cached.
func (v *View) Revoked() <-chan struct{} { return v.revoked }

// obey waits for a revocation and carries it out: reads return no data any more, the kernel's
// cache is dropped, and only then the view vanishes from its path, so that nothing of a
// vanished view can be read.
func (v *View) obey() {
	select {
	case <-v.server.RevokeRequested():
	case <-v.done:
		return
	}
	v.server.End()
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		v.server.Drop()
	}()
	select {
	case <-dropped:
	case <-time.After(dropWithin):
		v.log.Warn("a read does not return: the kernel may still hold checked pages of the revoked view", "mount point", v.path)
	}
	close(v.revoked)
	if err := v.takeAway(true); err != nil {
		v.log.Error("the revoked view could not be removed", "mount point", v.path, "error", err)
	}
	v.end()
}
