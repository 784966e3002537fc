package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRunLeftOver: status and doctor name the layer of a run that was killed, not one in which a
// command is at work, nor one that was sealed; the commands that they print seal it and remove it.
func TestRunLeftOver(t *testing.T) {
	asRunners(t, "with 'quote", func(r *runner) {
		r.spectrum(0, "run", "--", "sh", "-c", "echo one > sealed")
		cmd := r.command("run", "--", "sh", "-c", `echo x > new; mkdir -p bar/red; touch bar/red/f; chmod 0 bar/red; touch "$SIGNS/ready"; sleep 3600`)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r.awaitReady(cmd)
		r.spectrum(0, "status")
		if strings.Contains(r.stdout, "left over") {
			t.Errorf("a run that is at work is left over: %s", r.stdout)
		}
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		r.spectrum(0, "status", "--json")
		if n := strings.Count(r.stdout, `"over":"`+r.dir+`","path":`); n != 1 {
			t.Fatalf("%d left over: %s", n, r.stdout)
		}
		r.spectrum(0, "status")
		_, toSeal, _ := strings.Cut(r.stdout, "  to seal    spectrum ")
		toSeal, toRemove, _ := strings.Cut(toSeal, "\n  to remove  ")
		toRemove = strings.TrimSpace(toRemove)
		checks := r.command("doctor", "--quiet")
		out, errs, _ := runCommand(t, checks)
		if !strings.Contains(out, "warn    layers           a \"spectrum run\" was killed") || !strings.Contains(out, toRemove) || !strings.Contains(out, toSeal) {
			t.Errorf("doctor: %s%s", out, errs)
		}
		shell := func(line string) {
			t.Helper()
			cmd := r.command()
			cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-ec", line}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
		before, err := filepath.Glob(filepath.Join(r.state, "runs/*"))
		if err != nil || len(before) != 2 {
			t.Fatalf("%q, %v", before, err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", before[1], before[1]+"-copy").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		shell(toRemove)
		if isThere(before[1]) {
			t.Error("it is still there")
		}
		if err := os.Rename(before[1]+"-copy", before[1]); err != nil {
			t.Fatal(err)
		}
		shell("chmod -R u+rwX " + shellQuote(before[1]) + "; '" + r.program + "' " + toSeal)
		r.spectrum(0, "status")
		if strings.Contains(r.stdout, "left over") {
			t.Errorf("sealed, and left over: %s", r.stdout)
		}
		r.unchanged()
	})
}
