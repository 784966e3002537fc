package restore_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// before runs a scene that has two faults and requires the failure of the first one.
func before(t *testing.T, first, second fault, make func(testing.TB) *scene) {
	t.Helper()
	t.Run(string(first.code)+" "+first.name+" before "+string(second.code)+" "+second.name, func(t *testing.T) {
		s := make(t)
		causes := []func(*scene){second.cause, first.cause}
		if first.code == restore.VerifyStrictFailed {
			slices.Reverse(causes) // while there is something to sign
		}
		for _, cause := range causes {
			cause(s)
		}
		if got, want := s.refused(), first.want(s); got != want {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	})
}

// lastStrict is the last thing that a strict verifier looks at (the run-status
// check): even it comes before everything that a restore itself asks.
func lastStrict() fault {
	f := strictFaults[len(strictFaults)-1]
	f.code = restore.VerifyStrictFailed
	return f
}

// TestOrderOfSteps: sections 5.2 and 8.4.3 to 8.4.5. Each
// group of faults comes before every later one.
func TestOrderOfSteps(t *testing.T) {
	harness.TempInMemory(t)
	steps := [][]fault{{lastStrict()}, proofFaults, hashesFaults, rootFaults, {chainFaults[2]}, pathFaults[:4], planFaults[:2]}
	for _, mode := range []int{0, 2} {
		mode := modes[mode]
		t.Run(mode.name, func(t *testing.T) {
			tried := sample.Every(t, 4)
			for i, pair := range pairs(steps, &scene{chain: mode.name == "chain"}) {
				if tried.Has(i + 1) {
					before(t, pair[0], pair[1], mode.make)
				}
			}
		})
	}
}

// pairs are a fault of one step and one of a later step, where both can be. It takes
// the first fault of each code, and so each pair of codes.
func pairs(steps [][]fault, where *scene) (all [][2]fault) {
	for i, step := range steps {
		for _, later := range steps[i+1:] {
			for _, a := range onePerCode(step) {
				for _, b := range onePerCode(later) {
					if a.in(where) && b.in(where) {
						all = append(all, [2]fault{a, b})
					}
				}
			}
		}
	}
	return all
}

func onePerCode(group []fault) []fault {
	var list []fault
	seen := map[restore.Code]bool{}
	for _, f := range group {
		if !seen[f.code] {
			seen[f.code] = true
			list = append(list, f)
		}
	}
	return list
}

// TestOrderOfRoot: section 8.4.4. (What PROOF.json can have two faults of at
// once is in the table of faults: a wrong proof_hash before what it says.)
func TestOrderOfRoot(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("file", nil, 0o400))
	must(t, os.Mkdir("proc", 0o500))
	for _, c := range []struct {
		name, root string
		want       restore.Code
	}{
		{"not absolute before not there", "none", restore.TargetNotAbsolute},
		{"not absolute before not a directory", "file", restore.TargetNotAbsolute},
		{"not absolute before not writable", "proc", restore.TargetNotAbsolute},
		{"not there before not writable", "/proc/none", restore.TargetNotExist},
		{"not a directory before not writable", "/proc/version", restore.TargetNotDirectory},
		{"not writable", "/proc/self", restore.TargetNotWritable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, false, oneRun)
			s.letOthersIn()
			s.root = c.root
			harness.WithoutRights(t, func() { // who may read the candidate, and write nowhere
				if got := s.refused(); got.Code != c.want || got.Path != c.root {
					t.Errorf("%+v, want %s", got, c.want)
				}
			})
		})
	}
}

