package view

import (
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"github.com/spectrumfs/spectrum/test/harness"
)

// applies is how a function of go-fuse's posixtest is applied to a view, where
// nothing can be made. Those that begin by making something are applied too, in
// a child: they must end with EROFS. What they test beside that is tested on
// what is there already.
type applies struct {
	asIs        bool                      // it passes as it is
	counterpart func(*testing.T, *within) // does the same without making anything
	instead     string                    // why there is nothing left to test
}

var posix = map[string]applies{
	"ReadDirConsistency": {asIs: true, counterpart: readDirConsistency},

	"DirSeek":             {counterpart: dirSeek},
	"DirectIO":            {counterpart: directIO},
	"FcntlFlockLocksFile": {counterpart: locksOfOthers},
	"FcntlFlockSetLk":     {counterpart: locks},
	"FdLeak":              {counterpart: fdLeak},
	"FileBasic":           {counterpart: fileBasic},
	"FileLarge":           {counterpart: fileLarge},
	"FstatDeleted":        {counterpart: fstatInAnyOrder},
	"LseekEnxioCheck":     {counterpart: lseekPastTheEnd},
	"LseekHoleSeeksToEOF": {counterpart: lseekHole},
	"OpenAt":              {counterpart: openAt},
	"ParallelFileOpen":    {counterpart: parallelOpen},
	"ReadDirBasic":        {counterpart: readDirBasic},
	"XAttr":               {counterpart: xattr},

	"AppendWrite":                {instead: "it writes: TestReadOnly, TestReadOnlyHandle"},
	"Fallocate":                  {instead: "it writes: TestReadOnlyHandle"},
	"FallocateKeepSize":          {instead: "it writes: TestReadOnlyHandle"},
	"Link":                       {instead: "there are no hard links: TestReadOnlyNames"},
	"LinkUnlinkRename":           {instead: "names do not change: TestReadOnly, TestReadOnlyNames"},
	"MkdirRmdir":                 {instead: "names do not change: TestReadOnly"},
	"NlinkZero":                  {instead: "names do not change: TestReadOnlyNames"},
	"OpenSymlinkRace":            {instead: "names do not change; links in the sources: TestSources"},
	"RenameOpenDir":              {instead: "names do not change: TestReadOnlyNames"},
	"RenameOverwriteDestExist":   {instead: "names do not change: TestReadOnlyNames"},
	"RenameOverwriteDestNoExist": {instead: "names do not change: TestReadOnlyNames"},
	"SetattrSymlink":             {instead: "a restore makes no links: TestReadOnly"},
	"SymlinkReadlink":            {instead: "a restore makes no links: TestReadOnly"},
	"Tmpfile":                    {instead: "it writes: TestReadOnly"},
	"TruncateFile":               {instead: "it writes: TestReadOnly, TestReadOnlyHandle"},
	"TruncateNoFile":             {instead: "it writes: TestReadOnly"},
	"XAttrLarge":                 {instead: "attributes do not change: TestReadOnly"},
}

// within is a view with what the counterparts need.
type within struct {
	*harness.View
	project *harness.Project
	files   sizes
}

func TestPosix(t *testing.T) {
	for name := range posixtest.All {
		if _, ok := posix[name]; !ok {
			t.Errorf("posixtest has %s, and this table has not", name)
		}
	}
	files := sizes{"file": 128<<10 + 123, "empty": 0, "down/sub/file": 4097}
	for i := range 168 {
		files["many/"+strings.Repeat("n", 40)+string(rune('A'+i%26))+string(rune('A'+i/26))] = int64(i)
	}
	p := harness.New(t, files.files())
	w := &within{p.Mount(t, harness.Mounting{}), p, files}
	ends := applyAll(t, w.Dir)
	for name, how := range posix {
		if posixtest.All[name] == nil {
			t.Errorf("posixtest has no %s any more", name)
		}
		if (ends[name] == "PASS") != how.asIs || !how.asIs && !strings.Contains(ends[name], "read-only file system") {
			t.Errorf("%s ends with %q", name, ends[name])
		}
		if how.counterpart != nil {
			t.Run(name, func(t *testing.T) { how.counterpart(t, w) })
		} else if how.instead == "" && !how.asIs {
			t.Errorf("%s is not applied, and there is no reason", name)
		}
	}
}

// applyAll applies every function as it is, in a child, and returns how each
// ended: PASS, or what it said.
func applyAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := command(t, "/proc/self/exe", orders{Role: "posix", View: dir})
	cmd.Args = append(cmd.Args, "-test.v")
	out, _ := cmd.CombinedOutput() // that most failed is in the output
	ends := map[string]string{}
	for part := range strings.SplitSeq(string(out), "=== RUN ") {
		name, said, _ := strings.Cut(strings.TrimSpace(part), "\n")
		if strings.Contains(said, "--- PASS") {
			said = "PASS"
		}
		ends[name] = said
	}
	if len(ends) < len(posixtest.All) {
		t.Fatalf("only %d functions were applied: %s", len(ends), out)
	}
	return ends
}

// childPosix applies all functions, as tests of its own; most of them fail.
func childPosix(o orders) error {
	var all []testing.InternalTest
	for name, apply := range posixtest.All {
		all = append(all, testing.InternalTest{Name: name, F: func(t *testing.T) { apply(t, o.View) }})
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, all, nil, nil)
	return nil
}
