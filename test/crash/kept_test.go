package crash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestKeptIsNamed kills a commit that has replaced a file, and another process replaces that once
// more. The newer file stays, and the command that undoes the commit keeps the earlier one and names it.
func TestKeptIsNamed(t *testing.T) {
	tr := replacing(t, harness.MemoryDir(t))
	for _, command := range []string{"recover", "recover --json", "preview"} {
		s := tr.aloneIn(t, command)
		killedAt(t, s, moments[3])
		path := filepath.Join(s.Root, "top.txt")
		harness.Must(t, os.Remove(path))
		harness.Must(t, os.WriteFile(path, []byte("newer"), 0o600))
		var r harness.Reply
		switch command {
		case "preview":
			r = s.PreviewReply(t, nil)
		case "recover":
			r = s.Project.Run(t, nil, "recover", s.Root)
		default:
			r = s.Recover(t, nil)
		}
		kept, err := filepath.Glob(filepath.Join(s.Root, "spectrum-kept-*/top.txt"))
		harness.Must(t, err)
		if len(kept) != 1 || harness.ReadFile(t, path) != "newer" || harness.ReadFile(t, kept[0]) == "newer" {
			t.Fatalf("%q: %v", kept, r)
		}
		if !strings.Contains(r.Stderr, "spectrum: top.txt has a newer file of another process, which stays; the file that was there is kept in ") || !strings.Contains(r.Stderr, kept[0]) {
			t.Errorf("%s does not name what it has kept: %v", command, r)
		}
		if command != "recover --json" {
			continue
		}
		var found struct {
			Attempts []struct {
				Kept []struct{ At, Path string }
			}
		}
		harness.Must(t, json.Unmarshal([]byte(r.Stdout), &found))
		if len(found.Attempts) != 1 || len(found.Attempts[0].Kept) != 1 || found.Attempts[0].Kept[0].Path != "top.txt" || found.Attempts[0].Kept[0].At != kept[0] {
			t.Errorf("%v", r)
		}
	}
}
