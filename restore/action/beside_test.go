package action_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestArtifactsNeverBesideOthers: while a snapshot is restored over another commit, and while
// that is undone, a reader that sees the result artifacts of a commit sees all of its outputs,
// and none of the other commit.
func TestArtifactsNeverBesideOthers(t *testing.T) {
	for _, fails := range []bool{false, true} {
		w := newFixture(t)
		first := w.mustCommit(map[string]string{"a": "1", "both": "first", "dir/a": "1"})
		then := read(t, w.root)
		taken := w.take()
		in := w.enter()
		_, err := action.Undo(context.Background(), in.Root, action.What{Commit: first, Reason: "asked for"})
		must(t, err)
		in.leave()
		w.mustCommit(map[string]string{"both": "second", "dir/z": "2", "z": "2"})
		now := read(t, w.root)

		seen := map[string]int{}
		look := func() {
			for _, name := range []string{restore.ManifestName, restore.ReportName} {
				text, err := os.ReadFile(w.at(name))
				if errors.Is(err, os.ErrNotExist) {
					seen["none"]++
					continue
				}
				must(t, err)
				mine := then
				if string(text) == contentOf(now, name) {
					mine = now
				}
				seen[map[bool]string{true: "now", false: "then"}[string(text) == contentOf(now, name)]]++
				for _, output := range []string{"a", "both", "dir/a", "dir/z", "z"} {
					got, _ := os.ReadFile(w.at(output))
					if string(got) != contentOf(mine, output) {
						t.Errorf("fails %v: beside %q stands %q with %q, want %q", fails, name, output, got, contentOf(mine, output))
					}
				}
			}
		}
		failed := false
		in = w.enter()
		in.whenStaging(func(op, path string, do func() error) error {
			look()
			if fails && op == "create" && path == ".spectrum06_committed.new" {
				failed = true
				return errors.New("it cannot be recorded")
			}
			err := do()
			look()
			return err
		})
		_, err = action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"})
		in.leave()
		if fails != (err != nil) || fails != failed {
			t.Fatalf("fails %v: %v", fails, err)
		}
		if seen["none"] == 0 || seen["now"] == 0 || !fails && seen["then"] == 0 {
			t.Errorf("fails %v: seen %v", fails, seen)
		}
		want := then
		if fails {
			want = now
		}
		for _, name := range []string{restore.ManifestName, restore.ReportName, "a", "both", "dir/a", "dir/z", "z"} {
			if got := contentOf(read(t, w.root), name); got != contentOf(want, name) {
				t.Errorf("fails %v: %q has %q in the end", fails, name, got)
			}
		}
	}
}

// contentOf is that of a file of a forest; "" where there is none.
func contentOf(f forest, path string) string {
	if th := f[path]; th != nil {
		return th.content
	}
	return ""
}
