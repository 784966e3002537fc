package disk

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestReadOnlyMidway makes the mount read-only while a commit is at work, so that
// its rollback fails too. Not even the mark of a halted root can be written then:
// when the mount can be written again, the root is halted until recover, or the
// next command ends what was begun by itself. Both reach the state before.
func TestReadOnlyMidway(t *testing.T) {
	p, v := harness.New(t, harness.Small()), newVolume(t, "ext4")
	ends, windows := map[string]int{}, 0
	for n := 1; ; n += 4 {
		site := p.Site(t, filepath.Join(v.path, fmt.Sprint("root", n)))
		took := 0
		r := site.Commit(t, &sysfault.Plan{N: n, Onward: true, Before: func(c sysfault.Call) {
			if took == 0 && v.writable(false) == nil { // not while a file is open for writing
				took = c.N
			}
		}})
		harness.Must(t, v.writable(true))
		if took == 0 {
			break
		}
		n = took
		windows++
		ends[fmt.Sprint(r.Status, " ", r.Answer.Code)]++
		switch {
		case r.Status == 0: // it may say that its staging directory is left
			wantHaltEnded(t, site)
			want(t, site, harness.After)
		case r.Answer.Code == harness.RollbackFailed:
			ends[wantHaltEnded(t, site)]++
		default:
			want(t, site, harness.Before)
		}
		if t.Failed() {
			t.Fatalf("read-only before call %d: %v", took, r)
		}
		site.Remove(t)
	}
	t.Logf("%d windows, %v", windows, ends)
	if len(ends) < 3 {
		t.Error("too little was seen")
	}
}

// writable remounts the volume.
func (v *volume) writable(yes bool) error {
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND)
	if !yes {
		flags |= unix.MS_RDONLY
	}
	return unix.Mount("", v.path, "", flags, "")
}

// wantHaltEnded wants the root to reach the state before or after.
func wantHaltEnded(t *testing.T, site *harness.Site) (by string) {
	t.Helper()
	by = "ended by recover"
	if r := site.PreviewReply(t, nil); r.Status == 0 {
		by = "ended by preview"
	} else if r.Status != 3 {
		t.Error(r)
	}
	if r := site.Recover(t, nil); r.Status != 0 {
		t.Error(r)
	}
	if _, err := site.Recovered(t, harness.Before, harness.After); err != nil {
		t.Error(err)
	}
	return by
}
