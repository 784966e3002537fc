package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// wrongContent is the verdict if an artifact has the content of another one, in the order of
// SPECTRUM-05.
var wrongContent = []struct {
	name string
	code verify.Code
}{
	{bundle.Identity, verify.FieldExtra},
	{bundle.OutputHashes, verify.FieldMissing},
	{bundle.SignedPayload, verify.FieldExtra},
	{bundle.TaskSpec, verify.BundleRootMismatch},
	{bundle.Status, verify.BundleRootMismatch},
	{bundle.Signature, verify.SignatureMalformed},
	{bundle.Proof, verify.FieldMissing},
}

// TestEveryPairSwapped gives each artifact the content of each other one; then it exchanges the
// two.
func TestEveryPairSwapped(t *testing.T) {
	r := nestedRun(t)
	run, cases := openRuns(t, r)[0], 0
	check := func(what string, want verify.Code) {
		t.Helper()
		if now := verdict(t, run); now != string(want) {
			t.Errorf("%s: %s, want %s", what, now, want)
		}
		cases++
	}
	for i, one := range wrongContent {
		for j, other := range wrongContent {
			if i == j {
				continue
			}
			mine, theirs := r.Read(one.name), r.Read(other.name)
			r.WriteRaw(one.name, theirs)
			check(other.name+" as "+one.name, one.code)
			r.WriteRaw(other.name, mine)
			check(one.name+" and "+other.name+" swapped", wrongContent[min(i, j)].code)
			r.WriteRaw(one.name, mine)
			r.WriteRaw(other.name, theirs)
		}
	}
	if cases != 2*7*6 {
		t.Errorf("%d cases", cases)
	}
}

// TestEveryMixture takes every set of artifacts from another good bundle, of the same key and of
// another one (hostile list, 57). Only whole bundles are good, and PROOF.json belongs to none.
func TestEveryMixture(t *testing.T) {
	for _, otherKey := range []bool{false, true} {
		r := nestedRun(t)
		other := r.Project.Run("other", map[string]string{"dist/c": "ccc"})
		if otherKey {
			other.Seed[0] ^= 1
		}
		other.Edit(bundle.Status, set("more", 1))
		other.Edit(bundle.Proof, set("more", 1))
		other.Sign()
		mine, theirs := artifactBytes(r), artifactBytes(other)
		run, cases := openRuns(t, r)[0], 0
		ours := verdict(t, run)
		whole := strings.Replace(verdict(t, openRuns(t, other)[0]), "accepted other", "accepted run-1", 1)
		if !strings.HasPrefix(ours, "accepted") || !strings.HasPrefix(whole, "accepted") || whole == ours {
			t.Fatal(ours, whole)
		}
		tried := sample.Every(t, 5)
		for taken := range 1 << len(strictOrder) {
			if !tried.Has(taken + 1) {
				continue
			}
			bound, all := 0, 0 // of those that a signature binds together
			for i, name := range strictOrder {
				r.WriteRaw(name, mine[i])
				isBound := name != bundle.Proof && (name != bundle.Identity || otherKey)
				if isBound {
					all++
				}
				if taken>>i&1 == 1 {
					r.WriteRaw(name, theirs[i])
					if isBound {
						bound++
					}
				}
			}
			now := verdict(t, run)
			switch {
			case bound == 0 && now != ours, bound == all && now != whole, bound > 0 && bound < all && strings.HasPrefix(now, "accepted"):
				t.Errorf("other key %v, artifacts %07b of another: %s", otherKey, taken, now)
			}
			cases++
		}
		t.Logf("other key %v: %d mixtures", otherKey, cases)
	}
}

func artifactBytes(r *bundletest.Run) [][]byte {
	all := make([][]byte, len(strictOrder))
	for i, name := range strictOrder {
		all[i] = r.Read(name)
	}
	return all
}

// TestEveryMissing: a missing artifact precedes any fault of another one; of two missing ones, the
// law's first is reported.
func TestEveryMissing(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	all := artifactBytes(r)
	for i, name := range strictOrder {
		for j, other := range strictOrder {
			if i == j {
				continue
			}
			for what, spoil := range map[string]func(){
				"malformed":  func() { r.WriteRaw(other, []byte("{")) },
				"one bit":    func() { r.WriteRaw(other, append([]byte{all[j][0] ^ 1}, all[j][1:]...)) },
				"empty":      func() { r.WriteRaw(other, []byte("{}")) },
				"a FIFO":     func() { replaceBy(t, r.Path(other), harness.FIFO) },
				"the other":  func() { r.WriteRaw(other, all[i]) },
				"missing":    func() { r.Remove(other) },
				"and a twin": func() { r.WriteRaw("SIGNATURE2.json", nil) },
			} {
				r.Remove(name)
				spoil()
				first := name
				if what == "missing" {
					first = strictOrder[min(i, j)]
				}
				_, err := verify.Strict(t.Context(), run, verify.Watch{})
				if checkReject(t, err, want{verify.ArtifactMissing, about(first)}); t.Failed() {
					t.Fatalf("no %s, and %s %s", name, other, what)
				}
				r.Remove("SIGNATURE2.json")
				r.WriteRaw(other, all[j])
				r.WriteRaw(name, all[i])
			}
		}
	}
}

