package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// hangingContent blocks until its reader gives up.
type hangingContent struct {
	fakeContent
	began chan struct{}
}

func (h hangingContent) ReadContext(ctx context.Context, _ []byte, _ int64) (int, error) {
	h.began <- struct{}{}
	<-ctx.Done()
	return 0, fmt.Errorf("hanging: %w", ctx.Err())
}

// TestInterruptible: a read that waits for its bytes ends when its reader is interrupted, and when the view
// ends. Neither is a finding.
func TestInterruptible(t *testing.T) {
	content := hangingContent{fakeContent{bytes.NewReader(nil).ReadAt, nothing}, make(chan struct{})}
	x := newFixture(t, File{Path: "a", Size: 10, Source: SourceFunc(func() (Content, error) { return content, nil })})
	node := x.walk(t, "a").NodeId
	read := func(cancel <-chan struct{}) chan fuse.Status {
		ended := make(chan fuse.Status)
		go func() {
			_, st := x.read(cancel, node, 0, 10)
			ended <- st
		}()
		<-content.began
		return ended
	}
	cancel := make(chan struct{})
	first, second := read(cancel), read(nil)
	close(cancel)
	if st := <-first; st != fuse.EINTR {
		t.Errorf("interrupted: %v", st)
	}
	x.end()
	if st := <-second; st != fuse.EIO {
		t.Errorf("the view has ended: %v", st)
	}
	if len(x.tampers) > 0 || x.log.Len() > 0 {
		t.Errorf("%q, %s", x.tampers, x.log.String())
	}
}

// awayError is an error of a content that cannot be had.
type awayError bool

func (a awayError) Error() string     { return "no answer" }
func (a awayError) Unavailable() bool { return bool(a) }

// TestUnavailable: a content that cannot be had is an I/O error, a line in the log, and no finding; one
// that will never be there is a finding.
func TestUnavailable(t *testing.T) {
	for _, away := range []bool{true, false} {
		err := fmt.Errorf("reading: %w", awayError(away))
		x := newFixture(t, File{Path: "a", Size: 10, Source: SourceFunc(func() (Content, error) {
			return fakeContent{func([]byte, int64) (int, error) { return 0, err }, nothing}, nil
		})})
		node := x.walk(t, "a").NodeId
		for off := range uint64(3) {
			if _, st := x.read(nil, node, off, 1); st != fuse.EIO {
				t.Errorf("%v", st)
			}
		}
		if isFinding := len(x.tampers) > 0; isFinding == away || strings.Count(x.log.String(), "\n") != 1 {
			t.Errorf("%v: %q, %s", away, x.tampers, x.log.String())
		}
	}
	if _, is := errors.AsType[Unavailable](errors.New("else")); is {
		t.Error("any error is one")
	}
}
