package view

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// The tools are run on a view as an operator would, and judged by what they say
// of the same thing elsewhere.

// gitEnv lets git work on any repository, without any user's settings.
var gitEnv = []string{
	"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_COUNT=1",
	"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2024-01-02T03:04:05Z",
	"GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.com", "GIT_COMMITTER_DATE=2024-01-02T03:04:05Z",
}

func TestGit(t *testing.T) {
	git := func(dir string, args ...string) string {
		t.Helper()
		return output(t, gitEnv, "git", append([]string{"-C", dir}, args...)...)
	}
	p := sealed(t, func(dir string) {
		git(dir, "init", "-q", "-b", "main")
		for i := range 40 {
			file := filepath.Join(dir, "src", strings.Repeat("x", i%7+1))
			harness.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
			harness.Must(t, os.WriteFile(file, content("git", int64(i), 5000*i), 0o644))
			git(dir, "add", ".")
			git(dir, "commit", "-q", "-m", strings.Repeat("message ", i+1))
			if i == 20 {
				git(dir, "gc", "-q") // packs as well as loose objects
			}
		}
	})
	source, view := p.Source("tree"), p.Mount(t, harness.Mounting{}).Path("tree")
	for _, args := range [][]string{
		{"log", "--stat", "-p"}, {"status", "--porcelain=v2", "--branch"}, {"fsck", "--full", "--strict"},
		{"ls-files", "-s"}, {"diff", "HEAD"}, {"cat-file", "--batch-all-objects", "--batch-check"}, {"grep", "-c", "."},
	} {
		if want, got := git(source, args...), git(view, args...); got != want {
			t.Errorf("git %q: %q, want %q", args, got, want)
		}
	}
	clone := filepath.Join(t.TempDir(), "clone")
	output(t, gitEnv, "git", "clone", "-q", view, clone)
	if want, got := git(source, "rev-parse", "HEAD", "HEAD^{tree}"), git(clone, "rev-parse", "HEAD", "HEAD^{tree}"); got != want {
		t.Errorf("the clone is at %s, want %s", got, want)
	}
	git(clone, "fsck", "--full", "--strict")
	output(t, nil, "diff", "-r", "-x", ".git", source, clone)
}

func TestSQLite(t *testing.T) {
	const rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 5000) " +
		"INSERT INTO t SELECT i, hex(randomblob(50)) FROM n; "
	sqlite := func(args ...string) string {
		t.Helper()
		return output(t, nil, "sqlite3", append([]string{"-batch", "-init", "/dev/null"}, args...)...)
	}
	p := sealed(t, func(dir string) {
		make := "CREATE TABLE t (i INTEGER PRIMARY KEY, x TEXT); CREATE INDEX tx ON t (x); " + rows
		sqlite(filepath.Join(dir, "plain.db"), make)
		sqlite(filepath.Join(dir, "wal.db"), "PRAGMA journal_mode=WAL; "+make)
	})
	v := p.Mount(t, harness.Mounting{})
	const check = "PRAGMA integrity_check; SELECT count(*), sum(i), min(x), max(x) FROM t; SELECT count(*) FROM t WHERE x > 'A';"
	for _, name := range []string{"plain.db", "wal.db"} {
		want := sqlite(p.Source("tree/"+name), check)
		if got := sqlite("file:"+v.Path("tree/"+name)+"?immutable=1", check); got != want || !strings.HasPrefix(got, "ok\n5000|") {
			t.Errorf("%s, immutable: %q, want %q", name, got, want)
		}
	}
	plain := v.Path("tree/plain.db")
	if want, got := sqlite(p.Source("tree/plain.db"), check), sqlite("-readonly", plain, check); got != want {
		t.Errorf("read-only: %q, want %q", got, want)
	}
	for _, change := range []string{"DELETE FROM t;", "VACUUM;", "CREATE TABLE u (i);"} {
		out, err := exec.Command("sqlite3", "-batch", "-bail", plain, change).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "readonly") {
			t.Errorf("%s: %v: %s", change, err, out)
		}
	}
}

// odd is a tree with what tools may stumble over.
func odd(t *testing.T) func(dir string) {
	return func(dir string) {
		for name, size := range map[string]int{
			"empty": 0, "one": 1, "page": 4096, "large": 3<<20 + 1, "a b\nc": 10, "-rf": 10, "ünï/cödé": 100,
			"deep/" + strings.Repeat("d/", 60) + "file": 10, strings.Repeat("n", 255): 10, ".hidden/.file": 10,
		} {
			path := filepath.Join(dir, name)
			harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			harness.Must(t, os.WriteFile(path, content(name, 0, size), 0o644))
		}
		for i := range 500 {
			harness.Must(t, os.WriteFile(filepath.Join(dir, "deep", fmt.Sprintf("%0*d", i%50+3, i)), content("f", int64(i), i), 0o600))
		}
	}
}

func TestCopies(t *testing.T) {
	p := sealed(t, odd(t))
	source, view := p.Source("tree"), p.Mount(t, harness.Mounting{}).Path("tree")
	output(t, nil, "diff", "-r", source, view)
	// Permission bits are those of the source without the right to write.
	const facts = `cd "$0" && find . -type f -printf '%P %s %T@ %n\n' | sort && find . -type f -perm /0222 | wc -l`
	for name, copying := range map[string]string{
		"rsync": `rsync -a "$0/" "$1/"`,
		"cp":    `cp -a "$0/." "$1/"`,
		"tar":   `tar --format=posix -C "$0" -c . | tar -C "$1" -xp`,
	} {
		t.Run(name, func(t *testing.T) {
			made := t.TempDir()
			output(t, nil, "sh", "-c", copying, view, made)
			output(t, nil, "diff", "-r", source, made)
			if want, got := output(t, nil, "sh", "-c", facts, view), output(t, nil, "sh", "-c", facts, made); got != want {
				t.Errorf("the copy has\n%s\nwant\n%s", got, want)
			}
			for range 2 {
				if differs := output(t, nil, "rsync", "-c", "-n", "-a", "-i", view+"/", made+"/"); strings.Contains(differs, "f") {
					t.Errorf("rsync would change:\n%s", differs)
				}
			}
		})
	}
	if differs := output(t, nil, "rsync", "-c", "-n", "-r", "-t", "-i", source+"/", view+"/"); strings.Contains(differs, "<f") || strings.Contains(differs, ">f") {
		t.Errorf("the source differs from the view:\n%s", differs)
	}
}

// TestGoBuild builds a program from sources in the view, and runs it. The path
// of the view is new, so that no cache has it.
func TestGoBuild(t *testing.T) {
	p := sealed(t, func(dir string) {
		for name, text := range map[string]string{
			"go.mod":           "module example.com/hello\n\ngo 1.26\n",
			"main.go":          "package main\n\nimport \"example.com/hello/words\"\n\nfunc main() { println(words.Hello()) }\n",
			"words/words.go":   "package words\n\n// Hello is said.\nfunc Hello() string { return \"hello from sources in the view\" }\n",
			"words/ignored.md": "# nothing\n",
		} {
			path := filepath.Join(dir, name)
			harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			harness.Must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	})
	v := p.Mount(t, harness.Mounting{})
	program := filepath.Join(t.TempDir(), "hello")
	env := []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOWORK=off"}
	output(t, env, "go", "build", "-C", v.Path("tree"), "-o", program, ".")
	if said := output(t, nil, program); said != "hello from sources in the view\n" {
		t.Errorf("it says %q", said)
	}
}
