package bundle_test

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// TestSealBlocks: a table has what the files had when they were hashed, the claim binds it and
// PROOF.json, and a reader of the sources accepts every block.
func TestSealBlocks(t *testing.T) {
	s := newSealing(t)
	contents := map[string]string{"dist/big": strings.Repeat("0123456789abcde\n", 50_000), "dist/sub/empty": "", "notes.txt": "n"}
	for path, content := range contents {
		s.Write(path, content)
	}
	at := func(path string) string { return filepath.Join(s.Root, path) }
	must(t, os.Chmod(at("dist/big"), 0o751))
	must(t, os.Chmod(at("dist/sub"), 0o710))
	must(t, os.Chtimes(at("dist/big"), time.Time{}, time.Unix(12, 34)))
	s.opts.Outputs, s.opts.Blocks = []string{"dist", "notes.txt"}, true
	s.opts.Constraints = map[string]any{"agent_id": "a"}
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join(s.opts.RunDir, name))
		must(t, err)
		return raw
	}
	value, err := canonjson.Parse(read(bundle.TaskSpec))
	must(t, err)
	taskSpec, _ := value.Object()
	claim, named, err := bundle.ClaimedBlocks(taskSpec)
	must(t, err)
	if !named || claim.Block != blocktable.DefaultBlock || claim.Proof != sha256.Sum256(read(bundle.Proof)) || !bytes.Contains(read(bundle.TaskSpec), []byte(`"agent_id":"a"`)) {
		t.Fatalf("%v, %+v", named, claim)
	}
	paths := slices.Sorted(maps.Keys(contents))
	table, err := claim.ParseBlocks(read(bundle.BlocksFile), slices.Values(paths))
	must(t, err)
	if got := maps.Collect(table.Dirs()); !maps.Equal(got, map[string]fs.FileMode{"dist": 0o755, "dist/sub": 0o710}) {
		t.Error(got)
	}
	if got := table.Attributes(0); got != (blocktable.Attributes{Size: 800_000, Perm: 0o751, Sec: 12, Nsec: 34}) {
		t.Errorf("%+v", got)
	}
	for i, path := range paths {
		must(t, table.NewReader(i, sha256.Sum256([]byte(contents[path])), strings.NewReader(contents[path])).Check(t.Context()))
	}
	if _, err := claim.ParseBlocks(append(read(bundle.BlocksFile), 0), slices.Values(paths)); err == nil {
		t.Error("another file is the claimed one")
	}
}

// TestValuesOfLargerBlocks: values of larger blocks are some of those of the default ones.
func TestValuesOfLargerBlocks(t *testing.T) {
	valuesOf := func(size int, block int64) []byte {
		h := blockhash.NewHasher().Every(block)
		if _, err := h.Sum(t.Context(), bytes.NewReader(make([]byte, size)), int64(size)); err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(h.Values())
	}
	const block = blocktable.DefaultBlock
	for _, size := range []int{0, 1, block, block + 1, 2 * block, 2*block + 1, 4 * block, 5*block + 7, 8*block + 1} {
		for _, larger := range []int64{block, 2 * block, 4 * block} {
			got := bundle.Thinned(valuesOf(size, block), larger)
			want := valuesOf(size, larger)
			if !bytes.HasPrefix(got, want) || int64(len(want)) > blocktable.ValuesLen(int64(size), larger)+sha256.Size {
				t.Fatalf("%d bytes, blocks of %d: %d values, want %d", size, larger, len(got)/32, len(want)/32)
			}
			if int64(len(got)) != blocktable.ValuesLen(int64(size), larger) {
				t.Errorf("%d bytes, blocks of %d: %d values, want %d", size, larger, len(got)/32, blocktable.ValuesLen(int64(size), larger)/32)
			}
		}
	}
}
