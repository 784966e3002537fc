package attack

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// named are command lines in which one path, "@", is what another user serves, or is beneath
// that. The rest of the paths are good.
func named(p *harness.Project, site *harness.Site, commit, snapshot, empty string) map[string][]string {
	run, root, good := p.Runs[0].Dir, site.Root, []string{"--state-dir", p.State}
	key := filepath.Join(filepath.Dir(p.State), "key.pem")
	sealed := filepath.Join(p.Dir, "CONTRACTS/_runs/new")
	lines := map[string][]string{
		"verify": {"verify", "@"}, "verify later": {"verify", "--project-root", p.Dir, run, "@"}, "verify later, in a project": {"verify", run, "@/CONTRACTS/_runs/a"},
		"verify project": {"verify", "--project-root", "@", run}, "verify in a project": {"verify", "@/CONTRACTS/_runs/a"},
		"ls": {"ls", "@"}, "cat": {"cat", "@", "a"}, "diff": {"diff", "@", root}, "diff root": {"diff", run, "@"},
		"preview": {"preview", "--restore-root", root, "@"}, "preview root": {"preview", "--restore-root", "@", run},
		"preview chain": {"preview", "--chain", "--restore-root", root, "--project-root", p.Dir, run, "@"},
		"preview page":  {"preview", "--restore-root", root, "--html", "@/page.html", run}, "preview view": {"preview", "--restore-root", root, "--from-mount", "@"},
		"commit": {"commit", "--restore-root", root, "@"}, "commit chain": {"commit", "--chain", "--restore-root", root, "--project-root", p.Dir, run, "@"},
		"commit root": {"commit", "--restore-root", "@", run}, "commit view": {"commit", "--restore-root", root, "--from-mount", "@"},
		"mount": {"mount", "--daemon", "@", empty}, "mount later": {"mount", "--daemon", "--project-root", p.Dir, run, "@", empty}, "mount all": {"mount", "--daemon", "--all", "@", empty},
		"mount on": {"mount", "--daemon", run, "@"}, "mount root": {"mount", "--daemon", "--restore-root", "@", run, empty}, "mount option": {"mount", "--daemon", "-o", "project_root=@", run, empty},
		"take": {"snapshot", "take", "@"}, "snapshots": {"snapshot", "list", "@"},
		"export": {"snapshot", "export", snapshot, "@"}, "prune": {"snapshot", "prune", "--keep-last", "1", "@"},
		"savepoints": {"savepoint", "list", "@"}, "savepoint verify": {"savepoint", "verify", "--restore-root", "@", "latest"},
		"recover": {"recover", "@"}, "emergency": {"rollback", "--emergency", "@"}, "doctor": {"doctor", "@"},
		"seal key": {"seal", "--project-root", p.Dir, "--key", "@", "--run-dir", sealed, p.Source("a")}, "seal run": {"seal", "--project-root", p.Dir, "--key", key, "--run-dir", "@", p.Source("a")},
		"seal project": {"seal", "--project-root", "@", "--key", key, "--run-dir", sealed, p.Source("a")}, "seal output": {"seal", "--project-root", p.Dir, "--key", key, "--run-dir", sealed, "@"},
		"seal in a project": {"seal", "--project-root", "@", "--key", key, "--run-dir", "@/CONTRACTS/_runs/a", "@/a"},
		"keygen":            {"keygen", "--out", "@"}, "demo": {"demo", "@"}, "demo deep": {"demo", "@/a/b"},
	}
	for name, line := range lines {
		lines[name] = slices.Concat(good, line)
	}
	for name, line := range map[string][]string{
		"snapshots": {"snapshot", "list"}, "rollback": {"rollback", commit}, "doctor": {"doctor"}, "audit": {"audit", "show"}, "audit verify": {"audit", "verify"}, "keygen": {"keygen"},
		"savepoints": {"savepoint", "list"}, "trust": {"trust", "list"}, "quarantine": {"quarantine", "list"}, "preview": {"preview", "--restore-root", root, run},
		"commit": {"commit", "--restore-root", root, run}, "commit preview": {"commit", "--preview", strings.Repeat("a", 64), "--approve", "x"}, "take": {"snapshot", "take", root},
		"recover": {"recover", root}, "mount": {"mount", "--daemon", run, empty}, "seal": {"seal", "--project-root", p.Dir, "--run-dir", sealed, p.Source("a")},
	} {
		lines["state: "+name] = slices.Concat([]string{"--state-dir", "@"}, line)
		for _, variable := range []string{"SPECTRUM_STATE_DIR", "XDG_STATE_HOME", "HOME"} {
			lines[variable+": "+name] = slices.Concat([]string{variable + "=@"}, line)
		}
	}
	for _, variable := range []string{"PWD", "SPECTRUM_PROJECT_ROOT"} {
		lines[variable] = []string{variable + "=@", "--state-dir", p.State, "verify", run}
	}
	return lines
}

