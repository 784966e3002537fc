package action_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// odd are names that JSON has to escape, or that other orders than that of
// UTF-8 bytes put elsewhere: U+FFFD comes before U+1F600 in bytes, and after
// it in UTF-16.
var odd = map[string]string{
	"B":                 "upper case comes first\n",
	"a b":               "",
	"a\"q\"":            "quotes",
	"a\nline\ttab":      "control characters",
	"a\x1b\x7f":         "escape and delete",
	"a-b":               "before a/b",
	"a/b":               "below a",
	"a/<&>\u2028":       "what some writers escape",
	"é":                 "after z",
	"z":                 "last of ASCII",
	"\ufffd":            "replacement character",
	"\U0001f600":        "beyond the plane",
	"RESTORE_REPORT.js": "nearly",
}

// goldenManifest is what Python's json and hashlib make of odd: entries in the
// order of the bytes of the paths, and only the escapes of the law (sections
// 7.3 and 7.4).
const goldenManifest = `{"entries":[` +
	`{"bytes":23,"relative_path":"B","sha256":"sha256:174db862dbf13b258c54b7ecd38c7668e1c78e658a7e3ed9cda7e2edeb87c34c"},` +
	`{"bytes":6,"relative_path":"RESTORE_REPORT.js","sha256":"sha256:bf33e11fa29422274424564c159f58229ed84fc7119b9c067af291e77ce0fe53"},` +
	`{"bytes":18,"relative_path":"a\nline\ttab","sha256":"sha256:3315c6e9cfd31774ac1ba291d84d7e8bf7ff3ceb3c7d3757c25eefe6786607c1"},` +
	`{"bytes":17,"relative_path":"a\u001b` + "\x7f" + `","sha256":"sha256:aa167c276fe0565606337afcf1870295880653548a4ebb388b76c24e7d5c5a78"},` +
	`{"bytes":0,"relative_path":"a b","sha256":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},` +
	`{"bytes":6,"relative_path":"a\"q\"","sha256":"sha256:37a6482867683ee3a8122b7132806c4dedca002f3b4481f17da8d14b9a2724cd"},` +
	`{"bytes":10,"relative_path":"a-b","sha256":"sha256:42e68f0ab85a509b5d9f03127938342105088e241b5fe05a7480df901a91b806"},` +
	`{"bytes":24,"relative_path":"a/<&>` + "\u2028" + `","sha256":"sha256:94e7e2c9b8f5dd9f90c8c264a3a18a3f77deae1cbf3f1183da870c56ebab341f"},` +
	`{"bytes":7,"relative_path":"a/b","sha256":"sha256:d553ab1b99349534b7eca0c19a6c1140eb5f5d202676454d114c0b311d1b73e7"},` +
	`{"bytes":13,"relative_path":"z","sha256":"sha256:c1425e7691638e0cc4617ab9becf74db39488c65774bdd2c437570d09df61c07"},` +
	`{"bytes":7,"relative_path":"é","sha256":"sha256:05f603a6a0e40e2972d257417f416e5d51f3c8108aae39465d1f4d6ad507c162"},` +
	`{"bytes":21,"relative_path":"` + "\ufffd" + `","sha256":"sha256:e9a03447f0a55982f090ff0f216d5b4850840a38c2905ea56e2e60fa3c43c83f"},` +
	`{"bytes":16,"relative_path":"😀","sha256":"sha256:17a64b3bc87b21a1d389cc3c378a18b3c6ed635ef5ff74008b2015ce0832b085"}` +
	`]}`

// goldenReport has the bundle root, which depends on nothing but the fixture.
const goldenReport = `{"bundle_roots":["5fa8186013c42b3fadd159b9b97c2092a3cbe78eb6ae3fc24a31ecb447ad0156"],"chain_root":null,"ok":true,"restored_bytes":168,"restored_files_count":13}`

func TestGoldenArtifacts(t *testing.T) {
	s := emptyScene(t, false)
	s.add("run-2", odd)
	s.mustCommit()
	if got := harness.ReadFile(t, s.at("RESTORE_MANIFEST.json")); got != goldenManifest {
		t.Errorf("manifest\n%s\nwant\n%s", got, goldenManifest)
	}
	if got := harness.ReadFile(t, s.at("RESTORE_REPORT.json")); got != goldenReport {
		t.Errorf("report\n%s\nwant\n%s", got, goldenReport)
	}
}

// The report of each run of a chain names its own bundle, and the chain.
const (
	goldenFirst = `{"bundle_roots":["54e1c54dad890c678ff048433ef283786caa00562a16ba14519765c0836ed33a"],"chain_root":"e3d95b00f1cdc985c48a1358a893970018002a02b364e0e762c333999dd43c21","ok":true,"restored_bytes":6,"restored_files_count":1}`
	goldenLast  = `{"bundle_roots":["9ef448359504c53509985579494db56f88d10ea597e81332416237a9a4f8dd6b"],"chain_root":"e3d95b00f1cdc985c48a1358a893970018002a02b364e0e762c333999dd43c21","ok":true,"restored_bytes":3,"restored_files_count":2}`
)

