package view

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// walkMany mounts so many files and walks over all of them ten times: the
// server has no more memory after the last walk than after the second, but for
// what its runtime leaves lying about.
func walkMany(t *testing.T, files, mostPeak int) {
	t.Helper()
	p := sealed(t, func(dir string) {
		for i := range files {
			path := filepath.Join(dir, fmt.Sprintf("%03d/%02d/%d", i/1000, i/50%20, i))
			if i%50 == 0 {
				harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			}
			harness.Must(t, os.WriteFile(path, fmt.Append(nil, i), 0o600))
		}
	})
	v := p.Mount(t, harness.Mounting{Patience: 20 * time.Minute})
	var early int
	for walk := range 10 {
		found := output(t, nil, "sh", "-c", `find "$0" -type f -size -2 | wc -l`, v.Path("tree"))
		if strings.TrimSpace(found) != fmt.Sprint(files) {
			t.Fatalf("find sees %s of %d files", found, files)
		}
		// The kernel forgets what it knows of a file system that is mounted anew.
		harness.Must(t, unix.Mount("", v.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""))
		if walk == 1 {
			early = status(t, v, "VmRSS")
		}
	}
	late, peak := status(t, v, "VmRSS"), status(t, v, "VmHWM")
	t.Logf("%d files: %d kB at most, %d kB after two walks, %d kB after ten", files, peak, early, late)
	if peak > mostPeak || late > early+early/4+20_000 {
		t.Error("that is too much")
	}
	last := files - 1
	got, err := os.ReadFile(v.Path(fmt.Sprintf("tree/%03d/%02d/%d", last/1000, last/50%20, last)))
	if err != nil || string(got) != fmt.Sprint(last) {
		t.Errorf("the last file reads as %q, %v", got, err)
	}
}

func TestManyFiles(t *testing.T) { walkMany(t, sample.Of(4_000, 20_000, 20_000), 120_000) }

func TestLongMillionFiles(t *testing.T) {
	sample.Need(t, sample.Long)
	walkMany(t, 1_000_000, 600_000)
}
