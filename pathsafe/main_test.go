package pathsafe

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
)

// TestMain runs the tests in mounts of their own: some of them mount volumes.
func TestMain(m *testing.M) { os.Exit(blocklog.Main(m.Run)) }
