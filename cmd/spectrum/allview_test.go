package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/test/harness"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// mountAll mounts every run of a project.
func mountAll(t *testing.T, project *bundletest.Project) *mounted {
	t.Helper()
	return startView(t, "--all", runsDir(project))
}

func runsDir(project *bundletest.Project) string {
	return filepath.Join(project.Root, "CONTRACTS", "_runs")
}

// at is a path in the view.
func (v *mounted) at(names ...string) string {
	return filepath.Join(append([]string{v.dir}, names...)...)
}

// state is what status.json says of a run; "" when it does not name it.
func (v *mounted) state(run string) string {
	v.t.Helper()
	record, _ := v.status().Runs[run].(map[string]any)
	state, _ := record["state"].(string)
	return state
}

// names lists a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, e := range list(t, dir) {
		all = append(all, e.name)
	}
	return all
}

// completedAt signs a run again with another time of completion.
func completedAt(r *bundletest.Run, when string) {
	r.T.Helper()
	r.Edit(bundle.Status, func(f map[string]any) { f["completed_at"] = when })
	r.Sign()
}

// opens counts how often files are opened.
type opens struct {
	t  *testing.T
	fd int
}

func countOpens(t *testing.T, paths ...string) *opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	check(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	for _, path := range paths {
		_, err := unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
		check(t, err)
	}
	return &opens{t, fd}
}

// count gives the number of opens since it was asked last.
func (o *opens) count() (n int) {
	o.t.Helper()
	buf := make([]byte, 1<<16)
	for {
		size, err := unix.Read(o.fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return n
		}
		check(o.t, err)
		n += size / unix.SizeofInotifyEvent // files have no names in events
	}
}

