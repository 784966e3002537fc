package action_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// overlaid mounts an overlay on dir, whose lower layer is a copy of below, on a file system of
// its own if apart is set. Options that this kernel does not offer skip the test.
func overlaid(t *testing.T, dir, below, options string, apart bool) {
	t.Helper()
	upper := harness.MountedVolume(t, harness.Tmpfs).Path
	lower := filepath.Join(upper, "lower")
	if apart {
		lower = filepath.Join(harness.MountedVolume(t, harness.Ext4).Path, "lower")
	}
	for _, d := range []string{"up", "work"} {
		must(t, os.Mkdir(filepath.Join(upper, d), 0o755))
	}
	harness.CopyAll(t, below, lower)
	if options != "" {
		options = "," + options
	}
	err := unix.Mount("overlay", dir, "overlay", 0, "lowerdir="+lower+",upperdir="+upper+"/up,workdir="+upper+"/work"+options)
	if err == unix.EINVAL {
		t.Skipf("no %q: %v", options, err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
}

// TestOverLowerLayer: what a rollback or the restore of a snapshot displaces is in the lower
// layer of an overlay, as after a container was made anew of an image. It is done at the first
// try, and undone by another restore.
func TestOverLowerLayer(t *testing.T) {
	for _, options := range []string{"", "redirect_dir=on", "metacopy=on,redirect_dir=on", "xino=on", "xino=off", "index=on"} {
		for _, apart := range []bool{false, true} {
			for _, what := range []string{"snapshot", "part", "rollback"} {
				t.Run(fmt.Sprintf("%s/%s/apart %v", what, strings.ReplaceAll(options, ",", " "), apart), func(t *testing.T) {
					overLower(t, what, func(dir, below string) { overlaid(t, dir, below, options, apart) })
				})
			}
		}
	}
}

func overLower(t *testing.T, what string, mount func(dir, below string)) {
	w := newFixture(t)
	w.write("dir/replaced", "then")
	w.write("dir/deep/removed", "then")
	w.write("stays", "same")
	commit := w.mustCommit(map[string]string{"a": "1", "dir/made": "2", "new/sub/file": "3"})
	then, taken := read(t, w.root), w.take()
	w.write("dir/replaced", "another one")
	w.remove("dir/deep/removed")
	w.write("dir/came", "since")
	w.write("came", "since")
	w.write("heap/of/files", "since")
	w.link("nowhere", "dir/link")
	changed := read(t, w.root)
	below := filepath.Join(t.TempDir(), "below")
	harness.CopyAll(t, w.root, below)
	mount(w.root, below)
	w.same(changed, "beneath the overlay")
	want := changed.clone()
	switch what {
	case "snapshot":
		done, err := w.restore(taken)
		must(t, err)
		w.same(then, "after the restore")
		_, err = w.restore(done.Done.Snapshot)
		must(t, err)
		w.same(changed, "after the restore of that before it")
	case "part":
		done, err := w.restoreSome(taken, w.some("dir"))
		must(t, err)
		for _, path := range []string{"dir/replaced", "dir/deep/removed"} {
			want[path] = then[path]
		}
		delete(want, "dir/came")
		delete(want, "dir/link")
		w.same(want, "after the restore of a part")
		_, err = w.restore(done.Done.Snapshot)
		must(t, err)
		w.same(changed, "after the restore of that before it")
	case "rollback":
		done, err := w.undo(commit, false)
		must(t, err)
		for _, path := range []string{"a", "dir/made", "new", "new/sub", "new/sub/file", "RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
			delete(want, path)
		}
		w.same(want, "after the rollback")
		_, err = w.restore(done.Done.Snapshot)
		must(t, err)
		w.same(changed, "after the restore of that before it")
	}
}
