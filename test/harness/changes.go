package harness

import (
	"os"
	"path/filepath"
	"testing"
)

// SealChanges seals the files of the one run of a project as a change set of this id, which has
// started from files of this content, and removes those of them that the run does not have.
func (p *Project) SealChanges(t testing.TB, id string, base Files) {
	t.Helper()
	from := filepath.Join(t.TempDir(), "base")
	p.Removes = nil
	for _, name := range base.Names() {
		at := filepath.Join(from, name)
		Must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		Must(t, os.WriteFile(at, []byte(base[name]), 0o644))
		if _, stays := p.Runs[0].Files[name]; !stays {
			p.Removes = append(p.Removes, name)
		}
	}
	run := Run{ID: id, Dir: filepath.Join(p.Dir, "CONTRACTS/_runs", id), Files: p.Runs[0].Files}
	sealer := *p
	if sealer.User != 0 { // who may neither write in the project, nor lend his state directory
		sealer.User, sealer.State = 0, filepath.Join(t.TempDir(), "state")
	}
	sealer.Must(t, "seal", "-q", "--run-dir", run.Dir, "--base", from)
	p.Runs, p.changes = []Run{run}, true
	p.roots(t, []string{"verify", "--json", run.Dir})
	made, err := p.makes()
	Must(t, err)
	p.made = made
}

// Old is the content of the files that stand in a root before, by their names.
func Old(names ...string) Files {
	files := Files{}
	for _, name := range names {
		files[name] = old(name)
	}
	return files
}

func old(name string) string { return "old: " + name }
