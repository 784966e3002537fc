package main

import (
	"context"
	"errors"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/cancelable"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestStuckCandidateStaysOpen: a candidate that a reader which was left behind still reads is not
// closed.
func TestStuckCandidateStaysOpen(t *testing.T) {
	t.Parallel()
	project, err := pathsafe.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer project.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, answer, read := &candidate{project: project}, make(chan struct{}), make(chan error, 1)
	_, err = examine(ctx, c, func() (struct{}, error) {
		<-answer
		_, err := project.Names()
		read <- err
		return struct{}{}, err
	})
	if !errors.Is(err, cancelable.ErrStuck) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	c.close()
	close(answer)
	if err := <-read; err != nil {
		t.Errorf("what was left behind: %v", err)
	}

	c = &candidate{project: project}
	if _, err := examine(context.Background(), c, project.Names); err != nil {
		t.Error(err)
	}
	c.close()
	if _, err := project.Names(); err == nil {
		t.Error("an unread candidate stays open")
	}
}
