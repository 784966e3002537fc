package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A staged is what alice makes under the name D of a staging directory.
type staged struct {
	how   string
	halts bool // root
}

// TestStagingOfAnotherUser: alice puts what looks like an unfinished attempt into a root in which
// all users may make names: a directory that the operator cannot look into, a journal that the
// operator cannot read, one that cannot be made void. It keeps an ordinary operator from no
// rollback, and nothing is reported as unfinished. Root may be halted by it, as by every record
// of a journal, and gets out by an emergency rollback, and by acknowledging it.
func TestStagingOfAnotherUser(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		for i, s := range []staged{
			{"mkdir -m 700 D", false},
			{"mkdir -m 711 D", false},
			{"mkdir -m 0 D", false},
			{"touch D", false},
			{"mkdir D && touch D/.spectrum06_intent && chmod 0 D/.spectrum06_intent", true},
			{"mkdir -m 700 D && mkfifo -m 0 D/.spectrum06_intent", true},
			{"mkdir D && mkfifo -m 0 D/.spectrum06_committed", true},
			{"mkdir D && touch D/.spectrum06_halted", true},
			{"mkdir -p D/.spectrum06_intent.void/x && touch D/.spectrum06_intent", true},
		} {
			harness.Must(t, os.Chmod(n.root, 0o777))
			if n.operator == 0 && s.halts {
				n.getsOut(i, s)
			} else {
				n.isNotHeldUp(i, s)
			}
		}
	})
}

// put has alice make it, in a sticky root too.
func (n *neighbourhood) put(i, turn int, s staged) (id string) {
	n.t.Helper()
	id = fmt.Sprintf("%04d%04d-2222-4333-8444-555555555555", i, turn)
	at := filepath.Join(n.root, []string{".spectrum06_staging_", ".spectrum06_exchange_"}[i%2]+id)
	harness.Must(n.t, os.Chmod(n.root, []os.FileMode{0o777, os.ModeSticky | 0o777}[turn%2]))
	n.attack("%s", strings.ReplaceAll(s.how, "D", at))
	return id
}

// isNotHeldUp requires that every command does its work beside it.
func (n *neighbourhood) isNotHeldUp(i int, s staged) {
	n.t.Helper()
	n.put(i, 0, s)
	if r := n.must("status", n.root); !strings.Contains(r.Stdout, "  state      clean") {
		n.t.Errorf("%s: not clean: %v", s.how, r)
	}
	if r := n.must("snapshot", "prune", "--dry-run", "--keep-last", "1", n.root); strings.Contains(r.Stdout+r.Stderr, "unfinished") {
		n.t.Errorf("%s: prune: %v", s.how, r)
	}
	if r := n.spectrum("doctor", n.root); strings.Contains(r.Stdout, "warn    unfinished") {
		n.t.Errorf("%s: doctor: %v", s.how, r)
	}
	commands := n.withoutPreview(n.root)
	for turn, name := range []string{"recover", "take", "acknowledge", "rollback", "restore", "emergency"} {
		n.put(i, turn+1, s)
		if r := n.spectrum(commands[name]...); r.Status != 0 {
			n.t.Errorf("%s: %v", s.how, r)
		}
	}
	n.clear()
}

// getsOut requires that root is shown that something is unfinished, that he is halted until he acts,
// and that both ways out work.
func (n *neighbourhood) getsOut(i int, s staged) {
	n.t.Helper()
	for turn := range 2 {
		id := n.put(i, turn, s)
		if r := n.must("status", n.root); strings.Contains(r.Stdout, "  state      clean") {
			n.t.Errorf("%s: it is not said: %v", s.how, r)
		}
		if r := n.spectrum("recover", n.root); r.Status != 3 || !strings.Contains(r.Stderr, "user 4241") {
			n.t.Errorf("%s: not halted: %v", s.how, r)
		}
		out := []string{"rollback", "--emergency", n.root}
		if turn > 0 {
			out = []string{"recover", "--acknowledge", "--statement", "I have looked at " + n.root + "; what is left of " + id[:8] + " stays.", n.root}
		}
		if r := n.spectrum(out...); r.Status != 0 {
			n.t.Errorf("%s: %v", s.how, r)
		}
		n.must("recover", n.root)
		if r := n.must("status", n.root); !strings.Contains(r.Stdout, "  state      clean") {
			n.t.Errorf("%s: not clean: %v", s.how, r)
		}
	}
	n.clear()
}

// clear removes all that looks like an attempt.
func (n *neighbourhood) clear() {
	n.t.Helper()
	all, err := filepath.Glob(filepath.Join(n.root, ".spectrum06_*_*"))
	harness.Must(n.t, err)
	for _, path := range all {
		harness.Must(n.t, os.RemoveAll(path))
	}
}
