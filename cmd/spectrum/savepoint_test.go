package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// makeSavepoint runs "makesavepoint STEP ROOT ATTEMPT FILE...": a step of a
// savepoint over files beneath ROOT, with the host's key. The steps are prepare,
// publish, drop, and add, which is the first two.
func makeSavepoint() {
	path, err := statedir.Default()
	if err != nil {
		log.Fatal(err)
	}
	id, err := savepointStep(path, os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}

func savepointStep(state, step, root, attempt string, files []string) (id string, err error) {
	app := &app{stateDir: state}
	err = app.withSavepoints(func(s *savepointCommand) error {
		if step == "prepare" || step == "add" {
			if id, err = prepareFiles(s, root, attempt, files); err != nil {
				return err
			}
		}
		switch step {
		case "publish", "add":
			id, err = s.store.Publish(root, attempt)
		case "drop":
			err = s.store.Drop(root, attempt)
		}
		return err
	})
	return id, err
}

func prepareFiles(s *savepointCommand, root, attempt string, files []string) (string, error) {
	key, err := s.hostKey(s.state)
	if err != nil {
		return "", err
	}
	d := savepoint.Draft{Report: savepoint.Report{
		Markdown: []byte("# Restore Commit Report\n\n" + attempt + "\n"), JSON: fmt.Appendf(nil, "{\"attempt\":%q}", attempt),
	}}
	for _, file := range files {
		p, err := pathsafe.Parse(file)
		if err != nil {
			return "", err
		}
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		d.Outputs = append(d.Outputs, bundle.Known{Path: p, Bytes: int64(len(raw)), Digest: sha256.Sum256(raw)})
	}
	return s.store.Prepare(context.Background(), root, attempt, d, key, "git:abc1234")
}

const (
	firstAttempt  = "11111111-1111-4111-8111-111111111111"
	secondAttempt = "22222222-2222-4222-8222-222222222222"
)

// stepPlace is a restore root, and a state directory with one savepoint of it.
type stepPlace struct {
	*testing.T
	root, home string
	first      string // its id
}

func newStepPlace(t *testing.T) *stepPlace {
	t.Helper()
	p := &stepPlace{T: t, root: t.TempDir()}
	if err := os.WriteFile(filepath.Join(p.root, "a"), []byte("alpha"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.home = t.TempDir()
	p.must("add", firstAttempt)
	p.first = p.chain()[0]
	return p
}

// copy is the same root with a state directory of its own.
func (p *stepPlace) copy() *stepPlace {
	p.Helper()
	c := *p
	c.home = p.TempDir()
	if err := os.CopyFS(c.home, os.DirFS(p.home)); err != nil {
		p.Fatal(err)
	}
	if err := errors.Join(os.Chmod(c.home+"/spectrum", 0o700), os.Chmod(c.home+"/spectrum/host.pem", 0o600)); err != nil {
		p.Fatal(err)
	}
	return &c
}

// step runs a step in a process of its own.
func (p *stepPlace) step(plan *sysfault.Plan, step, attempt string) sysfault.Result {
	p.Helper()
	if plan == nil {
		plan = &sysfault.Plan{}
	}
	plan.Match = func(c sysfault.Call) bool { return c.Name != "close" && sysfault.Mutating(c) }
	plan.Env = []string{"XDG_STATE_HOME=" + p.home}
	r, err := sysfault.Run(p.Context(), *plan, "makesavepoint", step, p.root, attempt, "a")
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// must runs a step that has to succeed.
func (p *stepPlace) must(step, attempt string) {
	p.Helper()
	if _, err := savepointStep(p.home+"/spectrum", step, p.root, attempt, []string{"a"}); err != nil {
		p.Errorf("%s: %v", step, err)
	}
}

func (p *stepPlace) store() *savepoint.Store {
	p.Helper()
	s, err := savepoint.Open(filepath.Join(p.home, "spectrum", "savepoints"))
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { s.Close() })
	return s
}

// chain is the ids of the savepoints, which verify.
func (p *stepPlace) chain() (ids []string) {
	p.Helper()
	s := p.store()
	all, err := s.List(p.root)
	if err := errors.Join(err, s.VerifyChain(p.root, "")); err != nil {
		p.Fatal(err)
	}
	for _, sp := range all {
		ids = append(ids, sp.ID())
	}
	return ids
}

func (p *stepPlace) pending() []string {
	p.Helper()
	attempts, err := p.store().Pending(p.root)
	if err != nil {
		p.Fatal(err)
	}
	return attempts
}

// faultEverywhere runs a step with a fault in its n-th call that changes
// anything, for every n that this run tries, and then check.
func (p *stepPlace) faultEverywhere(step string, plan sysfault.Plan, check func(c *stepPlace, r sysfault.Result)) {
	p.Helper()
	const stride = 4
	total := p.copy().step(nil, step, secondAttempt).Calls
	if total < stride+1 {
		p.Fatalf("only %d calls", total)
	}
	tried := tier.Every(p.T, stride)
	if raceDetector && tried == tier.All { // the lane "scripts" sweeps without it
		tried = tier.Stride{First: 1 + tier.Rand(p.T).IntN(stride), Every: stride}
	}
	for i := 0; tried.At(i) <= total; i++ {
		n := tried.At(i)
		plan.N = n
		c := p.copy()
		r := c.step(&plan, step, secondAttempt)
		check(c, r)
		if p.Failed() {
			p.Fatalf("call %d of %d of %s, %+v: %s", n, total, step, plan, r.Stderr)
		}
	}
}

// faults are what happens to a call: the process is killed, or the call fails.
var faults = map[string]sysfault.Plan{"killed": {Kill: true}, "failed": {Errno: syscall.EIO}}

// TestPrepareFaults: with any fault there is a whole savepoint that is pending, or
// none, and never one in the chain. When it says that it has failed there is none.
func TestPrepareFaults(t *testing.T) {
	for name, plan := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newStepPlace(t)
			p.faultEverywhere("prepare", plan, func(c *stepPlace, r sysfault.Result) {
				waiting := c.pending()
				if chain := c.chain(); !slices.Equal(chain, []string{p.first}) {
					t.Errorf("chain %v", chain)
				}
				if name == "failed" && (r.Status == 0) != (len(waiting) == 1) {
					t.Errorf("status %d, pending %v", r.Status, waiting)
				}
				c.goOn(len(waiting) > 0)
			})
		})
	}
}

