package restore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestHostileRoots: 80, the restore roots that are allowed. (Those that are
// not are in the table of faults.)
func TestHostileRoots(t *testing.T) {
	for _, c := range []struct {
		no    string
		cause func(s *scene)
	}{
		{"80 link to a directory", func(s *scene) {
			must(s.t, os.Symlink("root", s.root+"-link"))
			s.root += "-link/"
		}},
		{"80b trailing slashes", func(s *scene) { s.root += "//" }},
		{"80c not cleaned", func(s *scene) { s.root = filepath.Dir(s.root) + "/./../" + filepath.Base(s.arena) + "//root" }},
		{"80d inside the run directory", func(s *scene) {
			s.root = s.last().Path("restored")
			must(s.t, harness.Directory(s.root))
		}},
		{"80e of another user, group-writable", func(s *scene) {
			must(s.t, os.Chown(s.root, 12, 34))
			must(s.t, os.Chmod(s.root, 0o775))
		}},
		{"80f writable by all, no sticky bit", func(s *scene) { must(s.t, os.Chmod(s.root, 0o777)) }},
		{"80g a mount of its own", func(s *scene) { harness.Mount(s.t, "t", s.root, "tmpfs", 0, "") }},
		{"80h a name with a backslash", func(s *scene) {
			s.root += `\..\x`
			must(s.t, harness.Directory(s.root))
		}},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, oneRun)
			c.cause(s)
			s.mustRestore(oneRun)
		})
	}
}

// 80: the file system's root can be planned for.
func TestHostileRootOfAll(t *testing.T) {
	s := newScene(t, false, map[string]string{"spectrum-test-output/x": "x"})
	s.root = "/"
	if c := s.mustPlan().Conflicts(); len(c) != 0 {
		t.Errorf("%v", c)
	}
}

// 80: the project root holds every output already.
func TestHostileRootIsProject(t *testing.T) {
	s := newScene(t, false, oneRun)
	s.root, s.arena = s.Root, s.Root
	wantConflict(t, s, restore.TargetPathExists, "out/a.txt")
}

// TestHostileObstacles: 82 and 83, a file at a target or in its way. The plan lists it, and the
// commit is rejected before anything is written.
func TestHostileObstacles(t *testing.T) {
	at := func(path string, with func(string) error) func(*scene) {
		return func(s *scene) {
			must(s.t, os.MkdirAll(filepath.Dir(s.inRoot(path)), 0o755))
			must(s.t, with(s.inRoot(path)))
		}
	}
	for _, c := range []struct {
		no    string
		cause func(s *scene)
		path  string
		state string
	}{
		{"82 parent a file", at("out", writeFile), "out/a.txt", inTheWay},
		{"82b parent a FIFO", at("out", harness.FIFO), "out/a.txt", inTheWay},
		{"82c parent a socket", at("out", harness.Socket), "out/a.txt", inTheWay},
		{"82d parent a dangling link", at("out", harness.LinkTo("none")), "out/a.txt", inTheWay},
		{"82e parent a link to a file", func(s *scene) {
			s.put("file")
			s.link("file", "out")
		}, "out/a.txt", inTheWay},
		{"83 file", func(s *scene) { s.put("top.txt") }, "top.txt", "a regular file of 15 bytes"},
		{"83b empty file", at("out/b.txt", func(name string) error { return os.WriteFile(name, nil, 0o644) }), "out/b.txt", "a regular file of 0 bytes"},
		{"83c directory", at("top.txt", harness.Directory), "top.txt", "a directory"},
		{"83d link inside", func(s *scene) {
			s.put("file")
			s.link("file", "top.txt")
		}, "top.txt", "a symbolic link"},
		{"83e dangling link inside", func(s *scene) { s.link("none", "top.txt") }, "top.txt", "a symbolic link"},
		{"83f FIFO", at("top.txt", harness.FIFO), "top.txt", "neither a file nor a directory"},
		{"83g mount point", func(s *scene) { harness.Mount(s.t, "t", s.inRoot("top.txt"), "tmpfs", 0, "") }, "top.txt", "a directory"},
		{"83h the same file", func(s *scene) { must(s.t, os.Link(s.inProject("top.txt"), s.inRoot("top.txt"))) }, "top.txt", "a regular file of 4 bytes"},
		{"83i RESTORE_MANIFEST.json", func(s *scene) { s.put(restore.ManifestName) }, restore.ManifestName, "a regular file of 15 bytes"},
		{"83j RESTORE_REPORT.json a directory", at(restore.ReportName, harness.Directory), restore.ReportName, "a directory"},
		{"83k RESTORE_REPORT.json a link out", at(restore.ReportName, harness.LinkTo("/etc/passwd")), restore.ReportName, "a symbolic link"},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, oneRun)
			c.cause(s)
			if got := wantConflict(t, s, restore.TargetPathExists, c.path); got.State != c.state {
				t.Errorf("state %q, want %q", got.State, c.state)
			}
		})
	}
}

