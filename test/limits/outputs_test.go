package limits

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

func TestManyNames(t *testing.T)     { manyNames(t, 100_000) }
func TestLongManyNames(t *testing.T) { sample.Need(t, sample.Long); manyNames(t, 3_190_000) }

// manyNames signs outputs that are nowhere: all are read, and the first in
// order is the one that is named.
func manyNames(t *testing.T, n int) {
	p := newProject(t)
	dir, size := p.signed(t, "many", names(n))
	for _, args := range [][]string{
		{"verify", "--json", dir},
		{"verify", "--json", "--law", "resume", dir},
		{"verify", "--json", "--law", "memory", dir},
		{"preview", "--json", "--restore-root", p.root, dir},
		{"commit", "--json", "--restore-root", p.root, dir},
		{"mount", "--json", dir, t.TempDir()},
	} {
		u := p.run(t, nil, args...)
		if !strings.Contains(u.stderr, "OUTPUT_MISSING") || !strings.Contains(u.stderr, `output "0000000" is missing`) || u.status != 1 {
			t.Error(u)
		}
		t.Logf("%s: %d names, %d MiB: %d MiB of memory", args[0], n, size/mib, u.memory/mib)
		within(t, u, allowance(size))
	}
}

// TestTooLarge: what is larger than its limit is rejected, and nothing of it is
// read, however large it is. Five million names have more than 400 MiB.
func TestTooLarge(t *testing.T) {
	limits := map[string]int64{forge.OutputHashes: 256 * mib}
	for _, artifact := range forge.Names {
		limit := limits[artifact]
		if limit == 0 {
			limit = 16 * mib
		}
		for _, size := range []int64{limit + 1, 420 * mib, 1 << 40} {
			p := newProject(t)
			dir := p.forge(t, "run", forge.Outputs{"a": "content"})
			path := filepath.Join(dir, artifact)
			harness.Must(t, os.Truncate(path, size))
			u := p.run(t, nil, "verify", "--json", dir)
			if u.code != "ARTIFACT_MALFORMED" || !strings.Contains(u.stderr, fmt.Sprintf("at most %d are read", limit)) {
				t.Error(u)
			}
			within(t, u, 48*mib)
		}
	}
}

func TestDepth(t *testing.T) {
	for _, c := range []struct {
		levels int
		end    string
		code   string
	}{{511, "]", "OK"}, {512, "]", "ARTIFACT_MALFORMED"}, {100_000, "", "ARTIFACT_MALFORMED"}, {100_000, "]", "ARTIFACT_MALFORMED"}} {
		p := newProject(t) // the artifact itself is one level more
		dir, _ := p.shaped(t, forge.Proof, text(strings.Repeat("[", c.levels)+strings.Repeat(c.end, c.levels)))
		u := p.run(t, nil, "verify", "--json", dir)
		if u.code != c.code {
			t.Errorf("%d levels: want %s: %v", c.levels, c.code, u)
		}
		within(t, u, 48*mib)
	}
}

// TestErrorNamesNoGiant: a name of the input is in no error in full. The JSON
// library copies the names that lead to an error, so that what is malformed below
// a giant name takes more memory than anything else.
func TestErrorNamesNoGiant(t *testing.T) {
	p := newProject(t)
	dir, size := p.shaped(t, forge.OutputHashes, around(`{"`, "k", `":{"a":x}}`)(8*mib))
	u := p.run(t, nil, "verify", "--json", dir)
	if u.code != "ARTIFACT_MALFORMED" || len(u.stdout)+len(u.stderr) > 4<<10 {
		t.Errorf("%d bytes on stderr: %v", len(u.stderr), u)
	}
	within(t, u, 7*size+32*mib)
}

// TestSealTooLarge: more inputs than TASK_SPEC.json can hold are rejected before
// anything is written. Control characters take six bytes in JSON.
func TestSealTooLarge(t *testing.T) {
	p := newProject(t)
	key := filepath.Join(p.dir, "key.pem")
	if u := p.run(t, nil, "keygen", "--out", key); u.status != 0 {
		t.Fatal(u)
	}
	harness.Must(t, os.WriteFile(filepath.Join(p.dir, "a"), nil, 0o644))
	run := p.runDir("sealed")
	for inputs, ok := range map[int]bool{27: true, 28: false} {
		script := `ulimit -s 60000
x=$(head -c 100000 /dev/zero | tr '\0' '\001')
n=0; while [ $n -lt ` + fmt.Sprint(inputs) + ` ]; do set -- "$@" --input "$x"; n=$((n+1)); done
exec "$0" "$@"`
		out, err := exec.Command("sh", "-c", script, harness.Binary(), "seal", "-q", "--state-dir", p.state, "--key", key, "--run-dir", run, filepath.Join(p.dir, "a")).CombinedOutput()
		if (err == nil) != ok || !ok && !strings.Contains(string(out), "nothing was sealed: TASK_SPEC.json would have more than the limit of 16777216 bytes") {
			t.Errorf("%d inputs: %v, %.300s", inputs, err, out)
		}
		if _, err := os.Lstat(run); (err == nil) != ok {
			t.Errorf("%d inputs: %v", inputs, err)
		}
		harness.Must(t, os.RemoveAll(run))
	}
}

