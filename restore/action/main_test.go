package action_test

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.InMemory(m)) }

var must = harness.Must
