package rival

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// TestLoop runs every attack beside the free running program, at arbitrary moments.
func TestLoop(t *testing.T) {
	for _, attack := range sample.Pick(t, 4, attacks()) {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			loop(t, attack, func(c *harness.Tally) bool {
				return c.Count("commands") >= sample.Of(3, 12, 20) && c.Count("acts") > 0
			})
		})
	}
}

// TestLongLoop acts 100,000 times in every pattern that can act often in one
// commit, and runs 5,000 commits of the others.
func TestLongLoop(t *testing.T) {
	sample.Need(t, sample.Long)
	for _, attack := range attacks() {
		t.Run(attack.name, func(t *testing.T) {
			t.Parallel()
			loop(t, attack, func(c *harness.Tally) bool { return c.Count("acts") >= 100_000 })
		})
	}
}

// loop commits until there were enough. A pattern where both sides win often
// must have seen five commits succeed and five refused (in a sample one), and goes on
// until then.
func loop(t *testing.T, attack attack, enough func(*harness.Tally) bool) {
	t.Helper()
	p := harness.New(t, outputs())
	var sum harness.Tally
	least := sample.Of(1, 5, 5)
	seen := func() bool { return sum.Count("done") >= least && sum.Count("refused")+sum.Count("halted") >= least }
	seed := sample.Rand(t).Uint64()
	for n := 0; n < 5000 && (!enough(&sum) || attack.contested && !seen()); n++ {
		a := newAttempt(t, p, fmt.Sprint(n))
		r := a.contest(t, attack, rand.New(rand.NewPCG(seed, uint64(n))))
		a.count(&sum, r)
		a.end(t, r, attack)
		if a.failed(t, attack.name, r) {
			return
		}
	}
	t.Log(&sum)
	if sum.Count("acts") == 0 || attack.contested && !seen() {
		t.Errorf("too little was seen: %v", &sum)
	}
}

// contest commits while another goroutine attacks.
func (a *attempt) contest(t *testing.T, attack attack, random *rand.Rand) harness.Reply {
	t.Helper()
	id := a.Preview(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.harass(ctx, attack, random)
	}()
	r := a.Project.Run(t, nil, harness.CommitArgs(id)...)
	cancel()
	<-ended
	return r
}

// harass waits for the commit to begin, and then acts and undoes until it ends.
// The first act comes at any moment of a commit, and it lets some commits pass.
func (a *attempt) harass(ctx context.Context, attack attack, random *rand.Rand) {
	for a.staging() == "" {
		if ctx.Err() != nil {
			return
		}
	}
	spin(ctx, time.Duration(random.Int64N(int64(20*time.Millisecond))))
	for ctx.Err() == nil {
		if !attack.act(a) {
			continue
		}
		if attack.undo == nil {
			return
		}
		a.acting = true
		spin(ctx, time.Duration(random.Int64N(int64(300*time.Microsecond))))
		attack.undo(a)
		a.acting = false
		spin(ctx, time.Duration(random.Int64N(int64(time.Millisecond))))
	}
}

// spin waits for a time that is too short to sleep.
func spin(ctx context.Context, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
		continue
	}
}

// TestLoopBites is the negative control: a writer that looks at the parent and
// then opens by path loses against the same attacker.
func TestLoopBites(t *testing.T) {
	dir := t.TempDir()
	parent, link, outside := filepath.Join(dir, "par"), filepath.Join(dir, "link"), filepath.Join(dir, "outside")
	harness.Must(t, os.Mkdir(parent, 0o755))
	harness.Must(t, os.Mkdir(outside, 0o755))
	harness.Must(t, os.Symlink(outside, link))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, parent, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	tried, written, escaped := 0, 0, 0
	for deadline := time.Now().Add(harness.Patience); escaped < 10 && time.Now().Before(deadline); tried++ {
		if info, err := os.Lstat(parent); err != nil || !info.IsDir() {
			continue
		}
		if os.WriteFile(filepath.Join(parent, "new.txt"), []byte("new"), 0o644) == nil {
			written++
		}
		if os.Remove(filepath.Join(outside, "new.txt")) == nil {
			escaped++
		}
	}
	cancel()
	<-ended
	t.Logf("%d attempts, %d written, %d of them outside", tried, written, escaped)
	if escaped == 0 {
		t.Error("the attack does not bite")
	}
}
