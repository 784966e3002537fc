package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestHolesArePolicy: a run of which too much is holes is rejected with exit status 5
// and no code of a law, and nothing is hashed.
func TestHolesArePolicy(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("huge", map[string]string{"huge": "small"})
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	root := t.TempDir()
	for _, args := range [][]string{
		{"verify", run.Dir}, {"verify", "--law", "resume", run.Dir}, {"preview", "--restore-root", root, run.Dir}, {"ls", run.Dir}, {"commit", "--restore-root", root, run.Dir},
	} {
		stdout, stderr, status := spectrum(t, append(args, "--json")...)
		if status != statusPolicy || !strings.Contains(stdout, `"code":"CANDIDATE_TOO_SPARSE","details":{"limit":274877906944,"path":"huge","size":8796093022208}`) || strings.Contains(stdout, "OUTPUT") {
			t.Errorf("%q: %d %s%s", args, status, stdout, stderr)
		}
	}
}

// TestHolesAreNotSealed: seal takes what verify takes, and hashes nothing else; the error
// names the file, its size and what to do.
func TestHolesAreNotSealed(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("first", map[string]string{"out/fits": "small"}) // a project with runs
	key, sealed := filepath.Join(t.TempDir(), "key.pem"), filepath.Join(filepath.Dir(run.Dir), "second")
	if _, stderr, status := spectrum(t, "keygen", "--out", key); status != 0 {
		t.Fatal(stderr)
	}
	seal := func(want int) (stdout, stderr string) {
		t.Helper()
		stdout, stderr, status := spectrum(t, "seal", "--json", "--key", key, "--run-dir", sealed, filepath.Join(project.Root, "out"))
		if status != want {
			t.Fatalf("%d %s%s", status, stdout, stderr)
		}
		return stdout, stderr
	}
	for name, sizes := range map[string][]int64{"one": {15 << 40}, "two": {verify.MaxHoles / 2, verify.MaxHoles * 3 / 4}} {
		for i, size := range sizes {
			file := filepath.Join(project.Root, "out/huge"+strconv.Itoa(i))
			check(t, os.WriteFile(file, nil, 0o644))
			check(t, os.Truncate(file, size))
		}
		stdout, stderr := seal(statusPolicy)
		last := len(sizes) - 1
		if !strings.Contains(stdout, `"code":"CANDIDATE_TOO_SPARSE"`) || !strings.Contains(stderr, fmt.Sprintf(`"out/huge%d" of %d bytes`, last, sizes[last])) || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%s: %s%s", name, stdout, stderr)
		}
		if _, err := os.Lstat(sealed); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, os.Remove(filepath.Join(project.Root, "out/huge1")))
	check(t, os.Truncate(filepath.Join(project.Root, "out/huge0"), 1<<26))
	seal(0)
}

// TestHolesInARoot: what compares the files of a restore root hashes none of which too much
// is holes.
func TestHolesInARoot(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run", map[string]string{"huge": "small"})
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	id, stderr, status := spectrum(t, "--state-dir", state, "preview", "-q", "--restore-root", root, run.Dir)
	if status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	_, stderr, status = spectrum(t, "--state-dir", state, "commit", "--preview", strings.TrimSpace(id), "--approve", "Approved: commit the restore preview exactly as proposed.")
	if status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	check(t, os.Truncate(filepath.Join(root, "huge"), 15<<40))
	for _, args := range [][]string{{"diff", run.Dir, root}, {"savepoint", "verify", "--restore-root", root, "latest"}, {"snapshot", "take", root}} {
		stdout, stderr, status := spectrum(t, append(args, "--state-dir", state, "--json")...)
		if status != statusPolicy || !strings.Contains(stdout, `"code":"FILE_TOO_SPARSE","details":{"limit":274877906944,"path":"huge","size":16492674416640}`) || !strings.Contains(stderr, `"huge"`) || !strings.Contains(stderr, fmt.Sprintf("of %d bytes", int64(15<<40))) {
			t.Errorf("%q: %d %s%s", args, status, stdout, stderr)
		}
	}
}