// TestEveryArtifactElsewhere: an artifact that is a link to itself elsewhere is
// none, however the link is written; a second name of the same file is one.
func TestEveryArtifactElsewhere(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	original := verdict(t, run)
	outside := filepath.Join(t.TempDir(), "outside")
	for _, name := range strictOrder {
		raw := r.Read(name)
		for what, target := range map[string]string{
			"beside": name + ".real", "with a dot": "./" + name + ".real", "by the parent": "../run-1/" + name + ".real",
			"absolute": r.Path(name + ".real"), "outside": outside, "by /proc": fmt.Sprintf("/proc/self/root%s", outside),
		} {
			r.WriteRaw(name+".real", raw)
			must(t, writeFile(outside, string(raw)))
			replaceBy(t, r.Path(name), harness.LinkTo(target))
			if _, err := os.ReadFile(r.Path(name)); err != nil {
				t.Fatalf("the link leads nowhere: %v", err)
			}
			_, err := verify.Strict(t.Context(), run, verify.Watch{})
			if checkReject(t, err, want{verify.ArtifactMalformed, about(name)}); t.Failed() {
				t.Fatalf("%s as a link: %s", name, what)
			}
			r.Remove(name)
			must(t, os.Link(r.Path(name+".real"), r.Path(name)))
			if now := verdict(t, run); now != original {
				t.Fatalf("%s as a second name: %s", name, now)
			}
		}
		r.Remove(name + ".real")
		r.WriteRaw(name, raw)
	}
}

// TestMiddleOfChain makes every change in the middle run of three: the verdict
// names that run, and nothing of the chain is accepted; unless the change is of
// an unsigned part, and then the chain is the very same.
func TestMiddleOfChain(t *testing.T) {
	runs := newChain(t, 3)
	r, opened := runs[1], openRuns(t, runs...)
	for i, name := range strictOrder {
		if i == 4 {
			r.Sign() // what came before
		}
		canonicalise(r, name)
	}
	original, verdicts := chainAnswer(t, opened), map[string]int{}
	if !strings.HasPrefix(original, "chain ") {
		t.Fatal(original)
	}
	check := func(what, want string) {
		t.Helper()
		c, err := verify.StrictChain(t.Context(), opened, verify.Watch{})
		switch {
		case err == nil && (want != "" || chainAnswer(t, opened) != original):
			t.Errorf("%s: accepted, as %s", what, c.Root())
		case err != nil && (want == "" || c != nil || rejected(t, err).RunID != "r1"):
			t.Errorf("%s: %v, chain %v", what, err, c)
		}
		verdicts[want]++
	}
	number, tried := 0, sample.Every(t, 11)
	for _, name := range strictOrder {
		raw := r.Read(name)
		for _, m := range mutants(t, raw) {
			if number++; !tried.Has(number) {
				continue
			}
			r.WriteRaw(name, []byte(m.text))
			check(name+": "+m.what, m.expected(name))
		}
		for bit := range 8 * len(raw) {
			if bit%29 != 0 || name == bundle.Proof || name == bundle.OutputHashes {
				continue
			}
			if number++; tried.Has(number) {
				r.WriteRaw(name, slices.Concat(raw[:bit/8], []byte{raw[bit/8] ^ 1<<(bit%8)}, raw[bit/8+1:]))
				check(fmt.Sprintf("%s, bit %d", name, bit), "refused")
			}
		}
		for _, neighbour := range []*bundletest.Run{runs[0], runs[2]} {
			r.WriteRaw(name, neighbour.Read(name))
			want := "refused"
			if name == bundle.Identity || name == bundle.Proof {
				want = "" // the same key, and a proof belongs to no bundle
			}
			check(name+" of a neighbour", want)
		}
		r.Remove(name)
		check("without "+name, "refused")
		r.WriteRaw(name, raw)
	}
	check("as it was", "")
	t.Logf("%v", verdicts)
}

// TestEveryOrderOfChain: a chain is good in any order, and with the run
// directories' names exchanged; and each is another chain. SPECTRUM-03 takes
// the order of time alone.
func TestEveryOrderOfChain(t *testing.T) {
	runs := newChain(t, 3)
	permutations := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	seen := map[string]string{}
	for k, names := range permutations {
		for i, r := range runs {
			moved := at(r, fmt.Sprintf("runs/%d/name%d", k, names[i]))
			must(t, os.MkdirAll(filepath.Dir(moved), 0o755))
			must(t, os.Rename(r.Dir, moved))
			r.Dir = moved
		}
		opened := openRuns(t, runs...)
		for _, order := range permutations {
			list := []*verify.Run{opened[order[0]], opened[order[1]], opened[order[2]]}
			c, err := verify.StrictChain(t.Context(), list, verify.Watch{})
			must(t, err)
			what := fmt.Sprintf("names %v, order %v", names, order)
			if before, ok := seen[c.Root()]; ok {
				t.Errorf("%s: the same root as %s", what, before)
			}
			seen[c.Root()] = what
			err = verify.Memory(t.Context(), list, verify.Watch{})
			if slices.Equal(order, permutations[0]) {
				must(t, err)
			} else {
				checkReject(t, err, orderWant)
			}
		}
	}
	if len(seen) != 36 {
		t.Errorf("%d chains", len(seen))
	}
}
