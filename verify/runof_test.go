package verify_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
)

// TestRunOf: a run of an open directory is found through its handle, also when its
// artifacts are read later, wherever the path of that directory leads by then.
func TestRunOf(t *testing.T) {
	r := newRun(t)
	dir := filepath.Dir(r.Dir)
	project, err := pathsafe.OpenRoot(r.Project.Root)
	must(t, err)
	defer project.Close()
	runs, err := pathsafe.OpenRoot(dir)
	must(t, err)
	defer runs.Close()
	exchange := func() {
		must(t, os.Rename(dir, dir+".aside"))
		must(t, os.MkdirAll(r.Dir, 0o755)) // another run of that name
	}
	exchange()
	run := verify.RunOf(project, runs, filepath.Base(r.Dir))
	b, err := verify.Strict(t.Context(), run, verify.Watch{Reread: true})
	must(t, err)
	must(t, run.Close())
	if run.ID() != filepath.Base(r.Dir) || b.RunID() != run.ID() {
		t.Errorf("the run is called %q, its bundle is of %q", run.ID(), b.RunID())
	}
	must(t, b.ArtifactsIntact())
	for _, a := range artifactsOf(b) {
		if got, err := readArtifact(t, a); err != nil || int64(len(got)) != a.Size() {
			t.Errorf("%s: %d bytes, %v", a.Name(), len(got), err)
		}
	}
	must(t, os.Rename(dir+".aside/"+run.ID(), dir+".aside/other"))
	if err := b.ArtifactsIntact(); err == nil {
		t.Error("a run that is gone is intact")
	}
}