// TestLongSealTooMany: more outputs than OUTPUT_HASHES.json can hold are rejected
// before they are hashed.
func TestLongSealTooMany(t *testing.T) {
	sample.Need(t, sample.Long)
	p := newProject(t)
	key := filepath.Join(p.dir, "key.pem")
	if u := p.run(t, nil, "keygen", "--out", key); u.status != 0 {
		t.Fatal(u)
	}
	fd, err := unix.Open(p.dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	harness.Must(t, err)
	component := strings.Repeat("\x01", 250)
	for _, name := range append([]string{"tree"}, strings.Split(strings.Repeat(component+" ", 14)+component, " ")...) {
		harness.Must(t, unix.Mkdirat(fd, name, 0o755))
		deeper, err := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		harness.Must(t, err)
		unix.Close(fd)
		fd = deeper
	}
	defer unix.Close(fd)
	for i := range 11_500 {
		f, err := unix.Openat(fd, fmt.Sprintf("%s%06d", component[:200], i), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
		harness.Must(t, err)
		unix.Close(f)
	}
	run := p.runDir("sealed")
	u := p.run(t, nil, "seal", "--json", "--key", key, "--run-dir", run, filepath.Join(p.dir, "tree"))
	if u.status != 1 || !strings.Contains(u.stderr, "OUTPUT_HASHES.json would have more than 268435456 bytes") || !strings.Contains(u.stderr, "hint: seal the outputs as several bundles") {
		t.Error(u)
	}
	entries, err := os.ReadDir(filepath.Dir(run))
	if harness.Must(t, err); len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestRealFiles(t *testing.T)     { realFiles(t, 4_000) }
func TestLongRealFiles(t *testing.T) { sample.Need(t, sample.Long); realFiles(t, 200_000) }

// perFile is what a view may hold of each file beside the artifact, in bytes.
const perFile = 300

// realFiles prints what outputs that are there cost in memory.
func realFiles(t *testing.T, n int) {
	p := newProject(t)
	for i := range n {
		path := filepath.Join(p.dir, fmt.Sprintf("tree/%03d/%07d", i/1000, i))
		if i%1000 == 0 {
			harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		}
		harness.Must(t, os.WriteFile(path, nil, 0o644))
	}
	dir, size := p.signed(t, "real", func(w *bufio.Writer) {
		for i := range n {
			if i > 0 {
				_ = w.WriteByte(',')
			}
			_, _ = fmt.Fprintf(w, `"tree/%03d/%07d":"%s"`, i/1000, i, forge.Hash(""))
		}
	})
	report := func(what string, memory int64) {
		t.Logf("%s: %d files, %d KiB: %d MiB of memory, %d bytes a file", what, n, size>>10, memory/mib, memory/int64(n))
	}
	for _, args := range [][]string{{"verify", "--json", dir}, {"preview", "-q", "--restore-root", p.root, dir}} {
		u := p.run(t, nil, args...)
		if u.status != 0 {
			t.Fatal(u)
		}
		report(args[0], u.memory)
		if args[0] == "verify" {
			within(t, u, allowance(size))
			continue
		}
		id := strings.TrimSpace(u.stdout)
		u = p.run(t, nil, "commit", "--json", "--preview", id, "--approve", harness.Statement)
		if u.status != 0 {
			t.Fatal(u)
		}
		report("commit", u.memory)
	}
	view := (&harness.Project{Dir: p.dir, State: p.state, Runs: []harness.Run{{Dir: dir}}}).Mount(t, harness.Mounting{Patience: patience})
	memory := peakOf(t, view.Server.Pid)
	report("mount", memory)
	if bound := allowance(size) + int64(n)*perFile; memory > bound {
		t.Errorf("mount: %d MiB, at most %d are allowed", memory/mib, bound/mib)
	}
}

func peakOf(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	harness.Must(t, err)
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	var kib int64
	_, err = fmt.Sscan(rest, &kib)
	harness.Must(t, err)
	return kib << 10
}

func TestChain(t *testing.T)     { chainOf(t, 200) }
func TestLongChain(t *testing.T) { sample.Need(t, sample.Long); chainOf(t, 10_000) }

// chainOf verifies and previews a chain with 64 descriptors.
func chainOf(t *testing.T, n int) {
	p := newProject(t)
	harness.Must(t, os.WriteFile(filepath.Join(p.dir, "a"), nil, 0o644))
	r := forge.New(forge.Outputs{"a": ""})
	var dirs []string
	for i := range n {
		dirs = append(dirs, p.runDir(fmt.Sprintf("r%05d", i)))
		harness.Must(t, r.Write(dirs[i]))
	}
	few := []string{"--nofile=64:64"}
	for _, args := range [][]string{{"verify", "--json", "--chain"}, {"preview", "-q", "--restore-root", p.root, "--chain"}} {
		u := p.run(t, few, append(args, dirs...)...)
		if u.status != 0 {
			t.Fatal(u)
		}
		t.Logf("%s: a chain of %d: %d MiB of memory", args[0], n, u.memory/mib)
		within(t, u, 48*mib+int64(n)*10<<10)
	}
}
