package preview_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
)

// A scene is a candidate and a restore root, of which previews are made.
type scene = restoretest.Scene

// What scenes and their previews are made with.
var (
	newScene, bareScene = restoretest.NewScene, restoretest.BareScene
	approve             = restoretest.ApproveRecord
	kept, keepOf        = restoretest.Kept, restoretest.KeepOf
	jsonOf              = restoretest.JSONOf
)

var update = flag.Bool("update", false, "write the goldens anew")

func reportOf(t testing.TB, p *preview.Preview) string {
	t.Helper()
	var b strings.Builder
	must(t, report.Of(p).WriteMarkdown(&b))
	return b.String()
}

// state is a ledger that is a real one.
func state(t testing.TB) *statedir.Dir {
	t.Helper()
	d, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// wantUnused requires that a preview is still good for an approval: it uses it.
func wantUnused(t testing.TB, d *statedir.Dir, id string) {
	t.Helper()
	if err := d.Use(id); err != nil {
		t.Errorf("the preview is used up: %v", err)
	}
}
