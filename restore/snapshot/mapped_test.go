package snapshot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// mapped maps a new file of one page, shared, and writes to it.
func (l *fixture) mapped(t *testing.T, name string) []byte {
	t.Helper()
	writeFile(t, l.path(name), string(make([]byte, 4096)))
	f, err := os.OpenFile(l.path(name), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	page, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	t.Cleanup(func() { must(t, unix.Munmap(page)) })
	page[0] = 'a'
	return page
}

// contentOf is what a snapshot has of a file.
func (l *fixture) contentOf(snap *Snapshot, name string) []byte {
	l.t.Helper()
	content, err := os.ReadFile(l.write(snap, name))
	must(l.t, err)
	return content
}

// onEach runs a test on the file system of the temporary directory, and in memory, where
// no sync ever protects a page.
func onEach(t *testing.T, do func(t *testing.T, l *fixture)) {
	t.Run("disk", func(t *testing.T) { do(t, diskFixture(t)) })
	t.Run("memory", func(t *testing.T) { do(t, newFixture(t)) }) // in the sample
}

// diskFixture is a fixture on a disk, also where the other tests are in memory.
func diskFixture(t *testing.T) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "snapshot")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	l := makeFixture(t, dir)
	t.Cleanup(l.close)
	return l
}

// TestMappedWrite: a page that is dirty already changes no time when it is written again.
// Each snapshot has the content of its time all the same.
func TestMappedWrite(t *testing.T) {
	onEach(t, func(t *testing.T, l *fixture) {
		page := l.mapped(t, "f")
		age()
		for _, c := range []byte("bcd") {
			snap := l.take()
			if got := l.contentOf(snap, "f"); !bytes.Equal(got, page) {
				t.Fatalf("kept %q, is %q", got[:1], page[:1])
			}
			page[0] = c
		}
		if got := l.contentOf(l.take(), "f"); !bytes.Equal(got, page) {
			t.Fatalf("kept %q, is %q", got[:1], page[:1])
		}
	})
}

// TestMappedWriter: a writer through a mapping that is at work whenever the file is read is
// found. A snapshot that was asked for names the file; one before an action is not taken.
func TestMappedWriter(t *testing.T) {
	l := diskFixture(t)
	if !l.tracked() {
		t.Skip("no file system that tells of mapped writes")
	}
	page := l.mapped(t, "f")
	writeFile(t, l.path("calm"), "calm")
	write := func() { page[1]++ }
	l.store.sysHook.Call = func(op, path string, f func() error) error {
		if op == "read" && path == "f" {
			write()
		}
		return f()
	}
	snap := l.take()
	if got := snap.Restless(); !slices.Equal(got, []string{"f"}) {
		t.Errorf("restless: %q", got)
	}
	before := l.request("f", "calm")
	before.Kind = PreAction
	var changed *ChangedError
	if _, err := l.store.Take(context.Background(), before); !errors.As(err, &changed) || changed.Path != "f" || !errors.Is(err, ErrRefused) {
		t.Errorf("before an action: %v", err)
	}
	n := 0
	write = func() { // once, and then it rests
		if n++; n == 1 {
			page[1]++
		}
	}
	snap = l.take()
	if got := l.contentOf(snap, "f"); len(snap.Restless()) > 0 || !bytes.Equal(got, page) {
		t.Errorf("restless: %q, kept %q, is %q", snap.Restless(), got[:2], page[:2])
	}
}

// tracked reports whether the root is on a file system on which content is reused.
func (l *fixture) tracked() bool {
	ok, err := tracksMappings(on(l.handle, l.store.sysHook))
	must(l.t, err)
	return ok
}
