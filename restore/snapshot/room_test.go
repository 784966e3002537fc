package snapshot

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"golang.org/x/sys/unix"
)

// A take that the store has no room for is rejected before anything is kept, with what is
// needed and what is free. What the store has already needs no room.
func TestTakeWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	l := makeFixture(t, dir)
	t.Cleanup(l.close)
	content := make([]byte, 7<<20)
	for i := range content {
		content[i] = byte(rand.Int())
	}
	for i := range 2 { // 14 MiB, of which the store needs 7
		writeFile(t, l.path(fmt.Sprint(i)), string(content))
	}
	l.take() // 21 MiB: all of it is less than what is free, and what is new is not
	var mu sync.Mutex
	var wrote []string
	l.store.sysHook.Call = func(op, path string, f func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "create" || op == "write" || op == "rename" {
			wrote = append(wrote, op+" "+path)
		}
		return f()
	}
	content[0]++
	writeFile(t, filepath.Join(dir, "elsewhere"), string(content[:6<<20])) // 27 MiB
	if _, err := l.store.Take(context.Background(), l.request()); err != nil {
		t.Fatalf("nothing is new, and %v", err)
	}
	wrote = nil
	must(t, os.WriteFile(l.path("1"), content, 0o644)) // 7 MiB are new, 5 are free
	_, err := l.store.Take(context.Background(), l.request())
	var full *machine.FullError
	if !errors.As(err, &full) || full.Need < 7<<20 || full.Free > 5<<20 {
		t.Errorf("%v", err)
	}
	if len(wrote) > 0 {
		t.Errorf("it was rejected, and has done: %s", strings.Join(wrote, ", "))
	}
	must(t, os.Remove(filepath.Join(dir, "elsewhere")))
	l.take()
	l.sound()
}
