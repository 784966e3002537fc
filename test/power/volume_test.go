package power

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A format is a file system and how it is mounted.
type format struct {
	name, kind, options string
	size                int64
	mkfs                []string
}

var (
	ext4      = format{"ext4", "ext4", "", 64 << 20, mkfsExt4}
	writeback = format{"ext4 data=writeback", "ext4", "data=writeback", 64 << 20, mkfsExt4}
	xfs       = format{"xfs", "xfs", "", 300 << 20, []string{"mkfs.xfs", "-q", "-f", "-K"}}
	btrfs     = format{"btrfs", "btrfs", "", 128 << 20, []string{"mkfs.btrfs", "-q", "-f", "-K"}}
	mkfsExt4  = []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "nodiscard,lazy_itable_init=0"}
)

// A volume is an image of a file system and a place to mount it.
type volume struct {
	format
	image, path string
}

// newVolume makes the file system. It is unmounted when the test ends.
func newVolume(t *testing.T, f format) *volume {
	t.Helper()
	blocklog.Need(t)
	dir := harness.MemoryDir(t)
	v := &volume{f, filepath.Join(dir, "image"), filepath.Join(dir, "mnt")}
	harness.Must(t, os.Mkdir(v.path, 0o755))
	harness.Must(t, os.WriteFile(v.image, nil, 0o600))
	harness.Must(t, os.Truncate(v.image, f.size))
	if out, err := exec.Command(f.mkfs[0], append(f.mkfs[1:], v.image)...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", f.mkfs, err, out)
	}
	t.Cleanup(v.drop)
	return v
}

func (v *volume) mount(t *testing.T, file string) {
	t.Helper()
	harness.Must(t, blocklog.Mount(file, v.path, v.kind, v.options))
}

func (v *volume) unmount(t *testing.T) {
	t.Helper()
	harness.Must(t, blocklog.Unmount(v.path))
}

// drop unmounts what a test that failed has left.
func (v *volume) drop() { _ = blocklog.Unmount(v.path) }