const inTheWay = "it, or a parent that is not a directory, is in the way"

// 82: nothing can be moved onto another mount.
func TestHostileMountInTheWay(t *testing.T) {
	for no, where := range map[string]string{"82f parent": "out", "82g further up": "a/b"} {
		t.Run(no, func(t *testing.T) {
			s := newScene(t, false, map[string]string{where + "/c/x": "1"})
			harness.Mount(t, "t", s.inRoot(where), "tmpfs", 0, "")
			wantConflict(t, s, restore.FinalizeFailed, where+"/c/x")
		})
	}
}

// wantConflict requires that the plan's first conflict is this one, and that the commit fails
// with it and leaves no trace.
func wantConflict(t *testing.T, s *scene, code restore.Code, path string) restore.Conflict {
	t.Helper()
	a := s.approved()
	before := bundletest.Census(t, s.arena)
	want := restore.Failure{Code: code, Phase: restore.Execute, Path: path}
	if got := restoretest.FailureOf(t, commitApproved(a)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if bundletest.Census(t, s.arena) != before {
		t.Error("the refusal left a trace")
	}
	conflicts := a.Restore().Conflicts()
	if len(conflicts) == 0 || conflicts[0].Path != path {
		t.Fatalf("conflicts %v", conflicts)
	}
	return conflicts[0]
}

// All conflicts are listed, in the order of bytes, artifacts among them.
func TestAllConflictsAreListed(t *testing.T) {
	s := newScene(t, false, map[string]string{"P": "1", "S": "2", "d/x": "3", "d/y": "4", "e/z": "5", "f": "6", "q/x": "8", "q0": "9", "é": "7"})
	for _, path := range []string{"é", "q0", "S", "P", restore.ReportName, restore.ManifestName, "d/y"} {
		s.put(path)
	}
	var got []string
	for _, c := range s.mustPlan().Conflicts() {
		got = append(got, c.Path)
	}
	if want := "P RESTORE_MANIFEST.json RESTORE_REPORT.json S d/y q0 é"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChainLooksBelowItsOwn: what stands where a single restore would put
// something is nothing to a chain, be it a file, a link out, or a result
// artifact.
func TestChainLooksBelowItsOwn(t *testing.T) {
	s := newScene(t, true, oneRun)
	s.link("/tmp", "out")
	s.put("top.txt")
	s.put(restore.ReportName)
	if c := s.mustPlan().Conflicts(); len(c) > 0 {
		t.Errorf("%v", c)
	}
	must(t, s.commit())
	if got := harness.ReadFile(t, s.inRoot("run-1/out/a.txt")); got != "alpha\n" {
		t.Errorf("%q", got)
	}
}

// TestHostileRunIDs: 84.
func TestHostileRunIDs(t *testing.T) {
	for _, c := range []struct {
		no    string
		cause func(s *scene)
		want  restore.Failure // of a chain of run-1 and what cause adds
	}{
		{"84 trailing slash", sameRun("/"), duplicate},
		{"84b doubled slash", func(s *scene) { s.dirs = append(s.dirs, filepath.Dir(s.dirs[0])+"//run-1") }, duplicate},
		{"84c dot", sameRun("/."), duplicate},
		{"84d out and back", func(s *scene) { s.dirs = append(s.dirs, s.dirs[0]+"/../run-1") }, duplicate},
		{"84e dot dot is its parent", sameRun("/.."), restore.Failure{Code: restore.VerifyStrictFailed, RunID: "_runs"}},
		{"84f reserved id", named(".spectrum06_x"), restore.Failure{Code: restore.ResultArtifactWriteFailed, RunID: ".spectrum06_x", Path: ".spectrum06_x/gen/c.txt"}},
		{"84g backslash", named(`..\x`), restore.Failure{Code: restore.PathTraversalDetected, RunID: `..\x`, Path: `..\x`}},
		{"84h not UTF-8", named("\xff"), restore.Failure{Code: restore.VerifyStrictFailed}},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, true, oneRun)
			c.cause(s)
			c.want.Phase = phaseByLaw(t, c.want.Code)
			if got := s.refused(); got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

var duplicate = restore.Failure{Code: restore.ChainRunIDDuplicate, RunID: "run-1"}

// sameRun adds the first run once more, by another path.
func sameRun(suffix string) func(*scene) {
	return func(s *scene) { s.dirs = append(s.dirs, s.dirs[0]+suffix) }
}

func named(id string) func(*scene) {
	return func(s *scene) { s.add(id, anotherRun) }
}

// 84: ids that are unusual names, and no more.
func TestHostileRunIDsThatAreNames(t *testing.T) {
	for _, id := range []string{"RESTORE_REPORT.json", "RESTORE_MANIFEST.json", "a\nb", "...", " ", "-rf", "\x1b[2J", "\u202e", "é"} {
		t.Run(fmt.Sprintf("84 %q", id), func(t *testing.T) {
			s := newScene(t, true)
			s.add(id, anotherRun)
			s.mustRestore(map[string]string{id + "/gen/c.txt": "gamma\n"})
		})
	}
}

// 84: a link to a run directory has a name of its own, and so another run id.
func TestHostileRunByLink(t *testing.T) {
	s := newScene(t, true, anotherRun)
	alias := s.dirs[0] + "-alias"
	must(t, os.Symlink(s.dirs[0], alias))
	s.dirs = append(s.dirs, alias)
	s.mustRestore(map[string]string{"run-1/gen/c.txt": "gamma\n", "run-1-alias/gen/c.txt": "gamma\n"})
}

// 84: in single mode the run id is not a directory of the root.
func TestRunIDInSingleMode(t *testing.T) {
	for _, id := range []string{".spectrum06_x", `..\x`, "\xff"} {
		s := newScene(t, false)
		s.add(id, anotherRun)
		s.mustPlan()
	}
}

// 85, 86: a long chain restores whole, or with a bad end not at all.
func TestHostileLongChain(t *testing.T) {
	s := newScene(t, true)
	want := map[string]string{}
	for i := range 60 {
		path := fmt.Sprintf("o/%d", i)
		s.add(fmt.Sprintf("r%d", i), map[string]string{path: path})
		want[fmt.Sprintf("r%d/%s", i, path)] = path
	}
	s.last().EditHashes(func(h map[string]any) { h["o/59"] = bundletest.Hash("other") })
	if got := s.refused(); got.Code != restore.VerifyStrictFailed || got.RunID != "r59" || got.Path != "o/59" {
		t.Errorf("%+v", got)
	}
	_, err := s.plan()
	wantVerdict(t, err, verify.HashMismatch)
	s.last().EditHashes(func(h map[string]any) { h["o/59"] = bundletest.Hash("o/59") })
	s.mustRestore(want)
}

// A parent that cannot be searched hides what stands at the target.
func TestUnsearchableParent(t *testing.T) {
	s := newScene(t, false, oneRun)
	s.letOthersIn()
	must(t, os.Chmod(s.root, 0o777))
	must(t, os.Mkdir(s.inRoot("out"), 0o700))
	_, err := s.plan() // the control: root can
	must(t, err)
	harness.WithoutRights(t, func() {
		_, err := s.plan()
		want := restore.Failure{Code: restore.InternalError, Phase: restore.Preflight}
		if got := restoretest.FailureOf(t, err); got != want {
			t.Errorf("%+v", got)
		}
	})
}

// TestExistingTargetBeforeMount: what exists is the first check of EXECUTE,
// wherever a mount is in the way.
func TestExistingTargetBeforeMount(t *testing.T) {
	s := newScene(t, false, map[string]string{"a/b/x": "1", "z": "2"})
	harness.Mount(t, "t", s.inRoot("a"), "tmpfs", 0, "")
	must(t, os.WriteFile(s.inRoot("z"), nil, 0o644))
	want := restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: "z"}
	if got := restoretest.FailureOf(t, commitApproved(s.approved())); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