// goOn: what is pending can be published; else the next one begins anew, and
// nothing is left of the one before.
func (p *stepPlace) goOn(pending bool) {
	p.Helper()
	if pending {
		p.must("publish", secondAttempt)
	} else {
		p.must("prepare", secondAttempt)
		p.must("publish", secondAttempt)
	}
	if chain := p.chain(); len(chain) != 2 || len(p.pending()) > 0 {
		p.Errorf("afterwards: %v, pending %v", chain, p.pending())
	}
	p.clean()
}

// clean: nothing is left of what was interrupted.
func (p *stepPlace) clean() {
	p.Helper()
	left, err := filepath.Glob(p.home + "/spectrum/savepoints/*/prepared/*")
	hidden, err2 := filepath.Glob(p.home + "/spectrum/savepoints/*/prepared/.*")
	if err := errors.Join(err, err2); err != nil || len(left)+len(hidden) > 0 {
		p.Errorf("left over: %v %v %v", left, hidden, err)
	}
}

// TestPublishFaults: it is pending or in the chain, and publishing it again puts
// it there.
func TestPublishFaults(t *testing.T) {
	for name, plan := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newStepPlace(t)
			p.must("prepare", secondAttempt)
			p.faultEverywhere("publish", plan, func(c *stepPlace, r sysfault.Result) {
				if chain, waiting := c.chain(), c.pending(); len(chain)+len(waiting) != 2 || r.Status == 0 && len(chain) != 2 {
					t.Errorf("status %d, chain %v, pending %v", r.Status, chain, waiting)
				}
				c.must("publish", secondAttempt)
				if chain := c.chain(); len(chain) != 2 || len(c.pending()) > 0 {
					t.Errorf("afterwards: %v, pending %v", chain, c.pending())
				}
			})
		})
	}
}

// TestDropFaults: it is pending and whole, or gone.
func TestDropFaults(t *testing.T) {
	for name, plan := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newStepPlace(t)
			p.must("prepare", secondAttempt)
			n := 0
			p.faultEverywhere("drop", plan, func(c *stepPlace, r sysfault.Result) {
				waiting := c.pending()
				if r.Status == 0 && len(waiting) > 0 {
					t.Errorf("pending %v", waiting)
				}
				if n++; n%2 == 0 && len(waiting) > 0 {
					c.must("publish", secondAttempt)
					return
				}
				c.must("drop", secondAttempt)
				if chain := c.chain(); len(chain) != 1 || len(c.pending()) > 0 {
					t.Errorf("afterwards: %v, pending %v", chain, c.pending())
				}
				c.clean()
			})
		})
	}
}

