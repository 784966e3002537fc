package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// mark runs "mark [--json] judge|hold SOURCE_ID ROOT [RULE DETAIL]...": it keeps
// findings as preview and commit do, and ends as they do when a candidate is held.
func mark() {
	app := &app{stdout: os.Stdout, stderr: os.Stderr}
	args := os.Args[1:]
	if args[0] == "--json" {
		app.json, args = true, args[1:]
	}
	os.Exit(app.finish(app.withQuarantine(func(store *quarantine.Store) error { return markIn(store, args) })))
}

func markIn(store *quarantine.Store, args []string) error {
	ctx, c := context.Background(), quarantine.Candidate{Source: args[1], RestoreRoot: args[2], RunDirs: []string{"/p/CONTRACTS/_runs/r1"}}
	var found []quarantine.Finding
	for words := args[3:]; len(words) > 0; words = words[2:] {
		found = append(found, quarantine.Finding{Rule: quarantine.Rule(words[0]), Detail: words[1]})
	}
	if args[0] == "hold" {
		return store.Hold(ctx, c, found[0])
	}
	held, _, err := store.Update(ctx, c, found)
	if err == nil && len(held) > 0 {
		err = &quarantine.HeldError{Source: c.Source, Marks: held}
	}
	return err
}

// TestQuarantineVoice: what holds a candidate, and an unreadable record, is the operator's
// policy.
func TestQuarantineVoice(t *testing.T) {
	for name, err := range map[string]error{
		"held":   &quarantine.HeldError{Source: strings.Repeat("5c", 32)},
		"record": &quarantine.RecordError{Path: "/x", Err: errors.New("torn")},
	} {
		err = errors.Join(errors.New("the preview failed"), err)
		if v := verdictOf(err); v.status != statusPolicy || v.code != codeQuarantined || len(v.hints) == 0 {
			t.Errorf("%s: status %d, hints %q", name, v.status, v.hints)
		}
	}
}

// heldOne is a state directory in which a candidate is held, and its source id.
func heldOne(t *testing.T) (state, source string) {
	t.Helper()
	state, source = t.TempDir(), strings.Repeat("5c", 32)
	if r := faulted(t, state, sysfault.Plan{}, "mark", "hold", source, "/root", "approval_vague", "sure"); r.Status != 0 {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	return state, source
}

// faulted runs a program under a plan for the calls that change a state directory.
func faulted(t *testing.T, state string, plan sysfault.Plan, args ...string) sysfault.Result {
	t.Helper()
	plan.Env = []string{"XDG_STATE_HOME=" + state}
	plan.Match = func(c sysfault.Call) bool {
		return sysfault.Mutating(c) && (strings.HasPrefix(c.Path, state) || strings.HasPrefix(c.To, state))
	}
	r, err := sysfault.Run(t.Context(), plan, args...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestQuarantineFaults fails, or kills at, each call of a release: the candidate is
// held or released, and released where the program said so; the next release does
// what is left, and the log has it.
func TestQuarantineFaults(t *testing.T) {
	held, source := heldOne(t)
	release := func(t *testing.T, plan sysfault.Plan) (state string, r sysfault.Result) {
		t.Helper()
		state = t.TempDir()
		runIn(t, "", "cp", "-a", held+"/.", state)
		return state, faulted(t, state, plan, "spectrum", "quarantine", "release", source, "--reason", "ok")
	}
	const stride = 4
	for name, plan := range map[string]sysfault.Plan{"fail": {Errno: syscall.EIO}, "kill": {Kill: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, whole := release(t, sysfault.Plan{})
			if whole.Calls < 2*stride || whole.Status != 0 {
				t.Fatalf("a release makes only %d calls, status %d: %s", whole.Calls, whole.Status, whole.Stderr)
			}
			tried := tier.Every(t, stride)
			if raceDetector && tried == tier.All { // the lane "scripts" sweeps without it
				tried = tier.Stride{First: 1 + tier.Rand(t).IntN(stride), Every: stride}
			}
			for i := 0; tried.At(i) <= whole.Calls; i++ {
				plan.N = tried.At(i)
				state, r := release(t, plan)
				if r.Fired == 0 {
					t.Fatalf("no call %d of %d", plan.N, whole.Calls)
				}
				checkReleased(t, state, source, r)
			}
		})
	}
}

func checkReleased(t *testing.T, state, source string, r sysfault.Result) {
	t.Helper()
	run := func(args ...string) sysfault.Result {
		t.Helper()
		cmd := command(t, args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		stdout, stderr, status := runCommand(t, cmd)
		return sysfault.Result{Status: status, Stdout: []byte(stdout), Stderr: []byte(stderr)}
	}
	list, held := run("quarantine", "list"), source+" held approval_vague\n"
	if out := string(list.Stdout); list.Status != 0 || out != "" && (out != held || r.Status == 0) {
		t.Errorf("after status %d: %q, status %d: %s", r.Status, out, list.Status, list.Stderr)
	}
	again := run("quarantine", "release", source, "--reason", "ok")
	if wanted := len(list.Stdout) > 0; (again.Status == 0) != wanted {
		t.Errorf("held %v, and the next release has status %d: %s", wanted, again.Status, again.Stderr)
	}
	log := run("audit", "show")
	if out := run("quarantine", "list"); len(out.Stdout) > 0 || log.Status != 0 || !strings.Contains(string(log.Stdout), " quarantine_release ") {
		t.Errorf("held by %q, logged %s", out.Stdout, log.Stdout)
	}
}

// TestQuarantineOrder: the log is durable before there is anything of a change, and
// the record before what it replaces goes.
func TestQuarantineOrder(t *testing.T) {
	state, source := heldOne(t)
	place := filepath.Join(state, "spectrum", "quarantine")
	trace := faulted(t, state, sysfault.Plan{Record: true}, "spectrum", "quarantine", "release", source, "--reason", "ok").Trace
	at := 0
	for _, step := range []struct {
		name string
		of   func(sysfault.Call) bool
	}{
		{"write", func(c sysfault.Call) bool { return filepath.Base(c.Path) == "audit.log" }},
		{"fsync", func(c sysfault.Call) bool { return filepath.Base(c.Path) == "audit.log" }},
		{"linkat", func(c sysfault.Call) bool { return c.To == filepath.Join(place, source+".2.json") }},
		{"fsync", func(c sysfault.Call) bool { return c.Path == place }},
		{"unlinkat", func(c sysfault.Call) bool { return c.Path == filepath.Join(place, source+".1.json") }},
	} {
		n := slices.IndexFunc(trace[at:], func(c sysfault.Call) bool { return c.Name == step.name && step.of(c) })
		if n < 0 {
			t.Fatalf("no %s after call %d of %+v", step.name, at, trace)
		}
		at += n + 1
	}
}

// TestQuarantineKnown: an existing mark is made durable before it is relied on: the process that
// made it may have been killed before it did.
func TestQuarantineKnown(t *testing.T) {
	state, source := heldOne(t)
	trace := faulted(t, state, sysfault.Plan{Record: true}, "mark", "hold", source, "/root", "approval_vague", "sure").Trace
	synced := func(c sysfault.Call) bool {
		return c.Name == "fsync" && c.Path == filepath.Join(state, "spectrum", "quarantine")
	}
	if !slices.ContainsFunc(trace, synced) || slices.ContainsFunc(trace, func(c sysfault.Call) bool { return c.Name == "linkat" }) {
		t.Errorf("%+v", trace)
	}
}
