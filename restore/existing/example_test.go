package existing_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/existing"
)

// What stands where a restore would put its files.
func Example() {
	top, err := os.MkdirTemp("", "standing")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(top)
	if err := os.WriteFile(filepath.Join(top, "report"), []byte("11.2\n"), 0o644); err != nil {
		log.Fatal(err)
	}
	root, err := pathsafe.OpenRoot(top)
	if err != nil {
		log.Fatal(err)
	}
	defer root.Close()

	var paths []pathsafe.Path
	for _, name := range []string{"new", "report", "report/summary.md"} {
		p, err := pathsafe.Parse(name)
		if err != nil {
			log.Fatal(err)
		}
		paths = append(paths, p)
	}
	files, err := existing.Read(context.Background(), root, paths, nil)
	if err != nil {
		log.Fatal(err)
	}
	for i, f := range files {
		if f.Refused == nil {
			fmt.Printf("%s: %d bytes, %x...\n", paths[i], f.Size, f.Digest[:4])
			continue
		}
		obstacle, err := existing.Find(root, paths[i])
		if err != nil {
			log.Fatal(err)
		}
		if obstacle.Path == "" {
			fmt.Printf("%s: free\n", paths[i])
			continue
		}
		fmt.Printf("%s: %q is in the way, %s\n", paths[i], obstacle.Path, obstacle.Kind)
	}
	// Output:
	// new: free
	// report: 5 bytes, 28deeb14...
	// report/summary.md: "report" is in the way, a regular file
}
