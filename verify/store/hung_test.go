package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/hungfs"
)

// TestHungDirectory: each way to read a store in a directory whose file system does not answer ends with
// an error within the patience, and at once when it is interrupted. The requests that stay in the kernel
// are bounded, and the store is read as before when the file system answers.
func TestHungDirectory(t *testing.T) {
	dir := t.TempDir()
	outputs := map[string]string{"a": random(1, 3000), "b": random(2, 300<<10)}
	run := withBlocks(t, outputs)
	b := verified(t, run)
	mustPush(t, quick(t, "file://"+dir), b, state(t))
	hung := hungfs.Mount(t, dir)
	const patience = 3 * shortly
	type store struct {
		*Store
		view *farView
	}
	open := func(patience time.Duration) store {
		s := quickWith(t, "file://"+hung.Dir, patience)
		return store{s, view(t, s, b.Root())}
	}
	ways := map[string]func(ctx context.Context, s store) error{
		"list": func(ctx context.Context, s store) error { _, err := s.Runs(ctx); return err },
		"open": func(ctx context.Context, s store) error {
			_, err := s.Open(ctx, b.Root(), openDir(t, t.TempDir()))
			return err
		},
		"stat": func(ctx context.Context, s store) error { _, err := s.stat(ctx, runsPrefix+b.Root()); return err },
		"read": func(ctx context.Context, s store) error { _, err := s.view.read(ctx, "a", 0, 10); return err },
	}
	short, long := open(patience), open(time.Hour)
	for name, way := range ways {
		hung.Hang()
		began := time.Now()
		if err := way(t.Context(), short); !isFault(err) || !errors.Is(err, errStalled) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(began); took > deadline {
			t.Errorf("%s took %v", name, took)
		}
		hung.Answer()
		harness.Eventually(t, name+" works again", func() bool { return hung.Waiting() == 0 })

		hung.Hang()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- way(ctx, long) }()
		harness.Eventually(t, name+" waits", func() bool { return hung.Waiting() > 0 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s is interrupted: %v", name, err)
		}
		hung.Answer()
		harness.Eventually(t, name+" is left", func() bool { return hung.Waiting() == 0 })
	}

	hung.Hang()
	ended := make(chan error)
	const callers = 3 * stuckAtOnce
	for range callers {
		go func() { ended <- ways["list"](t.Context(), short) }()
	}
	for range callers {
		if err := <-ended; !isFault(err) {
			t.Error(err)
		}
	}
	if left := len(short.driver.(*aside).places); left != stuckAtOnce {
		t.Errorf("%d calls are left in the kernel", left)
	}
	hung.Answer()
	for name, way := range ways {
		if err := way(t.Context(), long); err != nil {
			t.Errorf("%s, afterwards: %v", name, err)
		}
	}
}
