package bundle_test

import (
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestProjectOf: a run directory is of the project whose directory of runs it is a child of.
func TestProjectOf(t *testing.T) {
	for _, at := range bundle.RunsDirs() {
		dir := filepath.Join("/p/LAWS", at)
		if root, ok := bundle.ProjectOf(dir + "/run-1"); root != "/p/LAWS" || !ok || !bundle.IsRunsDir(dir) || !bundle.IsInRuns(dir+"/run-1") {
			t.Errorf("%s: %q, %t", dir, root, ok)
		}
	}
	for _, path := range []string{"/p/CONTRACTS/_runs", "/p/CONTRACTS/_runs/a/b", "/p/_runs/a", "/p/CONTRACTS/runs/a", "/"} {
		if root, ok := bundle.ProjectOf(path); ok || root != "" {
			t.Errorf("%s: %q", path, root)
		}
	}
	if bundle.IsInRuns("/p/CONTRACTS/_runs2/a") || bundle.IsInRuns("/p/MYCONTRACTS/_runs/a") || !bundle.IsInRuns("/p/CONTRACTS/_runs") {
		t.Error("IsInRuns does not compare whole names")
	}
}