// TestOrderOfPaths: section 8.4.5. Paths are taken in the order of their
// bytes, and the first that is unsafe decides, whatever later ones have.
func TestOrderOfPaths(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths []string
		link  string // a link out of the restore root
		code  restore.Code
		path  string
	}{
		{"NUL in an earlier path", []string{"a\x00", "b/../c"}, "", restore.PathNullByteDetected, "a\x00"},
		{"traversal in an earlier path", []string{"a/../b", "b\x00"}, "", restore.PathTraversalDetected, "a/../b"},
		{"a link in an earlier path", []string{"z/../b"}, "out", restore.SymlinkEscapeDetected, "out/a.txt"},
		{"traversal before a link", []string{"a/../b"}, "out", restore.PathTraversalDetected, "a/../b"},
		{"NUL before a link", []string{"a\x00"}, "out", restore.PathNullByteDetected, "a\x00"},
		{"traversal and link in one path", []string{"l/../x"}, "l", restore.PathTraversalDetected, "l/../x"},
		{"NUL and link in one path", []string{"l/x\x00"}, "l", restore.PathNullByteDetected, "l/x\x00"},
		{"traversal and NUL in one path", []string{"l\x00/../x"}, "", restore.PathTraversalDetected, "l\x00/../x"},
		{"bytes, not letters", []string{"é/..", "z/.."}, "", restore.PathTraversalDetected, "z/.."},
		{"upper case first", []string{"a/..", "B/.."}, "", restore.PathTraversalDetected, "B/.."},
		{"the empty path first", []string{"", "../x"}, "", restore.PathTraversalDetected, ""},
		{"a dot before a slash", []string{"q//x", "q./.."}, "", restore.PathTraversalDetected, "q./.."},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, false, oneRun)
			for _, p := range c.paths {
				signedPath(p)(s)
			}
			if c.link != "" {
				s.link("/tmp", c.link)
			}
			if got := s.refused(); got.Code != c.code || got.Path != c.path {
				t.Errorf("got %s %q, want %s %q", got.Code, got.Path, c.code, c.path)
			}
		})
	}
}

// TestOrderInPlan: of bad sources the first in path order; and any of them
// before what stands in the restore root, and before a reserved name.
func TestOrderInPlan(t *testing.T) {
	missing, link := planFaults[2], planFaults[0] // of out/b.txt both
	s := newScene(t, false, oneRun)
	s.afterHashing(func() {
		s.replace("out/a.txt", func(string) error { return nil })
		s.replace("out/b.txt", harness.FIFO)
	})
	if got := s.refused(); got.Code != restore.SourceMissing || got.Path != "out/a.txt" {
		t.Errorf("%+v", got)
	}
	existing := fault{name: "target exists", code: restore.TargetPathExists, cause: func(s *scene) { s.put("out/a.txt") }}
	reserved := fault{name: "reserved name", code: restore.ResultArtifactWriteFailed, cause: reservedOutput}
	for _, first := range []fault{missing, link} {
		before(t, first, existing, modes[0].make)
		before(t, first, reserved, modes[0].make)
		before(t, first, reserved, modes[2].make)
	}
}

func reservedOutput(s *scene) {
	s.Write(".spectrum06_x", "x")
	signedPath(".spectrum06_x")(s)
	s.outputs++
}

// TestExistingTargetBeforeReservedName: EXECUTE comes
// before VERIFY, also where the reserved name is the earlier path; and the
// first conflict in path order is the one.
func TestExistingTargetBeforeReservedName(t *testing.T) {
	for _, c := range []struct{ put, want string }{
		{"out/b.txt", "out/b.txt"},
		{restore.ManifestName, restore.ManifestName},
		{"top.txt", "top.txt"},
		{".spectrum06_x", ".spectrum06_x"},
	} {
		s := newScene(t, false, oneRun)
		reservedOutput(s)
		s.put(c.put)
		s.put("top.txt")
		want := restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: c.want}
		if got := s.refused(); got != want {
			t.Errorf("with %q in the way: %+v", c.put, got)
		}
	}
	s := newScene(t, false, oneRun)
	reservedOutput(s)
	want := restore.Failure{Code: restore.ResultArtifactWriteFailed, Phase: restore.Verify, Path: ".spectrum06_x"}
	if got := s.refused(); got != want {
		t.Errorf("%+v", got)
	}
}

// TestOrderOfChain: each case has a fault in a run and another one elsewhere; the
// earlier one in the order of section 6 is reported.
func TestOrderOfChain(t *testing.T) {
	for _, c := range chainOrders {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, true, anotherRun, oneRun, map[string]string{"last/z.txt": "omega"})
			c.cause(s)
			if got := s.refused(); got.Code != c.code || got.RunID != c.run || got.Phase != phaseByLaw(t, c.code) {
				t.Errorf("got %+v, want %s in run %q", got, c.code, c.run)
			}
		})
	}
}

