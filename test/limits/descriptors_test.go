package limits

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestTooFewDescriptors: with whatever limit of open files every command does its work, or
// ends as a fault of the machine that says what to raise, and says it in JSON where that was
// asked for. With the fewest none does its work.
func TestTooFewDescriptors(t *testing.T) {
	p := harness.New(t, harness.Small())
	view := filepath.Join(t.TempDir(), "view")
	harness.Must(t, os.Mkdir(view, 0o755))
	var limits []int
	for n := 4; n <= 20; n++ {
		limits = append(limits, n)
	}
	number := 0
	for name, command := range map[string]func(site *harness.Site) []string{
		"verify":  func(*harness.Site) []string { return []string{"verify", p.Runs[0].Dir} },
		"mount":   func(*harness.Site) []string { return []string{"mount", "--daemon", p.Runs[0].Dir, view} },
		"preview": func(s *harness.Site) []string { return []string{"preview", "--restore-root", s.Root, p.Runs[0].Dir} },
		"commit":  func(s *harness.Site) []string { return harness.CommitArgs(s.Preview(t)) },
		"rollback": func(s *harness.Site) []string {
			harness.Must(t, os.RemoveAll(filepath.Join(s.Root, harness.ForeignStaging))) // of a root with such a name no snapshot is taken
			s.Project.Must(t, "snapshot", "take", s.Root)
			s.Commit(t, nil)
			return []string{"rollback", "--emergency", s.Root}
		},
		"snapshot": func(s *harness.Site) []string { return []string{"snapshot", "take", s.Root} },
		"recover":  func(s *harness.Site) []string { return []string{"recover", s.Root} },
		"doctor":   func(s *harness.Site) []string { return []string{"doctor", s.Root} },
	} {
		t.Run(name, func(t *testing.T) {
			enough := p.Run(t, nil, append(command(p.Site(t, filepath.Join(t.TempDir(), "enough"))), "--json")...).Status
			if name == "mount" {
				p.Must(t, "umount", view)
			}
			for _, n := range append([]int{4, 8}, sample.Pick(t, 3, limits)...) {
				number++
				site := p.Site(t, filepath.Join(t.TempDir(), fmt.Sprint("root", number)))
				r := limited(t, p, n, append(command(site), "--json")...)
				tooFew := r.status == 74 && strings.Contains(r.stdout, `"ok":false`) && strings.Contains(r.stderr, `"ulimit -n"`)
				if !tooFew && (r.status != enough || n <= 8) {
					t.Errorf("with %d: %v", n, r)
				}
				if name == "mount" && r.status == 0 {
					p.Must(t, "umount", view)
				}
			}
		})
	}
}

// limited runs a command that may have so many open files. What it prints goes to files: a
// daemon keeps them open.
func limited(t *testing.T, p *harness.Project, files int, args ...string) (r used) {
	t.Helper()
	argv := append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, files), "sh"}, p.Argv(args...)...)
	stdout, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	harness.Must(t, err)
	defer stdout.Close()
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	harness.Must(t, err)
	defer stderr.Close()
	cmd := exec.CommandContext(t.Context(), "sh", argv...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	_ = cmd.Run() // its status counts
	r = used{args: args, status: cmd.ProcessState.ExitCode()}
	raw, err := os.ReadFile(stdout.Name())
	harness.Must(t, err)
	r.stdout = string(raw)
	raw, err = os.ReadFile(stderr.Name())
	harness.Must(t, err)
	r.stderr = string(raw)
	return r
}

// TestRollbackWithFewDescriptors: a rollback or a restore that has started, and cannot begin for want
// of descriptors, halts its root: the next preview ends with 3. One that the program could not even
// start for has no root that it knows of.
func TestRollbackWithFewDescriptors(t *testing.T) {
	p := harness.New(t, harness.Small())
	number, halted := 0, 0
	for name, ways := range map[string]func(s *harness.Site, snap, commit string) []string{
		"session":   func(_ *harness.Site, _, commit string) []string { return []string{"rollback", commit} },
		"emergency": func(s *harness.Site, _, _ string) []string { return []string{"rollback", "--emergency", s.Root} },
		"restore":   func(_ *harness.Site, snap, _ string) []string { return []string{"snapshot", "restore", snap} },
	} {
		t.Run(name, func(t *testing.T) {
			for n := 7; n <= 18; n++ {
				number++
				s := p.Site(t, filepath.Join(t.TempDir(), fmt.Sprint("root", number)))
				harness.Must(t, os.RemoveAll(filepath.Join(s.Root, harness.ForeignStaging)))
				snap := p.Must(t, "snapshot", "take", "-q", s.Root).Stdout
				s.Commit(t, nil)
				log := strings.Fields(p.Must(t, "log", s.Root).Stdout)
				r := limited(t, p, n, ways(s, strings.TrimSpace(strings.TrimPrefix(snap, "OK ")), log[2])...)
				started := !strings.Contains(r.stderr, "too few descriptors")
				after := p.Run(t, nil, "preview", "-q", "--restore-root", s.Root, p.Runs[0].Dir)
				switch {
				case r.status == 0 || !started:
					if after.Status == 3 {
						t.Errorf("with %d: %v\n%v", n, r, after)
					}
				case r.status != 74 || after.Status != 3:
					t.Errorf("with %d: %v\n%v", n, r, after)
				default:
					halted++
				}
			}
		})
	}
	if halted == 0 {
		t.Error("no rollback was rejected")
	}
}
