package view

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// The run directory of this test gets a new name after its task was signed.
const signedTask, newName = "run-001", "production-2026-12"

// TestRenamedRun: wherever a person reads a run whose directory was renamed, the signed
// task_id is there too. All outputs of a life of such a run are looked through. Of a
// chain, what verify --json prints and the manifest of the chain are fixed by CLI.md and
// the law: there verify names the task on stderr, and the manifest nothing.
func TestRenamedRun(t *testing.T) {
	p := harness.New(t, harness.Files{"identity/a": "alpha\n"}, harness.Files{"d/b": "beta\n"})
	renamed := filepath.Join(filepath.Dir(p.Runs[0].Dir), newName)
	harness.Must(t, os.Rename(p.Runs[0].Dir, renamed))
	p.Runs[0].Dir = renamed
	held := filepath.Join(filepath.Dir(renamed), "run-001-held")
	o := &outputs{t: t, p: p}
	chain := []string{"--chain", renamed, p.Runs[1].Dir}
	with := func(before []string, after ...string) []string {
		return append(append([]string{}, before...), after...)
	}
	root, page := t.TempDir(), filepath.Join(t.TempDir(), "page.html")
	for _, args := range [][]string{
		{"verify", renamed}, with([]string{"verify"}, chain...), with([]string{"verify", "--json"}, chain...),
		{"ls", renamed}, with([]string{"ls"}, chain...), with([]string{"ls", "--json"}, chain...),
		with([]string{"cat"}, with(chain, "--", "run-002/d/b")...), with([]string{"diff"}, with(chain, root)...),
		{"preview", "--restore-root", root, renamed}, with([]string{"preview", "--json", "--restore-root", root}, chain...),
		with([]string{"preview", "--html", page, "--restore-root", root}, chain...),
	} {
		o.command(args...)
	}
	o.at("the page", harness.ReadFile(t, page))
	o.committed(root, renamed)
	for _, flags := range [][]string{nil, {"--restore-root", t.TempDir()}} {
		view := p.Mount(t, harness.Mounting{Flags: flags})
		o.tree(view.Dir)
		o.at("log of the view", view.Log())
		view.End(t)
	}
	p.Must(t, "seal", "--key", filepath.Join(filepath.Dir(p.State), "key.pem"), "--run-dir", held, "--constraint", "artifact_status=deprecated", filepath.Join(p.Dir, "d"))
	harness.Must(t, os.RemoveAll(renamed))
	harness.Must(t, os.Rename(held, renamed))
	o.command("preview", "--restore-root", t.TempDir(), renamed)
	o.command("quarantine", "list")
	source := strings.Fields(p.Must(t, "quarantine", "list").Stdout)[0]
	o.command("quarantine", "show", source)
	o.command("quarantine", "show", "--json", source)
	if o.named < 20 {
		t.Errorf("only %d outputs name the run", o.named)
	}
}

// committed restores the run, looks at all that is reported, and takes it back.
func (o *outputs) committed(root, run string) {
	id := strings.TrimSpace(o.p.Must(o.t, "preview", "--restore-root", root, run).Stdout)
	o.command(harness.CommitArgs(id)...)
	for _, args := range [][]string{
		{"audit", "show"}, {"audit", "show", "--json"}, {"savepoint", "list"}, {"savepoint", "list", "--json"},
		{"snapshot", "list"}, {"snapshot", "list", "--json"}, {"recover", root},
	} {
		o.command(args...)
	}
	savepoint := strings.Fields(o.p.Must(o.t, "savepoint", "list").Stdout)
	for _, field := range savepoint {
		if len(field) == 64 {
			o.command("savepoint", "show", field)
			o.command("savepoint", "show", "--json", field)
			o.command("rollback", field)
		}
	}
	o.command("audit", "show")
}

// outputs are what is looked through.
type outputs struct {
	t     *testing.T
	p     *harness.Project
	named int // that name the run
}

func (o *outputs) command(args ...string) {
	r := o.p.Run(o.t, nil, args...)
	o.at(strings.Join(args, " "), r.Stdout+r.Stderr)
}

// tree looks through names, contents and attributes of a view.
func (o *outputs) tree(dir string) {
	harness.Must(o.t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if id, task := attribute(path, "run_id"), attribute(path, "task_id"); id == newName {
			o.at("attributes of "+path, id+" "+task)
		}
		content, err := os.ReadFile(path)
		o.at("view "+path, string(content))
		return err
	}))
}

// attribute is the value of an extended attribute of a view, or "".
func attribute(path, name string) string {
	value := make([]byte, 4096)
	n, err := unix.Getxattr(path, "user.spectrum."+name, value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// at looks through one output.
func (o *outputs) at(what, text string) {
	o.t.Helper()
	if !strings.Contains(text, newName) {
		return
	}
	o.named++
	if !strings.Contains(text, signedTask) {
		o.t.Errorf("%s names the run and not its task: %.2000s", what, text)
	}
}
