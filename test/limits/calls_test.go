package limits

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// callsAFile are the system calls of a commit for each new file, on one processor, from the
// verification of its source to the check in its final place.
var callsAFile = map[string]int{
	"statx":           6, // holes; source at its hash; plan; source at its copy; staged; in place
	"openat2":         1, // source: a handle that cannot read
	"openat":          2, // the same for reading; the new file
	"close":           1, // that handle; source and copy are closed with others
	"pread64":         3, // the three hashes
	"copy_file_range": 1,
	"utimensat":       1,
	"fgetxattr":       1, // the access list in place
}

// TestCallsAFile: a commit of new files makes no more system calls for each of them than
// docs/performance.md has. Programs take more. Twice as many files in one directory take twice as
// many calls.
func TestCallsAFile(t *testing.T) {
	const few, many = 20, 60
	count := map[string]int{}
	for sign, files := range map[int]int{-1: few, 1: many} {
		run := harness.Files{}
		for i := 0; len(run) < files; i++ {
			if name := fmt.Sprintf("new/sub/%d", i); harness.ModeOf(name)&0o111 == 0 {
				run[name] = strings.Repeat(fmt.Sprint(i%10), 8<<10)
			}
		}
		dir := harness.MemoryDir(t)
		p := harness.NewIn(t, dir, run)
		r := p.Site(t, filepath.Join(dir, "root")).Commit(t, &sysfault.Plan{
			Match: func(sysfault.Call) bool { return true }, Record: true, Env: []string{"GOMAXPROCS=1"},
		})
		if r.Status != 0 {
			t.Fatal(r)
		}
		for _, call := range r.Fault.Trace {
			count[call.Name] += sign
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		got := float64(count[name]) / (many - few)
		if most := float64(callsAFile[name]); got > most+0.2 || got < most-0.2 {
			t.Errorf("%s: %.2f a file, want %.0f", name, got, most)
		}
	}
	if len(count) < len(callsAFile) {
		t.Errorf("counted: %v", count)
	}
}