// TestHolesAreNotLatest: "latest" leads past a run that is rejected.
func TestHolesAreNotLatest(t *testing.T) {
	project := bundletest.New(t)
	project.Run("good", map[string]string{"good": "good"})
	project.Run("zz-huge", map[string]string{"huge": "small"})
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	v := mountAll(t, project)
	if raw, err := os.ReadFile(v.at("latest/good")); err != nil || string(raw) != "good" {
		t.Errorf("%q, %v", raw, err)
	}
	if raw, err := os.ReadFile(v.at("zz-huge", "REJECTED.json")); err != nil || !strings.Contains(string(raw), `"code":"CANDIDATE_TOO_SPARSE"`) {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestHolesBlockNothing: in a view of all runs one that is rejected, or takes minutes,
// stops neither the others nor latest.
func TestHolesBlockNothing(t *testing.T) {
	project := bundletest.New(t)
	project.Run("good", map[string]string{"good": "good"})
	project.Run("slow", map[string]string{"slow": "small"})
	project.Run("zz-huge", map[string]string{"huge": "small"}) // the newest by its name
	check(t, os.Truncate(filepath.Join(project.Root, "slow"), verify.MaxHoles))
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	v := mountAll(t, project)
	if got := names(t, v.at("zz-huge")); len(got) != 1 || got[0] != "REJECTED.json" {
		t.Errorf("the huge run shows %q", got)
	}
	latest := func() {
		t.Helper()
		if latest, err := os.Readlink(v.at("latest")); err != nil || latest != "good" || v.state("slow") != "verifying" {
			t.Errorf("latest is %q, %v, while the slow one is %q", latest, err, v.state("slow"))
		}
	}
	latest() // no other reader has asked for the slow one
	entered := make(chan struct{})
	go func() {
		_, _ = os.ReadDir(v.at("slow")) // until the view is gone
		close(entered)
	}()
	harness.Eventually(t, "the slow one is at work", func() bool { return v.state("slow") == "verifying" })
	raw, err := os.ReadFile(v.at("good/good"))
	if err != nil || string(raw) != "good" || v.state("slow") != "verifying" {
		t.Errorf("%q, %v, while the slow one is %q", raw, err, v.state("slow"))
	}
	latest()
	if said, err := v.stop(os.Interrupt); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	<-entered
}

// TestManyHolesBlockNothing: nor do many runs that take minutes each, all of which readers
// wait for. A run that is smaller than they does not wait until each of them has had a turn.
func TestManyHolesBlockNothing(t *testing.T) {
	const slow = 12
	project := bundletest.New(t)
	project.Run("good", map[string]string{"good": "good"})
	project.Run("larger", map[string]string{"larger": "larger"})
	for i := range slow {
		name := fmt.Sprintf("slow%02d", i)
		project.Run(name, map[string]string{name: "small"})
		check(t, os.Truncate(filepath.Join(project.Root, name), verify.MaxHoles))
	}
	began := time.Now()
	h := sha256.New()
	for block, left := make([]byte, 1<<20), 1<<10; left > 0; left-- {
		_, _ = h.Write(block)
	}
	patience := slow / 2 * time.Since(began) // half of what a GiB of each of them would take
	v := mountAll(t, project)
	var readers sync.WaitGroup
	for i := range slow {
		readers.Go(func() { _, _ = os.ReadDir(v.at(fmt.Sprintf("slow%02d", i))) }) // until the view is gone
	}
	harness.Eventually(t, "the slow ones are asked for", func() bool {
		status, verifying := v.status(), 0
		for i := range slow {
			if _, ok := status.Runs[fmt.Sprintf("slow%02d", i)]; ok {
				verifying++
			}
		}
		return verifying == slow
	})
	began = time.Now()
	if raw, err := os.ReadFile(v.at("good/good")); err != nil || string(raw) != "good" {
		t.Errorf("%q, %v", raw, err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("the good run was waited for for %v, longer than %v", took, patience)
	}
	if latest, err := os.Readlink(v.at("latest")); err != nil || latest != "larger" {
		t.Errorf("latest is %q, %v", latest, err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("latest was waited for for %v, longer than %v", took, patience)
	}
	if said, err := v.stop(os.Interrupt); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	readers.Wait()
}

// TestHolesAreNotKept: a file of a restore root, or several, with more holes than are hashed
// is named, and no snapshot of it is taken; nor does anything displace it. What is left of
// the holes is kept.
func TestHolesAreNotKept(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run", map[string]string{"huge": "small"})
	root, state := t.TempDir(), filepath.Join(t.TempDir(), "state")
	sparse := func(name string, size int64) {
		t.Helper()
		f, err := os.Create(filepath.Join(root, name))
		check(t, err)
		check(t, f.Truncate(size))
		check(t, f.Close())
	}
	take := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		return spectrum(t, append([]string{"--state-dir", state, "snapshot", "take", "--json", root}, args...)...)
	}
	refused := func(name string) {
		t.Helper()
		stdout, stderr, status := take()
		if status != statusPolicy || !strings.Contains(stdout, `"code":"FILE_TOO_SPARSE"`) || !strings.Contains(stderr, name) || !strings.Contains(stderr, "hole") {
			t.Errorf("%s: %d %s%s", name, status, stdout, stderr)
		}
	}
	sparse("little", 1<<26)
	if stdout, stderr, status := take(); status != 0 {
		t.Fatalf("%d %s%s", status, stdout, stderr)
	}
	sparse("image", 15<<40)
	refused("image")
	check(t, os.Remove(filepath.Join(root, "image")))
	sparse("one", verify.MaxHoles/2)
	sparse("two", verify.MaxHoles*3/4)
	refused("")
	check(t, os.Remove(filepath.Join(root, "one")))
	check(t, os.Remove(filepath.Join(root, "two")))
	id, stderr, status := spectrum(t, "--state-dir", state, "preview", "-q", "--restore-root", root, run.Dir)
	if status != 0 {
		t.Fatalf("%d %s", status, stderr)
	}
	_, stderr, status = spectrum(t, "--state-dir", state, "commit", "--preview", strings.TrimSpace(id), "--approve", "Approved: commit the restore preview exactly as proposed.")
	undo := regexp.MustCompile(`rollback ([0-9a-f-]{36})"`).FindStringSubmatch(stderr)
	if status != 0 || undo == nil {
		t.Fatalf("%d %s", status, stderr)
	}
	check(t, os.Truncate(filepath.Join(root, "huge"), 15<<40)) // what a rollback would have to keep first
	stdout, stderr, status := spectrum(t, "--state-dir", state, "rollback", "--json", undo[1])
	if status != statusPolicy || !strings.Contains(stderr, "huge") {
		t.Errorf("%d %s%s", status, stdout, stderr)
	}
	if info, err := os.Stat(filepath.Join(root, "huge")); err != nil || info.Size() != 15<<40 {
		t.Errorf("%v, %v", info, err)
	}
}
