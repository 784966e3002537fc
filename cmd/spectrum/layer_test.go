package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestRunLayerIsExchanged: what the command puts in the place of its layer, or into it, does not lead
// this program out of the layer.
func TestRunLayerIsExchanged(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		script string
		flags  []string
	}{
		"a link to the directory for the layer": {statusRunFailed, `mv "$layer" "$layer.x"; ln -s "$PWD" "$layer"; echo new > new`, nil},
		"a link for what changed":               {statusRunFailed, `mv "$layer/changed" "$layer/x"; ln -s "$PWD" "$layer/changed"; echo new > new`, nil},
		"a link for the run directories":        {statusRunFailed, `ln -s "$PWD" CONTRACTS; echo new > new`, []string{"--skip-special"}},
		"a link for the kernel's directory":     {0, `rm -r "$layer/work" || true; ln -s "$PWD" "$layer/work"; echo new > new`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			asRunners(t, "p", func(r *runner) {
				if err := errors.Join(os.Mkdir(filepath.Join(r.dir, "work"), 0o755), os.WriteFile(filepath.Join(r.dir, "work/kept"), nil, 0o644), os.Lchown(filepath.Join(r.dir, "work"), r.uid, r.uid)); err != nil {
					t.Fatal(err)
				}
				r.before = r.tree()
				script := `layer=$(echo "$SPECTRUM_STATE_DIR"/runs/*); ` + test.script
				r.spectrum(test.status, append(append([]string{"run"}, test.flags...), "--", "sh", "-c", script)...)
				r.unchanged()
			})
		})
	}
	t.Run("the directory in the layer", func(t *testing.T) {
		asRunners(t, "up/p", func(r *runner) {
			r.spectrum(statusRunFailed, "run", "--", "sh", "-c", `mv ../../up "$SPECTRUM_STATE_DIR"/runs/*/work/`)
			found, _ := filepath.Glob(filepath.Join(r.state, "runs/*/work/up/p"))
			if len(found) != 1 {
				t.Fatalf("the directory is at %q\n%s", found, r.errs)
			}
			r.dir = found[0]
			r.unchanged()
		})
	})
}

// TestRunLayerLater: a layer that is sealed later means the same: what the command itself has noted at
// its files means nothing.
func TestRunLayerLater(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has an overlay in which a command can write such notes")
	}
	r := newRunner(t, 0, "p")
	r.spectrum(statusRunFailed, "run", "--", "sh", "-c", "mkfifo fifo; : > old/new.txt")
	upper, _ := filepath.Glob(filepath.Join(r.state, "runs/*/changed"))
	for path, name := range map[string]string{"old": "user.overlay.opaque", "old/new.txt": "user.overlay.whiteout"} {
		if err := syscall.Setxattr(filepath.Join(upper[0], path), name, []byte("y"), 0); err != nil {
			t.Skip(err)
		}
	}
	r.spectrum(0, "seal", "--json", "--skip-special", "--upper", upper[0], "--lower", r.dir)
	var result map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatal(err)
	}
	if base, removes, _ := r.changes(result); len(removes) > 0 || len(base) != 1 {
		t.Errorf("base %v, removes %q", base, removes)
	}
}

// TestRunRecordIsForged: a command that writes the record of its layer anew, and then has the run
// fail, does not get a later edit taken for the base.
func TestRunRecordIsForged(t *testing.T) {
	asRunners(t, "p", func(r *runner) {
		r.spectrum(statusRunFailed, "run", "--", "sh", "-c", `echo mine > src/a.txt
			echo '{"since":"2999-01-01T00:00:00Z","seen":[]}' > "$(echo "$SPECTRUM_STATE_DIR"/runs/*/layer.json)"; kill -9 $PPID; sleep 10`)
		if err := os.WriteFile(filepath.Join(r.dir, "src/a.txt"), []byte("later\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		upper, _ := filepath.Glob(filepath.Join(r.state, "runs/*/changed"))
		stdout, errs, status := runCommand(t, r.command("seal", "--json", "--upper", upper[0], "--lower", r.dir))
		var result map[string]any
		if err := json.Unmarshal([]byte(stdout), &result); err != nil {
			t.Fatal(err)
		}
		if status != 0 && strings.Contains(errs, `"src/a.txt"`) {
			return
		}
		if base, _, _ := r.changes(result); base["src/a.txt"] != digestOf("one\n") {
			t.Errorf("base %v", base)
		}
	})
}

// TestSealUpper: the layers of others have the same meaning, and what means something else than
// what is there is rejected by name.
func TestSealUpper(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	upper := filepath.Join(r.outside, "upper")
	write := func(path, content string) {
		t.Helper()
		at := filepath.Join(upper, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("src/a.txt", "mine\n")
	write("same.txt", "same\n")
	write("old/new.txt", "new\n")
	mark := func(path, name, value string) {
		t.Helper()
		if err := syscall.Setxattr(filepath.Join(upper, path), name, []byte(value), 0); err != nil {
			t.Skip(err)
		}
	}
	mark("old", "user.overlay.opaque", "y")
	if err := syscall.Mknod(filepath.Join(upper, "run.sh"), syscall.S_IFCHR, 0); err != nil {
		t.Fatal(err)
	}
	r.spectrum(0, "seal", "--json", "--upper", upper, "--lower", r.dir)
	var result map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		t.Fatal(err)
	}
	base, removes, _ := r.changes(result)
	want := map[string]any{"src/a.txt": digestOf("one\n"), "old/new.txt": nil, "old/deep/c.txt": digestOf("three\n"), "run.sh": digestOf("#!/bin/sh\n")}
	if fmt.Sprint(base) != fmt.Sprint(want) || !slices.Equal(removes, []string{"old/deep/c.txt", "run.sh"}) {
		t.Errorf("base %v, removes %q", base, removes)
	}
	for _, test := range [][3]string{{"old", "redirect", "elsewhere"}, {"src/a.txt", "metacopy", ""}} {
		mark(test[0], "user.overlay."+test[1], test[2])
		r.spectrum(1, "seal", "--upper", upper, "--lower", r.dir)
		if !strings.Contains(r.errs, `"`+test[0]+`"`) || !strings.Contains(r.errs, "user.overlay."+test[1]) {
			t.Error(r.errs)
		}
		if err := syscall.Removexattr(filepath.Join(upper, test[0]), "user.overlay."+test[1]); err != nil {
			t.Fatal(err)
		}
	}
}
