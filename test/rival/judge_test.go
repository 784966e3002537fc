package rival

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// end judges a commit that has ended. What the attacker moved is put back first;
// but what it stole of a commit that was then refused is the attacker's.
func (a *attempt) end(t *testing.T, r harness.Reply, attack attack) {
	t.Helper()
	wantEnd(t, r)
	if attack.undo != nil && a.acting && (r.Status == 0 || !attack.ours) {
		attack.undo(a)
	}
	switch {
	case r.Status == 0:
		a.compare(t, a.after(t), attack)
		a.recoverCleanly(t, attack)
	case refused(r) && attack.ours: // what is put back after the last look cannot be seen
		a.wantKnown(t, attack)
	case refused(r):
		a.compare(t, a.same(t), attack)
		a.recoverCleanly(t, attack)
	case r.Status == 3:
		a.endHalt(t, attack)
	default:
		t.Errorf("exit status %d", r.Status)
	}
	a.wantForeign(t, attack)
}

// compare looks at the root. Where the attacker takes the commit's own directory
// away, what is left of that may stay.
func (a *attempt) compare(t *testing.T, want harness.Tree, attack attack) {
	t.Helper()
	if d := harness.Diff(want, a.seen(t, attack)); d != "" {
		t.Errorf("the root:\n%s", d)
	}
}

// seen is the root without what no program can know of: what is left in a
// staging directory that was removed, and empty directories of the commit in
// a parent that was hidden while they were looked for.
func (a *attempt) seen(t *testing.T, attack attack) harness.Tree {
	t.Helper()
	is := harness.MustTake(t, a.Root)
	if attack.takes {
		is = withoutStaging(is)
		delete(is, harness.Lock) // it stays for the sake of that
	}
	if attack.hides && !a.hasOutputs(is) {
		for name, thing := range a.fresh {
			if _, known := a.planted[name]; thing.Mode.IsDir() && !known {
				delete(is, name)
			}
		}
	}
	return is
}

func (a *attempt) hasOutputs(is harness.Tree) bool {
	for name, thing := range a.fresh {
		if _, ok := is[name]; ok && !thing.Mode.IsDir() {
			return true
		}
	}
	return false
}

// recoverCleanly requires nothing to be left to do after a commit that ended. What was swapped
// with the staging directory may look like one that halted.
func (a *attempt) recoverCleanly(t *testing.T, attack attack) {
	t.Helper()
	was := a.seen(t, attack)
	r := wantEnd(t, a.Recover(t, nil))
	if r.Status != 0 && !attack.takes {
		t.Errorf("recover after a commit that ended: %v", r)
	}
	if d := harness.Diff(was, a.seen(t, attack)); d != "" {
		t.Errorf("recover after a commit that ended:\n%s", d)
	}
}

// endHalt lets recover end what the commit could not undo; and where it cannot either, the
// attempt is acknowledged. A root whose journal was taken may look as if nothing had begun.
func (a *attempt) endHalt(t *testing.T, attack attack) {
	t.Helper()
	if err := a.Halted(t); err != nil && !attack.takes {
		t.Error(err)
	}
	r := wantEnd(t, a.Recover(t, nil))
	if r.Status == 0 && !attack.takes {
		a.wantEither(t, attack)
		return
	}
	if r.Status != 3 && r.Status != 0 {
		t.Errorf("recover in a halted root: %v", r)
	}
	if r := wantEnd(t, a.Acknowledge(t)); r.Status != 0 {
		t.Errorf("acknowledged: %v", r)
	}
	if a.Halted(t) == nil {
		t.Error("acknowledged, and still halted")
	}
	a.wantKnown(t, attack)
}

// wantEither requires the root to be as before or to have everything in place.
func (a *attempt) wantEither(t *testing.T, attack attack) {
	t.Helper()
	is := a.seen(t, attack)
	before, after := harness.Diff(a.same(t), is), harness.Diff(a.after(t), is)
	if before != "" && after != "" {
		t.Errorf("the root is not as before:\n%s\nand not as after:\n%s", before, after)
	}
}

// wantKnown requires that the root has nothing but foreign files, outputs with their bytes, and
// remains of staging. An attacker that exchanges files in staging may have exchanged them with
// one another, so that an output has the bytes of another file of the commit.
func (a *attempt) wantKnown(t *testing.T, attack attack) {
	t.Helper()
	known := a.after(t)
	for name, thing := range withoutStaging(harness.MustTake(t, a.Root)) {
		if _, foreign := a.foreign[thing.Inode]; foreign {
			continue
		}
		want, ok := known[name]
		same := want.Mode == thing.Mode && want.Content == thing.Content
		mixed := attack.gives && want.Mode.IsRegular() && thing.Mode.IsRegular()
		if !ok || !same && !mixed {
			t.Errorf("%q is %+v", name, thing)
		}
	}
}

// wantForeign requires everything that is not the commit's to be there, wherever the attacker has
// put it, and nothing new outside.
func (a *attempt) wantForeign(t *testing.T, attack attack) {
	t.Helper()
	is := a.inventory(t)
	for ino, thing := range a.foreign {
		at, there := is[ino]
		if at.thing != thing && (there || !attack.gives) {
			t.Errorf("inode %d was %+v, is %+v at %q", ino, thing, at.thing, at.path)
		}
	}
	for ino, at := range is {
		if _, ok := a.foreign[ino]; !ok && strings.HasPrefix(filepath.Join(a.dir, at.path), a.outside) {
			t.Errorf("outside of the root: %q, %+v", at.path, at.thing)
		}
	}
}
