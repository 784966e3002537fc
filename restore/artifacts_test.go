package restore_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"pgregory.net/rapid"
)

// manifestEntry and the two others are the result artifacts as section 7 has
// them; only these structs, and no code of the package, say what is expected.
type manifestEntry struct {
	Bytes  int64  `json:"bytes"`
	Path   string `json:"relative_path"`
	SHA256 string `json:"sha256"`
}

type wantManifest struct {
	Entries []manifestEntry `json:"entries"`
}

type wantReport struct {
	BundleRoots []string `json:"bundle_roots"`
	ChainRoot   *string  `json:"chain_root"`
	OK          bool     `json:"ok"`
	Bytes       int64    `json:"restored_bytes"`
	Files       int      `json:"restored_files_count"`
}

// expected writes both artifacts of one run by the general way.
func expected(t testing.TB, outputs map[string]string, root string, chainRoot *string) (manifest, report string) {
	t.Helper()
	m := wantManifest{Entries: []manifestEntry{}}
	r := wantReport{BundleRoots: []string{root}, ChainRoot: chainRoot, OK: true}
	for _, path := range slices.Sorted(maps.Keys(outputs)) {
		content := outputs[path]
		m.Entries = append(m.Entries, manifestEntry{int64(len(content)), path, bundletest.Hash(content)})
		r.Files++
		r.Bytes += int64(len(content))
	}
	rawManifest, err := canonjson.Marshal(m)
	must(t, err)
	rawReport, err := canonjson.Marshal(r)
	must(t, err)
	return string(rawManifest), string(rawReport)
}

// viewOf plans a scene for a view.
func viewOf(t testing.TB, s *scene) *restore.Plan {
	t.Helper()
	plan, err := restore.ForView(context.Background(), s.candidate())
	must(t, err)
	return plan
}

// checkArtifacts compares the artifacts of each run with what is expected.
func checkArtifacts(t testing.TB, s *scene, outputs ...map[string]string) {
	t.Helper()
	plan := viewOf(t, s)
	var chainRoot *string
	if plan.IsChain() {
		root := plan.ChainRoot()
		chainRoot = &root
	}
	got := artifactsOf(plan)
	if len(got) != 2*len(outputs) {
		t.Fatalf("%d artifacts of %d runs", len(got), len(outputs))
	}
	for i, o := range outputs {
		manifest, report := expected(t, o, s.runs[i].BundleRoot(), chainRoot)
		if got[2*i].Data != manifest {
			t.Errorf("manifest of run %d:\n%q\nwant\n%q", i, got[2*i].Data, manifest)
		}
		if got[2*i+1].Data != report {
			t.Errorf("report of run %d:\n%q\nwant\n%q", i, got[2*i+1].Data, report)
		}
	}
}

// TestArtifactsOfOddNames: what is escaped, and what must not be.
func TestArtifactsOfOddNames(t *testing.T) {
	outputs := map[string]string{}
	for c := rune(1); c < 0x180; c++ {
		if c != '/' && c != '\\' {
			outputs[fmt.Sprintf("c%03x-%c", c, c)] = string(c)
		}
	}
	for i, text := range []string{
		`"`, `""`, `a"b`, "\x7f", "\u2028", "\u2029", "\ufeff", "\ufffd", "\uffff", "\U0001f4a1", "\U0010ffff", "<&>", "\u202e", "e\u0301", "\u00e9", "\b\f\n\r\t\x01\x1f", "'", "\u0080",
	} {
		outputs[fmt.Sprintf("d/%02d%s", i, text)] = strings.Repeat("x", i)
		outputs[fmt.Sprintf("e%s/%02d", text, i)] = ""
	}
	for _, chain := range []bool{false, true} {
		checkArtifacts(t, newScene(t, chain, outputs), outputs)
		checkArtifacts(t, newScene(t, true, anotherRun, outputs, oneRun), anotherRun, outputs, oneRun)
	}
}

// TestArtifactsOfAnyBundle: random bundles, with long names among them.
func TestArtifactsOfAnyBundle(t *testing.T) {
	harness.TempInMemory(t)
	letter := rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("\x01\x02\t\n\x1f\x7f\"'<>&aA\u2028\u2029\ufeff\u0301")))
	name := rapid.Custom(func(rt *rapid.T) string {
		text := rapid.StringOfN(letter, 1, 40, 200).Draw(rt, "name")
		return "n" + strings.NewReplacer("\x00", "0", "/", "|", "\\", "!").Replace(text)
	})
	long := rapid.Custom(func(rt *rapid.T) string {
		return strings.Repeat(strings.Repeat("l", 200)+"/", rapid.IntRange(1, 15).Draw(rt, "depth")) + name.Draw(rt, "leaf")
	})
	path := rapid.OneOf(name, rapid.Map(rapid.SliceOfN(name, 1, 4), func(names []string) string { return "d/" + strings.Join(names, "-/") }), long)
	harness.Checks(t, sample.Of(20, 100, 100))
	rapid.Check(t, func(rt *rapid.T) {
		outputs := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "outputs") {
			p := path.Draw(rt, "path")
			for other := range outputs {
				if strings.HasPrefix(other+"/", p+"/") || strings.HasPrefix(p+"/", other+"/") {
					p = ""
				}
			}
			if p != "" {
				outputs[p] = strings.Repeat("c", rapid.IntRange(0, 100).Draw(rt, "size"))
			}
		}
		checkArtifacts(t, newScene(t, rapid.Bool().Draw(rt, "chain"), outputs), outputs)
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

// TestArtifactsOfNothing: a bundle without outputs is restored too, or rejected;
// its manifest is not something else.
func TestArtifactsOfNothing(t *testing.T) {
	s := newScene(t, false, map[string]string{})
	plan, err := restore.ForView(context.Background(), s.candidate())
	if err != nil {
		restoretest.FailureOf(t, err)
		return
	}
	manifest, report := expected(t, nil, s.runs[0].BundleRoot(), nil)
	if got := artifactsOf(plan); got[0].Data != manifest || got[1].Data != report {
		t.Errorf("%q", got)
	}
}

// TestManifestTakesItsOwnRoom: a long name says nothing of the others' length.
func TestManifestTakesItsOwnRoom(t *testing.T) {
	harness.TempInMemory(t)
	const files = 2000
	long := strings.Repeat(strings.Repeat("l", 200)+"/", 15)
	taken := func(prefix string) int64 {
		outputs := map[string]string{prefix + long + "f": ""}
		for i := range files {
			outputs[fmt.Sprintf("m/%d", i)] = ""
		}
		s := newScene(t, false, outputs)
		c := s.candidate()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := restore.ForView(context.Background(), c)
		runtime.ReadMemStats(&after)
		must(t, err)
		return int64(after.TotalAlloc - before.TotalAlloc)
	}
	first, last := taken("a/"), taken("z/")
	if more := first - last; more > files*int64(len(long))/2 {
		t.Errorf("with the long name first the plan takes %d bytes more", more)
	}
}
