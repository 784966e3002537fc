package preview

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUnsafeFileSystems checks the warning about file systems that were not tested with power cuts.
func TestUnsafeFileSystems(t *testing.T) {
	for magic, want := range map[int64]string{
		unix.MSDOS_SUPER_MAGIC: "vfat", unix.NFS_SUPER_MAGIC: "NFS", unix.FUSE_SUPER_MAGIC: "FUSE", unix.CIFS_SUPER_MAGIC: "SMB",
		unix.EXT4_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
	} {
		got := strings.Join(unsafeAt(magic), "")
		if (got != "") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%x: %q", magic, got)
		}
	}
}
