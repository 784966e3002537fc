package staging

import (
	"os"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/blocklog"
)

// TestMain runs the tests in mounts of their own: some of them mount volumes. It sets tick so high that an undo restores all times, however busy the machine is: tests of
// sweeps rely on its number of system calls.
func TestMain(m *testing.M) {
	tick = time.Hour
	os.Exit(blocklog.Main(m.Run))
}

// noticeOthers has the undos of a test leave the times of directories in which another process has worked.
func noticeOthers(t *testing.T) {
	t.Helper()
	before := tick
	tick = 10 * time.Millisecond
	t.Cleanup(func() { tick = before })
}