// TestStepsAreDurable: all of a savepoint is synced before it has its name, and its name before
// it is reported.
func TestStepsAreDurable(t *testing.T) {
	p := newStepPlace(t)
	for _, c := range []struct {
		step, dir string
		before    int
	}{{"prepare", "/prepared", 10}, {"publish", "/chain", 0}, {"add", "", 0}, {"drop", "/prepared", 0}} {
		if c.step == "add" { // what drop needs
			p = newStepPlace(t)
			p.must("prepare", secondAttempt)
			continue
		}
		r := p.step(&sysfault.Plan{Record: true}, c.step, secondAttempt)
		at := slices.IndexFunc(r.Trace, func(call sysfault.Call) bool {
			return call.Name == "renameat2" && strings.Contains(call.To, secondAttempt)
		})
		if r.Status != 0 || at < 0 {
			t.Fatalf("%s: status %d, rename at %d", c.step, r.Status, at)
		}
		synced := func(calls []sysfault.Call, suffix string) (n int) {
			for _, call := range calls {
				if call.Name == "fsync" && strings.HasSuffix(call.Path, suffix) {
					n++
				}
			}
			return n
		}
		if n := synced(r.Trace[:at], ""); n < c.before {
			t.Errorf("%s: %d syncs before the rename", c.step, n)
		}
		if synced(r.Trace[at:], c.dir) == 0 {
			t.Errorf("%s: the name is not synced: %v", c.step, r.Trace[at:])
		}
	}
}

// TestPlaceIsDurable: the name of every directory that the first savepoint of a root
// needs is synced after it was made.
func TestPlaceIsDurable(t *testing.T) {
	p := newStepPlace(t)
	p.home = t.TempDir()
	r := p.step(&sysfault.Plan{Record: true}, "prepare", firstAttempt)
	if r.Status != 0 {
		t.Fatalf("%s", r.Stderr)
	}
	made := 0
	for i, call := range r.Trace {
		if call.Name != "mkdirat" || !strings.Contains(call.Path, "/savepoints") {
			continue
		}
		made++
		if !slices.ContainsFunc(r.Trace[i:], func(c sysfault.Call) bool { return c.Name == "fsync" && c.Path == filepath.Dir(call.Path) }) {
			t.Errorf("%q is not durable", call.Path)
		}
	}
	if made != 5 { // savepoints, the root's, prepared, chain, and the run directory
		t.Errorf("%d directories", made)
	}
}

// TestHostKey: it is made once, also by many processes at a time, and no other user can read it.
func TestHostKey(t *testing.T) {
	state, err := statedir.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	if id, err := hostID(state); id != "" || err != nil {
		t.Errorf("a key before there is one: %q, %v", id, err)
	}
	ids := make(chan string)
	for range 8 {
		go func() {
			key, err := (&app{}).hostKey(state)
			if err != nil {
				t.Error(err)
			}
			ids <- key.ValidatorID()
		}()
	}
	first := <-ids
	for range 7 {
		if id := <-ids; id != first || id == "" {
			t.Errorf("%q and %q", first, id)
		}
	}
	if id, err := hostID(state); id != first || err != nil {
		t.Errorf("%q, %v", id, err)
	}
	if info, err := os.Stat(state.HostKey()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, spoil := range map[string]func() error{
		"open": func() error { return os.Chmod(state.HostKey(), 0o644) },
		"garbage": func() error {
			return errors.Join(os.Remove(state.HostKey()), os.WriteFile(state.HostKey(), []byte("x"), 0o600))
		},
		"FIFO": func() error { return errors.Join(os.Remove(state.HostKey()), syscall.Mkfifo(state.HostKey(), 0o600)) },
		"dangling": func() error {
			return errors.Join(os.Remove(state.HostKey()), os.Symlink("none", state.HostKey()))
		},
	} {
		_ = os.Remove(state.HostKey())
		if _, err := (&app{}).hostKey(state); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if key, err := (&app{}).hostKey(state); err == nil || key.ValidatorID() != "" {
			t.Errorf("%s: a key was made or taken", name)
		}
		if id, err := hostID(state); err == nil || id != "" {
			t.Errorf("%s: it has the id %q", name, id)
		}
	}
}

// TestSavepointJSON is one canonical value each.
func TestSavepointJSON(t *testing.T) {
	p := newStepPlace(t)
	for _, args := range [][]string{{"list"}, {"list", p.root}, {"list", "/usr"}, {"list", "/none"}, {"show", p.first}, {"verify", p.first}, {"verify", "latest"}, {"verify", "00000000"}} {
		cmd := command(t, slices.Concat([]string{"savepoint", "--json"}, args)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+p.home)
		out, err := cmd.Output()
		if (slices.Contains(args, "00000000") || slices.Contains(args, "/none")) != (err != nil) {
			t.Errorf("%v: %v", args, err)
		}
		if value, err := canonjson.Parse(out); err != nil || string(visible.AppendJSON(nil, value.Append(nil))) != string(out) {
			t.Errorf("%v: %q", args, out)
		}
	}
}
