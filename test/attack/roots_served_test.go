package attack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestServedDirectoriesAreNotAsked: another user mounts what he serves over the restore
// root or a directory on the way to it, on a directory in it, under the name of a staging
// directory, or over the project, a directory of its outputs or the runs. He could answer with files of root that are set-id, or never.
// Each command ends, and his server receives no request.
func TestServedDirectoriesAreNotAsked(t *testing.T) { victims(t, servedDirectories) }

func servedDirectories(t *testing.T, uid int) {
	p, site, commit := committed(t, uid)
	id := site.Preview(t)
	run := p.Runs[0].Dir
	inRoot := filepath.Join(site.Root, "mountpoint")
	staging := filepath.Join(site.Root, ".spectrum06_staging_11111111-2222-4333-8444-555555555555")
	for _, dir := range []string{inRoot, staging} {
		harness.Must(t, os.Mkdir(dir, 0o755))
	}
	commands := map[string][]string{
		"take": {"snapshot", "take", site.Root}, "recover": {"recover", site.Root}, "list": {"snapshot", "list", site.Root},
		"preview": {"preview", "--restore-root", site.Root, run}, "diff": {"diff", "--restore-root", site.Root, run},
		"savepoint": {"savepoint", "verify", "--restore-root", site.Root}, "ls": {"ls", run}, "doctor": {"doctor", site.Root}, "verify": {"verify", run},
		"commit":   append([]string{}, harness.CommitArgs(id)...),
		"rollback": {"rollback", commit}, "emergency": {"rollback", "--emergency", site.Root},
	}
	for _, dir := range []string{site.Root, inRoot, staging, p.Dir, filepath.Join(p.Dir, "out"), run, filepath.Dir(site.Root), filepath.Dir(run)} {
		for _, stopped := range []bool{false, true} {
			s := serveAs(t, alice, dir, answers{Size: 100, Attack: true})
			if stopped {
				harness.Freeze(t, s.cmd.Process.Pid)
			}
			for name, args := range commands {
				if dir != site.Root && (name == "rollback" || name == "emergency") {
					continue // it may well do its work
				}
				if r := p.Run(t, nil, args...); r.Hung || r.Killed() {
					t.Errorf("%s beside what another user serves on %q: %v", name, dir, r)
				}
				s.checkUnasked(t, name+" "+dir)
			}
			_ = s.cmd.Process.Kill()
			harness.Must(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
	}
}