// otherwise are the words of the lines that do not come as far as the directory, or need not
// look into it.
var otherwise = map[string]string{
	"export": "exists", "preview view": "the view there was mounted by another user", "commit view": "the view there was mounted by another user",
	"PWD": "OK", "PWD/z": "OK", "keygen": "exists; it was not replaced", "mount on": "fuse.spectrum of user 4241", "seal run": "file already exists",
	"snapshots": "no snapshots of", "snapshots/z": "no snapshots of", "prune": "no snapshots of", "prune/z": "no snapshots of", "savepoints": "no savepoints of", "savepoints/z": "no savepoints of",
	"savepoint verify": "there is no savepoint yet", "savepoint verify/z": "there is no savepoint yet",
	"seal output": "is not under the project root", "seal output/z": "is not under the project root", "seal project": "is not under the project root", "seal project/z": "is not under the project root",
}

// TestServedPathsAreNotAsked: each path of the command line and of the environment in turn is the
// root of a file system that another user serves, or is beneath it. The server gets no request,
// though it is stopped; each command ends, and the error says who serves it and what to do. The
// victim is root, whom a server of any user could block.
func TestServedPathsAreNotAsked(t *testing.T) {
	needRoot(t)
	p, site, commit := committed(t, 0)
	harness.Must(t, os.RemoveAll(filepath.Join(site.Root, ".spectrum06_staging_00000000-1111-4222-8333-444444444444")))
	snapshot := strings.Fields(p.Must(t, "snapshot", "take", site.Root).Stdout)[1]
	empty, mp := filepath.Join(filepath.Dir(p.Dir), "empty"), filepath.Join(open(t), "mp")
	harness.Must(t, os.Mkdir(empty, 0o755))
	harness.Must(t, os.Mkdir(mp, 0o755))
	s := serveAs(t, alice, mp, answers{Size: 100})
	if r := runLine(t, p, []string{"--state-dir", p.State, "doctor"}, mp); !strings.Contains(r.Stdout, fmt.Sprintf("of other users, which are not queried, for example that of user %d on", alice)) {
		t.Error(r)
	}
	lines, asked := named(p, site, commit, snapshot, empty), 0
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		for _, at := range []string{mp + "/z", mp} {
			r := runLine(t, p, lines[name], at)
			if all := s.asked(); r.Hung || len(all) > asked {
				t.Errorf("%s: requests %q: %v", name, all[asked:], r)
				asked = len(all)
			}
			want := []string{fmt.Sprintf("another user (user %d) serves", alice), fmt.Sprintf("or run this command as user %d", alice)}
			other, ok := otherwise[name+strings.TrimPrefix(at, mp)]
			if ok {
				want = []string{other}
			}
			if !ok && r.Status != 74 && !strings.Contains(name, "doctor") {
				t.Errorf("%s is not a fault of the machine: %v", name, r)
			}
			for _, words := range want {
				if !strings.Contains(r.Stdout+r.Stderr, words) {
					t.Errorf("%s: no word of %q: %v", name, words, r)
				}
			}
		}
	}
	harness.Freeze(t, s.cmd.Process.Pid)
	for _, name := range sample.Pick(t, 8, slices.Sorted(maps.Keys(lines))) {
		if r := runLine(t, p, lines[name], mp+"/z"); r.Hung || r.Killed() {
			t.Errorf("%s beneath a server that is stopped: %v", name, r)
		}
	}
}

