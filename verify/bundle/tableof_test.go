package bundle_test

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestTableOf: the table of known outputs is the one that Seal signs; other bytes, of the same or of another
// size, and a missing file have none.
func TestTableOf(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "alpha", "b": ""} {
		must(t, os.WriteFile(dir+"/"+name, []byte(content), 0o640))
	}
	project, err := pathsafe.OpenRoot(dir)
	must(t, err)
	defer project.Close()
	key, err := bundle.GenerateKey()
	must(t, err)
	_, err = bundle.Seal(t.Context(), bundle.SealOptions{Project: project, RunDir: dir + "/run", Outputs: []string{"a", "b"}, Blocks: true, Key: key, BuildID: "git:0"})
	must(t, err)
	want, err := os.ReadFile(dir + "/run/" + bundle.BlocksFile)
	must(t, err)
	files := []bundle.Known{known(t, "b", ""), known(t, "a", "alpha")}
	if table, err := bundle.TableOf(t.Context(), project, files, nil); err != nil || string(table.Bytes()) != string(want) {
		t.Errorf("another table, %v", err)
	}
	for _, content := range []string{"alphb", "alpha ", ""} {
		must(t, os.WriteFile(dir+"/a", []byte(content), 0o640))
		if table, err := bundle.TableOf(t.Context(), project, files, nil); table != nil || err == nil {
			t.Errorf("%q: %v, %v", content, table, err)
		}
	}
	must(t, os.Remove(dir+"/a"))
	if table, err := bundle.TableOf(t.Context(), project, files, nil); table != nil || err == nil {
		t.Errorf("%v, %v", table, err)
	}
}