func TestGoldenChainArtifacts(t *testing.T) {
	s := emptyScene(t, true)
	s.add("run-1", map[string]string{"gen/c.txt": "gamma\n"})
	s.add("a-run", map[string]string{"x": "1", "y": "22"})
	s.mustCommit()
	got := []string{harness.ReadFile(t, s.at("run-1/RESTORE_REPORT.json")), harness.ReadFile(t, s.at("a-run/RESTORE_REPORT.json"))}
	if want := []string{goldenFirst, goldenLast}; !slices.Equal(got, want) {
		t.Errorf("reports\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	const manifest = `{"entries":[{"bytes":1,"relative_path":"x","sha256":"sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"},{"bytes":2,"relative_path":"y","sha256":"sha256:785f3ec7eb32f30b90cd0fcf3657d388b5ff4297f2f9716ff66e9b69c05ddd09"}]}`
	if got := harness.ReadFile(t, s.at("a-run/RESTORE_MANIFEST.json")); got != manifest {
		t.Errorf("manifest\n%s\nwant\n%s", got, manifest)
	}
}

// The result artifacts as section 7 describes them, for a reader that is not
// ours.
type (
	manifest struct {
		Entries []manifestEntry `json:"entries"`
	}
	manifestEntry struct {
		RelativePath string `json:"relative_path"`
		SHA256       string `json:"sha256"`
		Bytes        int64  `json:"bytes"`
	}
	reportFile struct {
		OK          bool     `json:"ok"`
		Count       int      `json:"restored_files_count"`
		Bytes       int64    `json:"restored_bytes"`
		BundleRoots []string `json:"bundle_roots"`
		ChainRoot   *string  `json:"chain_root"`
	}
)

// TestInvariants: section 7.6, checked against the restored files.
func TestInvariants(t *testing.T) {
	for _, mode := range []string{"single", "chain"} {
		t.Run(mode, func(t *testing.T) {
			s := newScene(t, mode)
			s.add("run-3", odd)
			if mode == "single" {
				s.runs = s.runs[1:]
				s.want = odd
			}
			s.mustCommit()
			var roots, ids []string
			for _, r := range s.runs {
				roots, ids = append(roots, r.BundleRoot()), append(ids, filepath.Base(r.Dir))
			}
			chainRoot, err := bundle.ChainRoot(roots, ids)
			must(t, err)
			for i, r := range s.runs {
				dir := s.root
				if s.chain {
					dir = s.at(ids[i])
				}
				rep := checkInvariants(t, dir, r.Read(bundle.OutputHashes))
				if !slices.Equal(rep.BundleRoots, roots[i:i+1]) {
					t.Errorf("bundle roots %q, want %q", rep.BundleRoots, roots[i])
				}
				if s.chain != (rep.ChainRoot != nil) || s.chain && *rep.ChainRoot != chainRoot {
					t.Errorf("chain root %v", rep.ChainRoot)
				}
			}
		})
	}
}

// checkInvariants holds the artifacts of one result root against its files and
// against OUTPUT_HASHES.json.
func checkInvariants(t *testing.T, dir string, outputHashes []byte) reportFile {
	t.Helper()
	var signed struct{ Hashes map[string]string }
	var m manifest
	var rep reportFile
	must(t, json.Unmarshal(outputHashes, &signed))
	parseExactly(t, filepath.Join(dir, "RESTORE_MANIFEST.json"), &m)
	parseExactly(t, filepath.Join(dir, "RESTORE_REPORT.json"), &rep)
	var bytes int64
	for _, e := range m.Entries {
		raw := harness.ReadFile(t, filepath.Join(dir, e.RelativePath))
		if bytes += e.Bytes; int64(len(raw)) != e.Bytes || sum(raw) != e.SHA256 || signed.Hashes[e.RelativePath] != e.SHA256 {
			t.Errorf("entry %+v does not fit its file", e)
		}
		delete(signed.Hashes, e.RelativePath)
	}
	if len(signed.Hashes) > 0 {
		t.Errorf("not in the manifest: %v", signed.Hashes)
	}
	if !rep.OK || rep.Count != len(m.Entries) || rep.Bytes != bytes {
		t.Errorf("report %+v of %d entries with %d bytes", rep, len(m.Entries), bytes)
	}
	if !slices.IsSortedFunc(m.Entries, func(a, b manifestEntry) int { return strings.Compare(a.RelativePath, b.RelativePath) }) {
		t.Error("entries do not ascend")
	}
	return rep
}

// parseExactly rejects fields that the law does not have, and white space.
func parseExactly(t *testing.T, name string, v any) {
	t.Helper()
	raw := harness.ReadFile(t, name)
	d := json.NewDecoder(strings.NewReader(raw))
	d.DisallowUnknownFields()
	must(t, d.Decode(v))
	if d.InputOffset() != int64(len(raw)) || strings.TrimSpace(raw) != raw {
		t.Errorf("%q has more than its object", name)
	}
	info, err := os.Stat(name)
	must(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("%q has mode %v", name, info.Mode())
	}
}

func sum(content string) string {
	digest := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(digest[:])
}