var chainOrders = []struct {
	name  string
	cause func(s *scene)
	code  restore.Code
	run   string
}{
	{"empty before the restore root", func(s *scene) { s.dirs, s.root = nil, "" }, restore.VerifyStrictFailed, ""},
	{"duplicates before any bundle", func(s *scene) {
		s.runs[0].Remove(bundle.Status)
		s.dirs[2] = s.dirs[1]
	}, restore.ChainRunIDDuplicate, "run-2"},
	{"duplicates before the restore root", func(s *scene) { s.dirs[2], s.root = s.dirs[1], "" }, restore.ChainRunIDDuplicate, "run-2"},
	{"the first duplicate", func(s *scene) { s.dirs = append(s.dirs, s.dirs[2], s.dirs[0]) }, restore.ChainRunIDDuplicate, "run-3"},
	{"bundles in chain order", func(s *scene) {
		s.runs[1].Remove(bundle.Status)
		s.runs[2].Remove(bundle.TaskSpec)
	}, restore.VerifyStrictFailed, "run-2"},
	{"chain order is the caller's", func(s *scene) {
		s.runs[1].Remove(bundle.Status)
		s.runs[2].Remove(bundle.TaskSpec)
		s.dirs[0], s.dirs[2] = s.dirs[2], s.dirs[0]
	}, restore.VerifyStrictFailed, "run-3"},
	{"strict for all before any PROOF.json", func(s *scene) {
		s.runs[0].Remove(bundle.Proof)
		s.Write("last/z.txt", "OMEGA")
	}, restore.VerifyStrictFailed, "run-3"},
	{"steps 2 and 3 bundle by bundle", func(s *scene) {
		s.runs[1].Remove(bundle.OutputHashes)
		s.runs[2].Remove(bundle.Proof)
	}, restore.OutputHashesMissing, "run-2"},
	{"the last bundle before the restore root", func(s *scene) {
		s.runs[2].EditHashes(func(h map[string]any) { clear(h) })
		s.root = ""
	}, restore.OutputHashesHashesEmpty, "run-3"},
	{"the last bundle before a run directory", func(s *scene) {
		s.runs[2].Remove(bundle.Proof)
		s.put("run-1/x")
	}, restore.ProofMissing, "run-3"},
	{"the restore root before a run directory", func(s *scene) {
		s.put("run-1/x")
		s.put("file")
		s.root = s.inRoot("file")
	}, restore.TargetNotDirectory, ""},
	{"run directories in chain order", func(s *scene) {
		s.put("run-1/x")
		s.put("run-3")
		s.dirs[0], s.dirs[2] = s.dirs[2], s.dirs[0]
	}, restore.ChainTargetDirExists, "run-3"},
	{"a run directory before path safety", func(s *scene) {
		signedIn(s, 0, "../x")
		s.put("run-3")
	}, restore.ChainTargetDirExists, "run-3"},
	{"path safety in chain order", func(s *scene) {
		signedIn(s, 1, "z\x00")
		signedIn(s, 2, "../x")
	}, restore.PathNullByteDetected, "run-2"},
	{"path safety of all before any plan", func(s *scene) {
		linked(s, "gen/c.txt")
		signedIn(s, 2, "../x")
	}, restore.PathTraversalDetected, "run-3"},
	{"plans in chain order", func(s *scene) {
		linked(s, "top.txt")
		linked(s, "last/z.txt")
	}, restore.SourceNotRegularFile, "run-2"},
	{"the plans of all before a reserved name", func(s *scene) {
		s.Write(restore.ReportName, "x")
		signedIn(s, 0, restore.ReportName)
		linked(s, "last/z.txt")
	}, restore.SourceNotRegularFile, "run-3"},
	{"reserved names in chain order", func(s *scene) {
		s.Write(restore.ReportName, "x")
		signedIn(s, 1, restore.ReportName)
		signedIn(s, 2, restore.ReportName)
	}, restore.ResultArtifactWriteFailed, "run-2"},
}

func signedIn(s *scene, run int, path string) {
	s.runs[run].EditHashes(func(h map[string]any) { h[path] = bundletest.Hash("x") })
}

// linked replaces a source by a link to a file of the same content.
func linked(s *scene, path string) {
	must(s.t, os.Rename(s.inProject(path), s.inProject(path+".real")))
	must(s.t, os.Symlink(filepath.Base(path)+".real", s.inProject(path)))
}
