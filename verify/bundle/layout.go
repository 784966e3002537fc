package bundle

import (
	"path/filepath"
	"strings"
)

// runs and lawRuns are the paths of the run directories in a project.
const (
	runs    = "CONTRACTS/_runs"
	lawRuns = "LAW/" + runs
)

// RunsDirs returns the paths in a project at which its run directories can be, the usual one first.
func RunsDirs() [2]string { return [2]string{runs, lawRuns} }

// IsRunsDir reports whether a path is that of the directory with the runs of a project.
func IsRunsDir(path string) bool {
	return filepath.Base(path) == filepath.Base(runs) && filepath.Base(filepath.Dir(path)) == filepath.Dir(runs)
}

// IsInRuns reports whether an absolute path is a directory with the runs of a project, or is in
// one.
func IsInRuns(path string) bool { return strings.Contains(path+"/", "/"+runs+"/") }

// ProjectOf returns the project that a run directory is of by its absolute path.
func ProjectOf(runDir string) (root string, ok bool) {
	dir := filepath.Dir(runDir)
	if !IsRunsDir(dir) {
		return "", false
	}
	root = filepath.Dir(filepath.Dir(dir))
	if filepath.Base(root) == strings.TrimSuffix(lawRuns, "/"+runs) {
		root = filepath.Dir(root)
	}
	return root, true
}
