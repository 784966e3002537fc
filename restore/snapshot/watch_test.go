package snapshot

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// heard is what the functions of a watch were called with.
type heard struct {
	mu    sync.Mutex
	works []string
	files []int
	bytes []int64 // of each work, to come
	read  []int64 // and read in it
}

func (h *heard) watch() Watch {
	return Watch{Begin: h.begin, Read: func(bytes int64) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := len(h.read); n > 0 {
			h.read[n-1] += bytes
		}
	}}
}

func (h *heard) begin(work string, files int, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.works, h.files = append(h.works, work), append(h.files, files)
	h.bytes, h.read = append(h.bytes, bytes), append(h.read, 0)
}

// TestWatch: a take, a check and a write tell what is to be done, and every byte of it
// as it is read.
func TestWatch(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("large"), string(make([]byte, 3*chunk+7)))
	writeFile(t, l.path("small"), "small")
	must(t, os.Link(l.path("small"), l.path("other name")))
	const whole = 3*chunk + 7 + 5
	var h heard
	l.store.Watch(h.watch())
	snap := l.take()
	if want := []string{"keeping", "syncing"}; !slices.Equal(h.works, want) || h.files[0] != 3 || h.bytes[0] != whole+5 || h.read[0] < whole {
		t.Errorf("a take reported %+v", &h)
	}
	h = heard{}
	l.store.Watch(h.watch())
	damages, err := l.store.Verify(t.Context(), snap)
	must(t, err)
	if len(damages) > 0 || !slices.Equal(h.works, []string{"checking"}) || h.files[0] != 2 || h.bytes[0] != whole || h.read[0] != whole {
		t.Errorf("a check reported %+v", &h)
	}
	h = heard{}
	l.store.Watch(h.watch())
	out := openDir(t, t.TempDir())
	must(t, l.store.Write(t.Context(), snap, pathsafe.Path{}, out, "copy"))
	if !slices.Equal(h.works, []string{"writing"}) || h.files[0] != 2 || h.bytes[0] != whole || h.read[0] != whole {
		t.Errorf("a write reported %+v", &h)
	}
	l.store.Watch(Watch{})
	l.take()
}
