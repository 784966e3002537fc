package pathsafe

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLinksBesideRenames opens the longest chain of links while another process renames: the kernel
// then restarts its walk, and counts the links of the first one again.
func TestLinksBesideRenames(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root := plantLinks(t)
		d := openDir(t, root, w)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a, b := filepath.Join(root, "chain20"), filepath.Join(root, "moved")
			for {
				select {
				case <-stop:
					return
				default:
					_ = os.Rename(a, b)
					_ = os.Rename(b, a)
				}
			}
		}()
		defer func() { close(stop); <-ended }()
		chain := mustParse(t, "chain39")
		for range 5000 {
			if f, _, err := d.OpenRegular(chain, LinksBeneath); err == nil {
				_ = f.Close()
			} else if got := reason(err); got != "missing" {
				t.Fatalf("%s: %v", got, err)
			}
		}
	})
}
