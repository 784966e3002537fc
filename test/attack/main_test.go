package attack

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
)

// TestMain gives the tests mounts of their own.
func TestMain(m *testing.M) { os.Exit(blocklog.Main(func() int { return harness.Main(m) })) }
