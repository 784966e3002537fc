package snapshot

import (
	"bytes"
	"context"
	"os"
	"testing"
)

// spoil changes a byte of the object of a file, and nothing that a look at it would show.
func (l *fixture) spoil(snap *Snapshot, name string) {
	l.t.Helper()
	e, err := snap.At(parse(l.t, name))
	must(l.t, err)
	at := l.storePath(e.Digest.path())
	info, err := os.Stat(at)
	must(l.t, err)
	raw, err := os.ReadFile(at)
	must(l.t, err)
	raw[len(raw)/2] ^= 1
	must(l.t, os.Chmod(at, 0o600))
	must(l.t, os.WriteFile(at, raw, 0o600))
	must(l.t, os.Chmod(at, objectPerm))
	must(l.t, os.Chtimes(at, info.ModTime(), info.ModTime()))
}

// TestNotBelievedByName: a damaged object of the right size and mode does not stand for
// the content of a file that an action is about to displace, whether the file is unchanged
// or not, nor for that of a file that any snapshot reads. It is replaced.
func TestNotBelievedByName(t *testing.T) {
	for name, test := range map[string]struct {
		kind   Kind
		scope  []string
		before func(t *testing.T, l *fixture)
	}{
		"before an action, unchanged":   {PreAction, []string{"small", "large"}, nil},
		"before an action on the whole": {PreAction, nil, nil},
		"asked for, touched": {Manual, nil, func(t *testing.T, l *fixture) {
			for _, name := range []string{"small", "large"} {
				must(t, os.Chmod(l.path(name), 0o600))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFixture(t)
			content := map[string][]byte{"small": []byte("the only good copy"), "large": bytes.Repeat([]byte("good"), chunk)}
			for name, c := range content {
				writeFile(t, l.path(name), string(c))
			}
			age()
			first := l.take()
			l.spoil(first, "small")
			l.spoil(first, "large")
			if test.before != nil {
				test.before(t, l)
			}
			req := l.request(test.scope...)
			req.Kind = test.kind
			snap, err := l.store.Take(context.Background(), req)
			must(t, err)
			for name, c := range content {
				if got := l.contentOf(snap, name); !bytes.Equal(got, c) {
					t.Errorf("%s: kept %d bytes, not the content of the file", name, len(got))
				}
			}
			l.sound()
		})
	}
}