// runLine runs a command line that begins with variables of the environment, each "@" of it
// replaced.
func runLine(t *testing.T, p *harness.Project, line []string, at string) harness.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(), "--no-progress")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.State)}
	for _, word := range line {
		word = strings.Replace(word, "@", at, 1)
		if name, _, ok := strings.Cut(word, "="); ok && strings.ToUpper(name) == name {
			cmd.Env = append(cmd.Env, word)
		} else {
			cmd.Args = append(cmd.Args, word)
		}
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return harness.Reply{Args: line, Status: cmd.ProcessState.ExitCode(), Hung: ctx.Err() != nil, Stdout: stdout.String(), Stderr: stderr.String()}
}

// TestServedEnvironmentIsNotAsked: nor is the server of another user asked for what PATH and
// TZ name, or the option -N of the helper of mount(8).
func TestServedEnvironmentIsNotAsked(t *testing.T) {
	needRoot(t)
	p, _, _ := committed(t, 0)
	dir := open(t)
	mp, empty, helper, bare := filepath.Join(dir, "mp"), filepath.Join(dir, "empty"), filepath.Join(dir, "mount.spectrum"), filepath.Join(dir, "bare.sh")
	for _, name := range []string{mp, empty} {
		harness.Must(t, os.Mkdir(name, 0o755))
	}
	binary, err := filepath.Abs(harness.Binary())
	harness.Must(t, err)
	harness.Must(t, os.Symlink(binary, helper))
	harness.Must(t, os.WriteFile(bare, []byte("mount -t tmpfs none /usr/bin && PATH=$SEARCHED exec \"$@\"\n"), 0o755))
	s := serveAs(t, alice, mp, answers{Size: 100})
	run, options := p.Runs[0].Dir, "state_dir="+p.State
	try := func(name string, want int, env string, argv ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		defer cancel()
		before := len(s.asked())
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = []string{"HOME=" + filepath.Dir(p.State), "PATH=/usr/bin:/bin", env}
		out, _ := cmd.CombinedOutput()
		if all := s.asked(); cmd.ProcessState.ExitCode() != want || len(all) > before {
			t.Errorf("%s: exit %d, requests %q: %s", name, cmd.ProcessState.ExitCode(), all[before:], out)
		}
	}
	harness.Must(t, os.Symlink(mp+"/z", dir+"/link"))
	for ns, want := range map[string]int{mp: 74, mp + "/z": 74, mp + "/z/ns": 74, dir + "/link": 1, "/etc/passwd": 1, "/proc/self/cwd": 1, "/dev/zero": 1} {
		try("-N "+ns, want, "A=", helper, run, empty, "-N", ns, "-o", options)
	}
	try("PATH", 0, "SEARCHED="+mp+":"+mp+"/z", "/usr/bin/unshare", "-m", "/bin/sh", bare, binary, "--state-dir", p.State, "doctor")
	for _, zone := range []string{mp + "/z", ":" + mp + "/z", "../../.." + mp + "/z"} {
		before := len(s.asked())
		try("TZ "+zone, 0, "TZ="+zone, binary, "--state-dir", p.State, "mount", "--daemon", run, empty)
		name := p.Runs[0].Files.Names()[0]
		source := p.Source(name)
		old, err := os.ReadFile(source)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(source, []byte("tampered"), 0o644))
		if _, err := os.ReadFile(filepath.Join(empty, name)); err == nil {
			t.Error("the view did not find it")
		}
		harness.Must(t, os.WriteFile(source, old, 0o644))
		try("TZ "+zone, 0, "TZ="+zone, binary, "umount", empty)
		if all := s.asked(); len(all) > before {
			t.Errorf("the view asked %q", all[before:])
		}
	}
}
