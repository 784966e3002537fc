package staging

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// Random roots and random targets: what is new is what was asked for, and a
// failure at the last moment takes all of it back.
func TestRandomTrees(t *testing.T) {
	base, stride := scratch(t), sample.Every(t, 5)
	committed, trees := 0, sample.Of(150, 150, 1500)
	for i := 0; stride.At(i) <= trees; i++ {
		seed := stride.At(i) - 1
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		root := filepath.Join(base, fmt.Sprint(seed))
		must(t, os.Mkdir(root, 0o755))
		foreign, files := randomPaths(rng, 4), randomPaths(rng, 9)
		for i := range foreign {
			if rng.IntN(2) == 0 {
				foreign[i] += "/"
			}
		}
		sc := newCommitFixture(t, root, foreign, files, []string{"REPORT"})
		before := take(t, root)
		fail := failCheck(sc.spec.files[len(files)-1].Path.String(), 2)
		sc.hook = fail
		err := sc.commit()
		if e := failure(t, err); e.Rollback != nil || (e.Step != StepConflict && e.Step != StepVerify) {
			t.Errorf("seed %d: %v", seed, err)
		}
		sameTree(t, before, root)
		sc.hook = nil
		if e := failureOrNil(t, sc.commit()); e == nil {
			committed++
			sc.done(before)
		} else {
			_ = wantStep(t, e, StepConflict, e.Path)
			sameTree(t, before, root)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q over %q", seed, files, foreign)
		}
	}
	t.Logf("%d of %d committed", committed, trees)
	if !sampled() && (committed < 2*trees/15 || committed > 14*trees/15) {
		t.Error("the trees are too much alike")
	}
}

func failureOrNil(t *testing.T, err error) *Error {
	if err == nil {
		return nil
	}
	return failure(t, err)
}

// randomPaths returns up to n paths, none of them below another.
func randomPaths(rng *rand.Rand, n int) []string {
	var paths []string
	words := []string{"a", "b", "c", "a.", "a-b", "d"}
next:
	for range n {
		names := make([]string, 1+rng.IntN(5))
		for i := range names {
			names[i] = words[rng.IntN(len(words))]
		}
		p := strings.Join(names, "/")
		for _, q := range paths {
			if p == q || strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/") {
				continue next
			}
		}
		paths = append(paths, p)
	}
	return paths
}
