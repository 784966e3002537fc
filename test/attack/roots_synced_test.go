package attack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestStateIsDurable: each directory that a command makes in the state directory, the
// state directory itself and those above it, and a key, have their name made durable
// before the command ends.
func TestStateIsDurable(t *testing.T) {
	p := harness.New(t, harness.Small())
	p.State = filepath.Join(t.TempDir(), "above", "state") // not there yet
	site := p.Site(t, filepath.Join(t.TempDir(), "root"))
	key := filepath.Join(t.TempDir(), "key.pem")
	made := map[string]bool{}
	run := func(args ...string) harness.Reply {
		t.Helper()
		plan := sysfault.Plan{Record: true, Match: func(sysfault.Call) bool { return true }, Only: sysfault.MutatingCalls()}
		r := p.Run(t, &plan, args...)
		if r.Status != 0 {
			t.Fatal(r)
		}
		pending := map[string]string{} // the directory that must be synced, by what was made in it
		for _, c := range r.Fault.Trace {
			in := filepath.Dir(c.Path)
			switch {
			case c.Name == "mkdirat" && (in == p.State || c.Path == p.State || in == filepath.Dir(filepath.Dir(p.State))):
				pending[c.Path], made[filepath.Base(c.Path)] = in, true
			case c.To == key:
				pending[key], made["key.pem"] = filepath.Dir(key), true
			case c.Name == "fsync" || c.Name == "syncfs":
				for name, dir := range pending {
					if dir == c.Path {
						delete(pending, name)
					}
				}
			}
		}
		for name := range pending {
			t.Errorf("%q: the name %q was never made durable", args, name)
		}
		return r
	}
	run("keygen", "--out", key)
	run("preview", "--restore-root", site.Root, p.Runs[0].Dir)
	run(harness.CommitArgs(site.Preview(t))...)
	for _, name := range []string{"key.pem", "above", "state", "previews", "attempts", "savepoints", "snapshots"} {
		if !made[name] {
			t.Errorf("%q was never made; made were %v", name, made)
		}
	}
	if _, err := os.Stat(p.State); err != nil {
		t.Error(err)
	}
}
