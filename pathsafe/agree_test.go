package pathsafe

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// verdict is everything the two walkers must agree on about one path.
func verdict(d *Dir, p Path) string {
	var b strings.Builder
	for _, links := range []Links{NoLinks, LinksBeneath} {
		f, st, err := d.OpenRegular(p, links)
		fmt.Fprintf(&b, "%s %d; ", reason(err), st.ID.Ino)
		if err == nil {
			_ = f.Close()
		}
		st, err = d.StatPath(p, links)
		fmt.Fprintf(&b, "%s %d; ", reason(err), st.ID.Ino)
	}
	parent, err := d.OpenParent(p, len(p.Components()))
	if err == nil {
		_ = parent.Close()
	}
	return b.String() + surveyWord(d, p) + "; " + reason(err)
}

func checkAgree(t *testing.T, root string, p Path) {
	t.Helper()
	kernel, own := openDir(t, root, kernelWalker{}), openDir(t, root, componentWalker{})
	if a, b := verdict(kernel, p), verdict(own, p); a != b {
		t.Errorf("%q: openat2 says %s\ncomponents say %s", p, a, b)
	}
}

// Random trees full of links, random paths through them: both walkers come to
// the same inode or the same reason. The sample need not reach every outcome.
func TestWalkersAgree(t *testing.T) {
	words := map[string]int{}
	tried := sample.Every(t, 6)
	for seed := range uint64(60) {
		if !tried.Has(int(seed) + 1) {
			continue
		}
		rng := rand.New(rand.NewPCG(seed, 6))
		root := filepath.Join(t.TempDir(), "root")
		growTree(t, rng, root)
		kernel, own := openDir(t, root, kernelWalker{}), openDir(t, root, componentWalker{})
		for range 200 {
			p := mustParse(t, randomPath(rng, []string{"a", "b", "c"}))
			a, b := verdict(kernel, p), verdict(own, p)
			if a != b {
				t.Errorf("seed %d, %q: openat2 says %s\ncomponents say %s", seed, p, a, b)
			}
			for _, w := range []string{"ok", "escape", "symlink", "missing", "not regular", "exists"} {
				if strings.Contains(a, w) {
					words[w]++
				}
			}
		}
	}
	if len(words) != 6 && tried == sample.All || len(words) == 0 {
		t.Errorf("the trees do not reach every outcome: %v", words)
	}
}

func growTree(t *testing.T, rng *rand.Rand, root string) {
	must(t, os.MkdirAll(root, 0o755))
	for range 25 {
		full := filepath.Join(root, randomPath(rng, []string{"a", "b", "c"}))
		if os.MkdirAll(filepath.Dir(full), 0o755) != nil {
			continue
		}
		switch rng.IntN(4) { // a name that is taken stays what it is
		case 0:
			_ = os.WriteFile(full, []byte("x"), 0o644)
		case 1:
			_ = os.Mkdir(full, 0o755)
		default:
			_ = os.Symlink(randomPath(rng, []string{"a", "b", "c", "..", "..", ".", "root", ""}), full)
		}
	}
}

func randomPath(rng *rand.Rand, words []string) string {
	names := make([]string, 1+rng.IntN(4))
	for i := range names {
		names[i] = words[rng.IntN(len(words))]
	}
	return strings.Join(names, "/")
}
