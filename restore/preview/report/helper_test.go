package report_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.InMemory(m)) }

var must = harness.Must

// A scene is a candidate and a restore root, of which previews are made.
type scene = restoretest.Scene

var newScene, bareScene = restoretest.NewScene, restoretest.BareScene

var update = flag.Bool("update", false, "write the goldens anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	restoretest.Golden(t, name, got, *update)
}

func reportOf(t testing.TB, p *preview.Preview) string {
	t.Helper()
	var b strings.Builder
	must(t, report.Of(p).WriteMarkdown(&b))
	return b.String()
}
