package bundle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"golang.org/x/sys/unix"
)

// wholeSealing is a project with something of everything that is left out.
func wholeSealing(t *testing.T) (*sealing, *[]string) {
	t.Helper()
	s := newSealing(t)
	for _, name := range []string{
		"a.txt", "d/b.txt", "d/skip.log", "d/keep.log", "CONTRACTS/notes.md", "CONTRACTS/_runs/old/STATUS.json", "LAW/CONTRACTS/_runs/old/STATUS.json", "LAW/law.md",
		".git/config", "d/sub/.git", "d/sub/f", "node/modules/x", "RESTORE_MANIFEST.json", "d/RESTORE_REPORT.json", ".spectrum06_staging_x/a", "key.pem", "d/key.pem",
	} {
		s.Write(name, name)
	}
	s.Write(ignore.File, "*.log\n!keep.log\n")
	s.opts.Outputs, s.opts.Exclude, s.opts.Private = []string{bundle.Whole}, []string{"/node/"}, []string{"key.pem"}
	left := new([]string)
	s.opts.LeftOut = func(groups []bundle.LeftOut) {
		for _, g := range groups {
			*left = append(*left, fmt.Sprintf("%s %s: %s", g.Why, g.Kind, strings.Join(g.Paths, " ")))
		}
	}
	return s, left
}

var (
	wholeOutputs = []string{".spectrumignore", "CONTRACTS/notes.md", "LAW/law.md", "a.txt", "d/RESTORE_REPORT.json", "d/b.txt", "d/keep.log", "d/key.pem", "d/sub/f"}
	wholeLeftOut = []string{
		"excluded : node",
		"history : .git CONTRACTS/_runs LAW/CONTRACTS/_runs d/sub/.git",
		"ignored : d/skip.log",
		"private : key.pem",
		"reserved : .spectrum06_staging_x RESTORE_MANIFEST.json",
	}
)

// outputsOf are the paths of a bundle that was sealed, as the verifier has them.
func outputsOf(t *testing.T, s *sealing) (paths []string) {
	t.Helper()
	run, err := verify.OpenRun(s.opts.Project, s.opts.RunDir)
	must(t, err)
	defer run.Close()
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	for o := range b.Outputs() {
		paths = append(paths, o.Path().String())
	}
	return paths
}

func TestSealWhole(t *testing.T) {
	s, left := wholeSealing(t)
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	if got := outputsOf(t, s); !slices.Equal(got, wholeOutputs) {
		t.Errorf("sealed %q", got)
	}
	if !slices.Equal(*left, wholeLeftOut) {
		t.Errorf("left out %q", *left)
	}
}

// TestSealNamed: what is named itself is sealed, and counts as left out no more; the rules
// hold for what is found in it.
func TestSealNamed(t *testing.T) {
	s, left := wholeSealing(t)
	s.Write("node/x.log", "x")
	s.opts.Outputs = []string{"d/skip.log", "node", "key.pem", ".", "d"}
	_, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	want := append(slices.Clone(wholeOutputs), "d/skip.log", "key.pem", "node/modules/x")
	slices.Sort(want)
	if got := outputsOf(t, s); !slices.Equal(got, want) {
		t.Errorf("sealed %q", got)
	}
	if want := []string{wholeLeftOut[1], "ignored : node/x.log", wholeLeftOut[4]}; !slices.Equal(*left, want) {
		t.Errorf("left out %q", *left)
	}
}

func TestSealSpecial(t *testing.T) {
	s, left := wholeSealing(t)
	s.symlink("a.txt", "link")
	s.symlink("nowhere", "d/link")
	s.symlink("d", "skip.log") // left out by its name
	s.node("d/fifo", unix.S_IFIFO)
	s.node("socket", unix.S_IFSOCK)
	failsUnchanged(t, s, nil)
	var special *bundle.SpecialError
	_, err := bundle.Seal(t.Context(), s.opts)
	if want := `only regular files can be sealed, and there are 1 FIFO: "d/fifo"; 1 socket: "socket"; 2 symbolic links: "d/link", "link"`; !errors.As(err, &special) || err.Error() != want {
		t.Errorf("error %v", err)
	}
	s.opts.Outputs = []string{"a.txt", "socket"}
	if _, err := bundle.Seal(t.Context(), s.opts); err == nil || err.Error() != `output "socket" is a socket; only regular files can be sealed` {
		t.Errorf("error %v", err)
	}
	if len(*left) > 0 {
		t.Errorf("left out %q", *left)
	}
	s.opts.SkipSpecial = true
	s.opts.Outputs = []string{".", "link", "d/fifo"} // as a shell writes out a *
	_, err = bundle.Seal(t.Context(), s.opts)
	must(t, err)
	if got := outputsOf(t, s); !slices.Equal(got, wholeOutputs) {
		t.Errorf("sealed %q", got)
	}
	want := slices.Concat(wholeLeftOut, []string{"special a FIFO: d/fifo", "special a socket: socket", "special a symbolic link: d/link link"})
	want[2] = "ignored : d/skip.log skip.log"
	if !slices.Equal(*left, want) {
		t.Errorf("left out %q", *left)
	}
}

func TestLeftOutNamesSome(t *testing.T) {
	l := bundle.LeftOut{Why: bundle.Ignored, Paths: strings.Fields("a b c d e f g h i j k l")}
	if got := l.String(); got != `12 names: "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", and 2 more` {
		t.Error(got)
	}
}

// TestSealLeavesNothing: where all is left out there is nothing to seal.
func TestSealLeavesNothing(t *testing.T) {
	s := newSealing(t)
	s.Write("a", "a")
	s.opts.Outputs, s.opts.Exclude = []string{"."}, []string{"*"}
	failsUnchanged(t, s, nil)
	if _, err := bundle.Seal(t.Context(), s.opts); err == nil || !strings.Contains(err.Error(), "all outputs were left out") {
		t.Error(err)
	}
	s.opts.Exclude = []string{"["}
	failsUnchanged(t, s, ignore.ErrPattern)
	s.opts.Exclude = nil
	s.Write(ignore.File, "[")
	failsUnchanged(t, s, ignore.ErrPattern)
}
