package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

//go:embed sample
var sample embed.FS

func newDemo(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "demo DIR",
		Short: "write a small signed project to try out, and print the next commands",
		Args:  exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDemo(cmd.Context(), app, args[0])
		},
	}
}

// demoRefused is a directory that is not empty, such as one that an earlier demo has made.
func demoRefused(dir string, above *pathsafe.Dir) error {
	hint := "name a directory that does not exist yet"
	made, err := above.OpenDir(filepath.Base(dir))
	if err == nil {
		_, err = made.Lstat("tampered")
		made.Close()
	}
	if err == nil {
		view := shellQuote(filepath.Join(dir, "view"))
		hint = fmt.Sprintf("an earlier demo is there: name another directory, or remove it first: rm -r %s; if a view is mounted in it, \"spectrum umount %s\" before", shellQuote(dir), view)
	}
	return refusedHint(fmt.Errorf("%q exists and is not an empty directory", dir), hint)
}

// runDemo makes the project in a box beside DIR and moves it out of that, so DIR is there
// whole or not at all, wherever others move the directory above meanwhile.
func runDemo(ctx context.Context, app *app, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if _, err := pathsafe.WayTo(dir); err != nil { // nothing is made on the way to it
		return refusedHint(err, "choose a directory where you can write")
	}
	above, err := openMaking(filepath.Dir(dir))
	if err != nil {
		return refusedHint(err, "choose a directory where you can write")
	}
	b, err := newBoxIn(above)
	if err != nil {
		return refusedHint(err, "choose a directory where you can write")
	}
	defer func() { _ = b.close() }() // it is empty by now, unless something failed
	if err := b.make(); err != nil {
		return refusedHint(err, "choose a directory where you can write")
	}
	const name = "demo"
	if err := writeDemo(ctx, b, name); err != nil {
		return b.told(err, name, dir)
	}
	err = b.release(name, filepath.Base(dir))
	if errors.Is(err, fs.ErrExist) && b.above.Rmdir(filepath.Base(dir)) == nil { // it was empty
		err = b.release(name, filepath.Base(dir))
	}
	if errors.Is(err, fs.ErrExist) {
		return demoRefused(dir, b.above)
	}
	if err != nil {
		return refusedHint(err, "name a directory that does not exist yet")
	}
	steps := demoSteps(jsonText(os.Args[0]), jsonText(dir))
	app.say("wrote %q: two signed runs, a tampered copy, a key, an empty restore root\n", dir)
	return app.result(strings.Join(steps, "\n"), map[string]any{"directory": jsonText(dir), "ok": true, "steps": steps})
}

// openMaking opens a directory, which it makes if it is missing, and those above it.
func openMaking(path string) (*pathsafe.Dir, error) {
	dir, err := pathsafe.OpenOwn(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	above, err := openMaking(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := above.Mkdir(filepath.Base(path), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return above.OpenDir(filepath.Base(path))
}

func writeDemo(ctx context.Context, b *box, name string) error {
	if err := b.dir.Mkdir(name, 0o755); err != nil {
		return err
	}
	demo, err := b.dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer demo.Close()
	if err := demo.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	for _, name := range []string{"project", "restore", "view"} {
		if err := demo.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	root, err := demo.OpenDir("project")
	if err != nil {
		return err
	}
	defer root.Close()
	key, err := bundle.GenerateKey()
	if err != nil {
		return err
	}
	dir := b.path(name) // only for what follows the link of /proc as the kernel does
	if err := key.SaveIn(demo, "key.pem"); err != nil {
		return err
	}
	project := filepath.Join(dir, "project")
	seal := bundle.SealOptions{Project: root, Blocks: true, In: root, Key: key, BuildID: buildID()}
	if err := sealSample(ctx, seal, project, "run-001"); err != nil {
		return err
	}
	seal.Inputs = []string{"data/stations.csv"}
	if err := sealSample(ctx, seal, project, "run-002"); err != nil {
		return err
	}
	return tamperedCopy(project, filepath.Join(dir, "tampered"))
}

// sealSample writes the outputs of one run of the sample and seals them.
func sealSample(ctx context.Context, seal bundle.SealOptions, project, runID string) error {
	outputs, err := fs.Sub(sample, "sample/"+runID)
	if err != nil {
		return err
	}
	if err := os.CopyFS(project, outputs); err != nil {
		return err
	}
	tops, err := fs.ReadDir(outputs, ".")
	if err != nil {
		return err
	}
	seal.RunDir, seal.Outputs = filepath.Join("CONTRACTS", "_runs", runID), nil
	for _, top := range tops {
		seal.Outputs = append(seal.Outputs, top.Name())
	}
	_, err = bundle.Seal(ctx, seal)
	return err
}

// tamperedCopy copies the project and changes one digit of one value.
func tamperedCopy(project, tampered string) error {
	if err := os.CopyFS(tampered, os.DirFS(project)); err != nil {
		return err
	}
	name := filepath.Join(tampered, "data", "stations.csv")
	raw, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed := strings.Replace(string(raw), "north,12,14.8", "north,12,19.8", 1)
	if changed == string(raw) {
		return errors.New("the sample does not hold the value that the demo changes")
	}
	return os.WriteFile(name, []byte(changed), 0o644)
}

// demoSteps are the next commands, to be run as they are printed.
func demoSteps(program, dir string) []string {
	at := func(parts ...string) string { return shellQuote(filepath.Join(slices.Concat([]string{dir}, parts)...)) }
	bin := shellQuote(program)
	run1, run2 := at("project", "CONTRACTS", "_runs", "run-001"), at("project", "CONTRACTS", "_runs", "run-002")
	return []string{
		"# verify a signed run, and both runs as a chain",
		bin + " verify " + run1,
		bin + " verify --chain " + run1 + " " + run2,
		"# a copy in which one digit was changed is rejected, and the file is named",
		bin + " verify " + at("tampered", "CONTRACTS", "_runs", "run-001"),
		"# look into the restore before it happens: every byte is checked as it is read",
		bin + " mount --daemon " + run1 + " " + at("view"),
		"ls -l " + at("view") + " " + at("view", "report"),
		"cat " + at("view", "report", "summary.md"),
		"diff -r " + at("project", "report") + " " + at("view", "report"),
		"# see what it would change, approve exactly that, and carry it out",
		"id=$(" + bin + " preview --restore-root " + at("restore") + " " + run1 + ")",
		bin + ` commit --preview "$id" --approve ` + shellQuote(preview.Exactly),
		"# the files that were written are those of the preview",
		"diff -r " + at("view") + " " + at("restore"),
		"# the savepoint of the commit shows whether they still are",
		bin + " savepoint verify --restore-root " + at("restore") + " latest",
		bin + " umount " + at("view"),
	}
}
