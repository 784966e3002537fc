package staging

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// sourcesName is a directory beside a root. Where it exists, the sources of all
// fixtures in its parent stand in it, and each is written only once.
const sourcesName = "sources"

// scratch mounts a tmpfs for the roots of the fixtures, and within it another one for
// their sources: a file on another file system cannot be cloned, and the attempt to
// clone it is one of the calls that fail.
func scratch(t testing.TB) string {
	t.Helper()
	base := mountTmpfs(t, "")
	sources := shareSources(t, base)
	harness.Mount(t, "tmpfs", sources, "tmpfs", 0, "")
	return base
}

// shareSources makes the directory for the sources of the fixtures beneath base.
func shareSources(t testing.TB, base string) string {
	t.Helper()
	sources := filepath.Join(base, sourcesName)
	must(t, os.Mkdir(sources, 0o700))
	return sources
}

// sampled reports whether this run tries only a part of each sweep. What the seed
// chooses then decides how often each kind of end is seen.
func sampled() bool { return sample.Now() == sample.Sample }

// tries returns the calls, numbered from 1 to total, that this run tries: in a sample
// at least wanted of them, evenly spread, or all if they are fewer; else all.
func tries(t testing.TB, wanted, total int) []int {
	t.Helper()
	if total < 1 {
		t.Fatal("there is no call to try")
	}
	stride := sample.Every(t, total/wanted)
	var calls []int
	for i := 0; stride.At(i) <= total; i++ {
		calls = append(calls, stride.At(i))
	}
	return calls
}

// some returns those of a list that tries would try by their position.
func some[T any](t testing.TB, wanted int, list []T) []T {
	t.Helper()
	var chosen []T
	for _, n := range tries(t, wanted, len(list)) {
		chosen = append(chosen, list[n-1])
	}
	return chosen
}
