// Package restoretest brings candidates to where the tests of the packages below restore
// begin: opened, planned, approved. The runs come from package bundletest.
package restoretest

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
)

// JournalKey is the key of the journals of tests. It is not secret.
var JournalKey = []byte("the key of these tests, not secret")

// OpenRuns opens run directories of a project, until the test ends.
func OpenRuns(t testing.TB, project string, dirs ...string) []*verify.Run {
	t.Helper()
	root, err := pathsafe.OpenRoot(project)
	harness.Must(t, err)
	t.Cleanup(func() { root.Close() })
	var runs []*verify.Run
	for _, dir := range dirs {
		run, err := verify.OpenRun(root, dir)
		harness.Must(t, err)
		t.Cleanup(func() { run.Close() })
		runs = append(runs, run)
	}
	return runs
}

// Plan runs PREFLIGHT and PLAN, which must succeed. The restore is open until the test
// ends.
func Plan(t testing.TB, c restore.Candidate, root string) *restore.Restore {
	t.Helper()
	r, err := restore.ForRoot(context.Background(), c, root)
	harness.Must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// Approve makes a preview of a restore, and approves it as it is. The origin names the
// restore root by its real path, unless it names another one.
func Approve(r *restore.Restore, origin preview.Origin) (*preview.Approved, error) {
	if origin.RestoreRoot == "" {
		origin.RestoreRoot = r.Root().Name()
	}
	p, err := preview.New(context.Background(), r, preview.Request{Origin: origin, Asked: preview.Requested{Replace: r.Replaces()}})
	if err != nil {
		return nil, err
	}
	raw, err := p.Keep()
	if err != nil {
		return nil, err
	}
	record, err := preview.ParseRecord(raw, p.ID())
	if err != nil {
		return nil, err
	}
	said, err := statement.Parse(preview.Exactly)
	if err != nil {
		return nil, err
	}
	approval, err := record.Approve(p, said)
	if err != nil {
		return nil, err
	}
	return approval.Accept(r, Forgetful{})
}

// Forgetful is a ledger that lets every preview be used any number of times.
type Forgetful struct{}

// Use is [preview.Ledger].
func (Forgetful) Use(string) error { return nil }

// FailureOf returns a failure of the law without its text, which names directories of the
// test. Two equal ones are the same answer.
func FailureOf(t testing.TB, err error) restore.Failure {
	t.Helper()
	var f *restore.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is not a failure of the law", err)
	}
	got := *f
	got.Err = nil
	return got
}

// ResultArtifacts returns the paths of the result artifacts of these runs below the
// restore root.
func ResultArtifacts(chain bool, runDirs []string) []string {
	if !chain {
		return []string{restore.ManifestName, restore.ReportName}
	}
	var paths []string
	for _, dir := range runDirs {
		id := filepath.Base(dir)
		paths = append(paths, id+"/"+restore.ManifestName, id+"/"+restore.ReportName)
	}
	return paths
}
