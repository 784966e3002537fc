package snapshot

import (
	"context"
	"fmt"
	"sync"
	"testing"
)

// Takes and prunes of several stores on one directory do not hurt each other:
// two stores in one process are as strange to each other as two processes.
func TestConcurrent(t *testing.T) {
	l := newFixture(t)
	l.populate()
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			s, err := Open(l.storePath())
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			s.division = smallParts
			for j := range 5 {
				req := l.request()
				req.Root = fmt.Sprintf("/root%d", i%2)
				if _, err := s.Take(context.Background(), req); err != nil {
					t.Error(err)
				}
				if j%2 == 1 {
					if _, err := s.Prune(context.Background(), Policy{KeepLast: 1}, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	if len(l.sound()) < 2 {
		t.Error("too few snapshots")
	}
	l.emptyIncoming()
}