// TestRunsAreVerifiedOnce: a hundred readers come at once, through many names,
// and the sources are read once; with the sources gone the run stays.
func TestRunsAreVerifiedOnce(t *testing.T) {
	project := bundletest.New(t)
	outputs := map[string]string{"big": strings.Repeat("x", 5<<20), "d/small": "small"}
	project.Run("run-1", outputs)
	v := mountAll(t, project)
	sources := countOpens(t, filepath.Join(project.Root, "big"), filepath.Join(project.Root, "d/small"))
	if got := v.state("run-1"); got != "" || sources.count() != 0 {
		t.Errorf("before the first reader: %q", got)
	}
	var readers sync.WaitGroup
	for i := range 100 {
		readers.Go(func() {
			var err error
			switch i % 4 {
			case 0:
				_, err = os.ReadDir(v.at("run-1"))
			case 1:
				_, err = os.Lstat(v.at("run-1", "d/small"))
			case 2:
				_, err = os.Lstat(v.at("run-1", ".spectrum/candidate.json"))
			default:
				_, err = os.Stat(v.at("latest", "RESTORE_REPORT.json"))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	readers.Wait()
	if n := sources.count(); n != 2 {
		t.Errorf("the two sources were opened %d times", n)
	}
	for name := range outputs {
		check(t, os.Remove(filepath.Join(project.Root, name)))
	}
	for range 3 {
		if got := names(t, v.at("run-1")); !slices.Equal(got, []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "big", "d"}) {
			t.Errorf("%q", got)
		}
	}
	if _, err := os.ReadFile(v.at("run-1/big")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a source that is gone: %v", err)
	}
	if s := v.status(); v.state("run-1") != "accepted" || !s.Tampered || s.Tampering[0].Path != "run-1/big" {
		t.Errorf("%+v", s)
	}
}

// TestRejectedRuns: the directory holds the verdict of the law, and nothing
// else; once it stands it stays.
func TestRejectedRuns(t *testing.T) {
	project := bundletest.New(t)
	ruin := map[string]func(r *bundletest.Run){
		"forged":    func(r *bundletest.Run) { r.Edit(bundle.Status, func(f map[string]any) { f["cmp01"] = "no" }) },
		"broken":    func(r *bundletest.Run) { r.WriteRaw(bundle.Status, []byte("{")) },
		"unsigned":  func(r *bundletest.Run) { r.Remove(bundle.Signature) },
		"forbidden": func(r *bundletest.Run) { r.WriteRaw("transcript.json", nil) },
		"mismatch": func(r *bundletest.Run) {
			r.EditHashes(func(h map[string]any) { h["mismatch"] = bundletest.Hash("other") })
		},
		"missing \"o": func(r *bundletest.Run) { r.EditHashes(func(h map[string]any) { h["no\nne"] = bundletest.Hash("") }) },
		"fifo": func(r *bundletest.Run) {
			r.Remove(bundle.TaskSpec)
			check(t, unix.Mkfifo(r.Path(bundle.TaskSpec), 0o600))
		},
		"empty": func(r *bundletest.Run) { check(t, os.RemoveAll(r.Dir)); check(t, os.Mkdir(r.Dir, 0o755)) },
	}
	for id, do := range ruin {
		do(project.Run(id, map[string]string{strings.Fields(id)[0]: id}))
	}
	v := mountAll(t, project)
	for id := range ruin {
		stdout, _, status := spectrum(t, "verify", "--json", filepath.Join(runsDir(project), id))
		got, err := os.ReadFile(v.at(id, "REJECTED.json"))
		if status != statusRejected || err != nil || string(got) != stdout+"\n" {
			t.Errorf("%s: %d, %v\n%s%s", id, status, err, got, stdout)
		}
		if all := names(t, v.at(id)); !slices.Equal(all, []string{"REJECTED.json"}) {
			t.Errorf("%s: %q", id, all)
		}
		if _, err := os.Lstat(v.at(id, ".spectrum")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s has a control directory: %v", id, err)
		}
		if attrs := xattrs(t, v.at(id, "REJECTED.json")); len(attrs) != 0 {
			t.Errorf("%s: %v", id, attrs)
		}
		verdict := map[string]any{}
		check(t, json.Unmarshal(got, &verdict))
		record, _ := v.status().Runs[id].(map[string]any)
		if record["state"] != "rejected" || record["code"] != verdict["code"] || len(record) != 2 {
			t.Errorf("%s: %v", id, record)
		}
	}
	if target, err := os.Readlink(v.at("latest")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("latest is %q, %v", target, err)
	}
	if s := v.status(); s.Tampered {
		t.Errorf("a rejection is not tampering: %+v", s)
	}
	project.Run("broken", map[string]string{"broken": "broken"})
	if _, err := os.Lstat(v.at("broken", "REJECTED.json")); err != nil {
		t.Errorf("the verdict has changed: %v", err)
	}
}

// TestRunThatCannotBeShown: the law accepts it, a view cannot hold it.
func TestRunThatCannotBeShown(t *testing.T) {
	project := bundletest.New(t)
	project.Run("control", map[string]string{".spectrum/x": "x"})
	project.Run("report", map[string]string{"RESTORE_REPORT.json": "x"})
	project.Run("library", map[string]string{".go-fuse-epoll-hack": "x"})
	v := mountAll(t, project)
	for _, id := range []string{"control", "report", "library"} {
		var verdict struct {
			Code, Message string
			Details       map[string]string
			OK            *bool
		}
		raw, err := os.ReadFile(v.at(id, "REJECTED.json"))
		check(t, err)
		if err := json.Unmarshal(raw, &verdict); err != nil || verdict.Code == "" || verdict.Message == "" || verdict.OK == nil || *verdict.OK {
			t.Errorf("%s: %v: %s", id, err, raw)
		}
	}
}

// TestLatest: the accepted run that was completed last, by what is signed, in
// any time zone.
func TestLatest(t *testing.T) {
	project := bundletest.New(t)
	is := func(v *mounted, want string) {
		t.Helper()
		if got, err := os.Readlink(v.at("latest")); err != nil || got != want {
			t.Errorf("latest is %q, %v; want %q", got, err, want)
		}
	}
	completedAt(project.Run("a-newest", map[string]string{"a": "a"}), "2026-05-01T00:30:00+02:00")
	completedAt(project.Run("z-older", map[string]string{"a": "a"}), "2026-04-30T22:29:59Z")
	boaster := project.Run("boaster", map[string]string{"a": "a"})
	completedAt(boaster, "9999-12-31T23:59:59Z")
	boaster.Edit(bundle.OutputHashes, func(f map[string]any) { f["hashes"] = map[string]any{"a": bundletest.Hash("b")} })
	liar := project.Run("liar", map[string]string{"a": "a"})
	liar.Edit(bundle.Status, func(f map[string]any) { f["completed_at"] = "9999-12-31T23:59:59Z" })
	project.Run("silent", map[string]string{"a": "a"}).WriteRaw(bundle.Status, []byte("[]"))
	v := mountAll(t, project)
	is(v, "a-newest")
	if got := v.state("z-older"); got != "" {
		t.Errorf("the older run is %s", got)
	}
	completedAt(project.Run("sealed-later", map[string]string{"b": "b"}), "2027-01-01T00:00:00Z")
	is(v, "sealed-later")
	if _, err := os.Lstat(v.at("latest", "b")); err != nil {
		t.Error(err)
	}
	check(t, os.RemoveAll(filepath.Join(runsDir(project), "sealed-later")))
	harness.Eventually(t, "latest is the run before", func() bool {
		got, _ := os.Readlink(v.at("latest"))
		return got == "a-newest"
	})
}

// TestLongListing: "ls -l" of the root verifies what "latest" needs, no more.
func TestLongListing(t *testing.T) {
	project := bundletest.New(t)
	for i := range 20 {
		project.Run(fmt.Sprintf("r%02d", i), map[string]string{"a": "a"})
	}
	completedAt(project.Run("r07", map[string]string{"a": "a"}), "2026-05-01T00:00:00Z")
	v := mountAll(t, project)
	if out := runIn(t, "", "ls", "-la", v.dir); !strings.Contains(out, "latest -> r07\n") || strings.Contains(out, "spectrum") {
		t.Error(out)
	}
	for id := range v.status().Runs {
		want := "unverified"
		if id == "r07" {
			want = "accepted"
		}
		if got := v.state(id); got != want {
			t.Errorf("%s is %s", id, got)
		}
	}
	if n := len(v.status().Runs); n != 20 {
		t.Errorf("%d runs were looked up", n)
	}
}

// TestWhatIsNoRun: what the view does not take for a run cannot be found by
// name either.
func TestWhatIsNoRun(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"a": "a"})
	for _, id := range []string{".hidden", ".spectrum", "latest"} {
		project.Run(id, map[string]string{"a": "a"})
	}
	check(t, os.Symlink(run.Dir, filepath.Join(runsDir(project), "link")))
	check(t, os.WriteFile(filepath.Join(runsDir(project), "file"), nil, 0o644))
	check(t, unix.Mkfifo(filepath.Join(runsDir(project), "fifo"), 0o644))
	v := mountAll(t, project)
	if got := names(t, v.dir); !slices.Equal(got, []string{"latest", "run-1"}) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{".hidden", "link", "file", "fifo", "none", ".spectrum/a", "run-1/none"} {
		if _, err := os.Lstat(v.at(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := os.Readlink(v.at("latest")); err != nil || got != "run-1" {
		t.Errorf("%q, %v", got, err)
	}
	if got := names(t, v.at(".spectrum")); !slices.Equal(got, []string{"shown.json", "status.json"}) {
		t.Errorf("%q", got)
	}
}

// TestRunSealedLater: looked for in vain, then made: it is there, by name and
// by listing.
func TestRunSealedLater(t *testing.T) {
	project := bundletest.New(t)
	check(t, os.MkdirAll(runsDir(project), 0o755))
	v := mountAll(t, project)
	if got := names(t, v.dir); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if _, err := os.Lstat(v.at("run-1/a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Readlink(v.at("latest")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	project.Run("run-1", map[string]string{"a": "alpha"})
	if got, err := os.ReadFile(v.at("run-1/a")); err != nil || string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
	if got := names(t, v.dir); !slices.Equal(got, []string{"latest", "run-1"}) {
		t.Errorf("%q", got)
	}
	walkAll := counted{inodes: map[uint64]string{}}
	walkView(t, v.at("run-1"), &walkAll)
	if st := lstat(t, v.dir); st.Nlink != 3 {
		t.Errorf("%d links", st.Nlink)
	}
	for _, e := range list(t, v.dir) {
		if st := lstat(t, v.at(e.name)); st.Ino != e.inode {
			t.Errorf("%s: inode %d by stat and %d by readdir", e.name, st.Ino, e.inode)
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(v.dir, &st); err != nil || st.Files != walkAll.nodes+2 || st.Blocks != walkAll.blocks {
		t.Errorf("%v: statfs says %+v", err, st)
	}
}

// TestUnreadableRun: a user without the right to look into a run directory gets a verdict on it
// and not a view.
func TestUnreadableRun(t *testing.T) {
	project := bundletest.New(t)
	project.Run("open", map[string]string{"a": "a"})
	shut := project.Run("shut", map[string]string{"a": "a"})
	completedAt(shut, "2030-01-01T00:00:00Z")
	check(t, os.Chmod(shut.Dir, 0))
	t.Cleanup(func() { _ = os.Chmod(shut.Dir, 0o755) })
	dir, weak := t.TempDir(), "-dac_override,-dac_read_search"
	cmd := command(t)
	cmd.Path, _ = exec.LookPath("setpriv")
	cmd.Args = []string{"setpriv", "--inh-caps", weak, "--bounding-set", weak, "spectrum", "mount", "--all", runsDir(project), dir}
	v := startViewBy(t, cmd, dir)
	if got, err := os.ReadFile(v.at("shut", "REJECTED.json")); err != nil || !bytes.Contains(got, []byte("permission denied")) {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := os.Readlink(v.at("latest")); err != nil || got != "open" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestManyRunsFewDescriptors: many more runs than the server may have descriptors are
// entered and read by many at once; what is scarce is not tampering.
func TestManyRunsFewDescriptors(t *testing.T) {
	t.Parallel()
	runs := tier.Of(100, 300, 300)
	project := bundletest.New(t)
	for i := range runs {
		project.Run(fmt.Sprintf("r%03d", i), map[string]string{fmt.Sprintf("d/%d", i): fmt.Sprint(i), "same": "same"})
	}
	dir := t.TempDir()
	cmd := command(t)
	cmd.Path = "/bin/sh"
	cmd.Args = []string{"sh", "-c", `ulimit -n 64; exec spectrum mount --all "$0" "$1"`, runsDir(project), dir}
	v := startViewBy(t, cmd, dir)
	var readers sync.WaitGroup
	for first := range 8 {
		readers.Go(func() {
			for n := range runs {
				i := (n + first*runs/8) % runs
				got, err := os.ReadFile(v.at(fmt.Sprintf("r%03d/d/%d", i, i)))
				if err != nil || string(got) != fmt.Sprint(i) {
					t.Errorf("%d: %q, %v", i, got, err)
				}
				if _, err := os.ReadFile(v.at(fmt.Sprintf("r%03d/.spectrum/runs/r%03d/STATUS.json", i, i))); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	readers.Wait()
	s := v.status()
	for id := range s.Runs {
		if got := s.Runs[id].(map[string]any)["state"]; got != "accepted" {
			t.Errorf("%s is %s", id, got)
		}
	}
	if len(s.Runs) != runs || s.Tampered {
		t.Errorf("%d runs, tampered %v: %v", len(s.Runs), s.Tampered, s.Tampering)
	}
}

// TestInterruptWhileVerifying: the server ends although a reader waits for a verdict that would
// take hours.
func TestInterruptWhileVerifying(t *testing.T) {
	project := bundletest.New(t)
	project.Run("huge", map[string]string{"huge": "small"})
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), verify.MaxHoles))
	for _, enter := range []string{"huge", "latest/x"} {
		v := mountAll(t, project)
		ended := make(chan error, 1)
		go func() {
			_, err := os.ReadDir(v.at(enter))
			ended <- err
		}()
		harness.Eventually(t, "it is at work", func() bool { return v.state("huge") == "verifying" })
		if names(t, v.dir) == nil {
			t.Error("other readers are not served meanwhile")
		}
		if said, err := v.stop(os.Interrupt); err != nil || isMounted(t, v.dir) {
			t.Errorf("%v, mounted %v: %s", err, isMounted(t, v.dir), said)
		}
		if err := <-ended; err == nil {
			t.Error("the reader got an answer")
		}
	}
}

// TestRunNamesThatJSONCannotHold: no run hides behind another one's name in
// status.json.
func TestRunNamesThatJSONCannotHold(t *testing.T) {
	project := bundletest.New(t)
	keys := map[string]string{"r\xfe": `"r\xfe"`, "r\xff": `"r\xff"`, "r\uFFFD": "r\uFFFD", `"r\xff"`: `"\"r\\xff\""`, "r\n": "r\n"}
	for id := range keys {
		run := project.Run(id, map[string]string{"a": "a"})
		if id == "r\xff" {
			run.Remove(bundle.Signature)
		}
	}
	v := mountAll(t, project)
	for id, key := range keys {
		names(t, v.at(id))
		want := "accepted"
		if id == "r\xff" {
			want = "rejected"
		}
		if got := v.state(key); got != want {
			t.Errorf("%q is %q", id, got)
		}
	}
	if n := len(v.status().Runs); n != len(keys) {
		t.Errorf("%d runs", n)
	}
}

// TestAllUsage: what does not go with --all is rejected, not passed over.
func TestAllUsage(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"a": "a"})
	runs, root := runsDir(project), t.TempDir()
	for _, args := range [][]string{
		{"--all"}, {"--all", "--chain"}, {"--all", "--chain", runs}, {"--all", runs, runs}, {"--all", "--restore-root", root, runs}, {"--all", run.Dir},
	} {
		dir := t.TempDir()
		if stdout, stderr, status := spectrum(t, append(append([]string{"mount", "--json"}, args...), dir)...); status != statusUsage || !strings.Contains(stdout, `"code":"USAGE"`) {
			t.Errorf("%q: %d %s%s", args, status, stdout, stderr)
		}
		if isMounted(t, dir) {
			t.Errorf("%q: it is mounted", args)
		}
	}
}

// TestRenamedRunIsLogged: a view of all runs says of a run whose directory has another name
// than the signed task, when it is first entered, which task that is.
func TestRenamedRunIsLogged(t *testing.T) {
	project := bundletest.New(t)
	check(t, os.Rename(project.Run("run", map[string]string{"a": "a"}).Dir, filepath.Join(runsDir(project), "production")))
	v := mountAll(t, project)
	for range 2 {
		if _, err := os.ReadFile(v.at("production/a")); err != nil {
			t.Error(err)
		}
	}
	if said, err := v.stop(os.Interrupt); err != nil || strings.Count(said, "is not signed") != 1 || !strings.Contains(said, "run=production task_id=") {
		t.Errorf("%q, %v", said, err)
	}
}

// TestControlFilesHideNothing: the JSON of a view has no character that cannot be seen, and
// means the same.
func TestControlFilesHideNothing(t *testing.T) {
	const name, lost = "good\u202e\u3164", "lost\u2066\U000e0041"
	project := bundletest.New(t)
	run := project.Run(name, map[string]string{name: "good"})
	project.Run("rejected", map[string]string{lost: "lost"})
	check(t, os.Remove(filepath.Join(project.Root, lost)))
	all, one := mountAll(t, project), startView(t, run.Dir)
	if _, err := os.ReadDir(all.at(name)); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{
		all.at("rejected", "REJECTED.json"): lost, all.control("status.json"): name,
		one.control("status.json"): "", one.control("candidate.json"): name, one.control("shown.json"): "",
	} {
		raw, err := os.ReadFile(file)
		check(t, err)
		if seen := visible.Lines(string(raw)); seen != string(raw) {
			t.Errorf("%s: %s", file, seen)
		}
		var value any
		check(t, json.Unmarshal(raw, &value))
		if text := fmt.Sprint(value); !strings.Contains(text, want) {
			t.Errorf("%s: %q is not in %q", file, want, text)
		}
	}
}
