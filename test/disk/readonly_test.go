package disk

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestReadOnlyMidway makes the mount read-only while a commit is at work, so that
// its rollback fails too. Not even the mark of a halted root can be written then:
// when the mount can be written again, the root is halted until recover, or the
// next command ends what was begun by itself. Both reach the state before.
func TestReadOnlyMidway(t *testing.T) {
	p, v := harness.New(t, harness.Small()), harness.MountedVolume(t, harness.Ext4)
	var sum harness.Tally
	stride := sample.Thin(t, 29, 4)
	for n := stride.First; ; n += stride.Every {
		site := p.Site(t, filepath.Join(v.Path, fmt.Sprint("root", n)))
		took := 0
		r := site.Commit(t, &sysfault.Plan{N: n, Onward: true, Before: func(c sysfault.Call) {
			if took == 0 && v.SetReadOnly(true) == nil { // not while a file is open for writing
				took = c.N
			}
		}})
		harness.Must(t, v.SetReadOnly(false))
		if took == 0 && sum.Kinds() == 0 && n > 1 { // behind the last call
			n = n/2 - stride.Every
			continue
		}
		if took == 0 {
			break
		}
		n = took
		sum.Add(fmt.Sprint(r.Status, " ", r.Answer.Code))
		switch {
		case r.Status == 0: // it may say that its staging directory is left
			wantHaltEnded(t, site)
			want(t, site, harness.After)
		case r.Answer.Code == harness.RollbackFailed:
			sum.Add(wantHaltEnded(t, site))
		default:
			want(t, site, harness.Before)
		}
		if t.Failed() {
			t.Fatalf("read-only before call %d: %v", took, r)
		}
		site.Remove(t)
	}
	sum.DemandKinds(t, 3)
}

// wantHaltEnded requires the root to reach the state before or after.
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
