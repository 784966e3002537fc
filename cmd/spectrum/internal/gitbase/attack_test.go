package gitbase_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"golang.org/x/sys/unix"
)

// commandKeys are the settings of git whose value is a command, or makes git start one, and
// that could have to do with what is asked of it.
var commandKeys = []string{
	"core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "core.alternateRefsCommand",
	"credential.helper", "diff.external", "diff.x.command", "diff.x.textconv", "merge.x.driver", "filter.x.clean", "filter.x.smudge", "filter.x.process",
	"filter.lfs.smudge", "filter.lfs.process", "gpg.program", "gpg.ssh.program", "pager.config", "pager.ls-files", "pager.rev-parse", "pager.cat-file",
	"alias.rev-parse", "alias.config", "alias.ls-files", "alias.ls-tree", "alias.cat-file", "alias.check-attr",
	"remote.origin.uploadpack", "remote.origin.receivepack", "remote.origin.vcs", "uploadpack.packObjectsHook", "submodule.sub.update",
	"sequence.editor", "trailer.x.command", "trailer.x.cmd", "interactive.diffFilter", "man.x.cmd", "browser.x.cmd", "hook.x.command", "init.templateDir", "maintenance.auto", "trace2.eventTarget",
}

// TestNothingRuns: whatever the configuration of a repository names, nothing of it is started, and
// nothing beneath .git changes.
func TestNothingRuns(t *testing.T) {
	r := newRepo(t)
	canary := filepath.Join(t.TempDir(), "canary")
	r.write("x.bin", "content").write("sub/file", "file").write(".gitattributes", "* filter=x diff=x merge=x ident\n*.bin filter=lfs\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	script := filepath.Join(t.TempDir(), "attack")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho $0 >>"+canary+"\nexec cat\n"), 0o755))
	hooks := filepath.Join(t.TempDir(), "hooks")
	must(t, os.Mkdir(hooks, 0o755))
	for _, name := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "query-watchman", "pre-auto-gc", "sendemail-validate", "post-merge", "pre-commit"} {
		must(t, os.Symlink(script, filepath.Join(hooks, name)))
		must(t, os.Symlink(script, filepath.Join(r.dir, ".git/hooks", name)))
	}
	var config strings.Builder
	for _, key := range commandKeys {
		parts := strings.Split(key, ".")
		section, sub := parts[0], ""
		if len(parts) == 3 {
			sub = fmt.Sprintf(" %q", parts[1])
		}
		value := script
		if section == "alias" || key == "submodule.sub.update" {
			value = "!" + script
		}
		fmt.Fprintf(&config, "[%s%s]\n\t%s = %s\n", section, sub, parts[len(parts)-1], value)
	}
	fmt.Fprintf(&config, "[core]\n\thooksPath = %s\n\tuntrackedCache = true\n\tsplitIndex = true\n[filter \"x\"]\n\trequired = true\n[protocol \"ext\"]\n\tallow = always\n[protocol]\n\tallow = always\n", hooks)
	fmt.Fprintf(&config, "[remote \"origin\"]\n\turl = ext::%s\n\tpromisor = true\n\tpartialclonefilter = blob:none\n[include]\n\tpath = more\n", script)
	r.add(".git/config", config.String())
	r.write(".git/more", "[core]\n\tfsmonitor = "+script+"\n")
	r.write("x.bin", "other").write("new", "new")
	before := r.picture()
	b, err := r.read("HEAD")
	must(t, err)
	if got := len(b.List.Files); got != 3 {
		t.Errorf("%d files", got)
	}
	for _, f := range b.List.Files {
		if !strings.Contains(f.Doubt, "is not run") {
			t.Errorf("%q has a filter: %q", f.Path, f.Doubt)
		}
	}
	// a missing object is not fetched, by whatever means
	object := strings.TrimSpace(r.git("-c", "core.fsmonitor=false", "rev-parse", "HEAD:sub/file"))
	_ = os.Remove(canary) // what the test's own git has started
	path := filepath.Join(r.dir, ".git/objects", object[:2], object[2:])
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, os.Remove(path))
	b, err = r.read("HEAD")
	missing, isMissing := errors.AsType[*gitbase.MissingError](err)
	if b != nil || !isMissing || missing.Path != "sub/file" {
		t.Errorf("an object that is missing: %v", err)
	}
	must(t, os.WriteFile(path, raw, 0o444))
	if ran, err := os.ReadFile(canary); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("this ran:\n%s", ran)
	}
	but := "objects/" + object[:2]
	if now := r.picture(); now.without(but) != before.without(but) {
		t.Errorf("beneath .git was\n%s\nand is\n%s", before, now)
	}
}

// TestNothingRunsAtAll holds the canary itself: git run plainly does start some of these.
func TestNothingRunsAtAll(t *testing.T) {
	r := newRepo(t)
	canary := filepath.Join(t.TempDir(), "canary")
	script := filepath.Join(t.TempDir(), "attack")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho $0 >>"+canary+"\nexec cat\n"), 0o755))
	r.write("x", "content").write(".gitattributes", "x filter=x\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.add(".git/config", "[filter \"x\"]\n\tsmudge = "+script+"\n")
	r.git("cat-file", "--filters", "HEAD:x")
	if _, err := os.Stat(canary); err != nil {
		t.Errorf("the canary is not seen: %v", err)
	}
}

// hostileTree writes a tree as no git would, and a commit of it.
func hostileTree(r *repo, entries string) string {
	blob := r.object("blob", "x")
	tree := r.object("tree", strings.ReplaceAll(entries, "BLOB", string(blob)))
	commit := r.object("commit", fmt.Sprintf("tree %x\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n", tree))
	return hex.EncodeToString(commit)
}

// object writes an object without asking git.
func (r *repo) object(kind, content string) []byte {
	raw := fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content)
	sum := sha1.Sum(raw)
	name := hex.EncodeToString(sum[:])
	path := filepath.Join(r.dir, ".git/objects", name[:2], name[2:])
	must(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, err := w.Write(raw)
	must(r.t, errors.Join(err, w.Close()))
	if _, err := os.Stat(path); err != nil {
		must(r.t, os.WriteFile(path, packed.Bytes(), 0o444))
	}
	return sum[:]
}

// TestHostileTrees: a commit that no checkout takes is rejected as a whole.
func TestHostileTrees(t *testing.T) {
	r := newRepo(t)
	inner := string(r.object("tree", "100644 hooks\x00"+string(r.object("blob", "x"))))
	many := inner
	for range 40 { // a tree with 2^40 files, each the same one
		many = string(r.object("tree", "40000 a\x00"+many+"40000 b\x00"+many))
	}
	for name, entries := range map[string]string{
		"dots":          "100644 ..\x00BLOB",
		"dot":           "100644 .\x00BLOB",
		"slash":         "100644 ../x\x00BLOB",
		"empty":         "100644 \x00BLOB",
		"git":           "40000 .git\x00" + inner,
		"GIT":           "40000 .GiT\x00" + inner,
		"twice":         "100644 a\x00BLOB100644 a\x00BLOB",
		"file and dir":  "100644 a\x00BLOB40000 a\x00" + inner,
		"kind":          "160000 a\x00BLOB100644 b\x00" + inner,
		"long name":     "100644 " + strings.Repeat("x", 1<<19) + "\x00BLOB",
		"cut":           "100644 a\x00BLO",
		"malformed":     "garbage",
		"no such blob":  "100644 a\x00aaaaaaaaaaaaaaaaaaaa",
		"a tree inside": "40000 a\x00aaaaaaaaaaaaaaaaaaaa",
		"long link":     "120000 a\x00" + string(r.object("blob", strings.Repeat("x", 5000))),
		"attributes":    "100644 .gitattributes\x00" + string(r.object("blob", strings.Repeat("x", 65<<20))),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := r.read(hostileTree(r, entries))
			if err == nil || b != nil {
				t.Fatalf("%+v, %v", b, err)
			}
			t.Log(err)
		})
	}
	t.Run("bomb", func(t *testing.T) {
		defer gitbase.SetMaxFiles(gitbase.SetMaxFiles(1000))
		if _, err := r.read(hostileTree(r, "40000 a\x00"+many)); err == nil || !strings.Contains(err.Error(), "more than this program reads") && !errors.Is(err, gitbase.ErrTree) {
			t.Fatal(err)
		}
	})
}

// TestHostileFiles: files of the git directory that are none, or hold anything.
func TestHostileFiles(t *testing.T) {
	for name, spoil := range map[string]func(r *repo){
		"index is a FIFO":   func(r *repo) { r.replace("index", func(path string) error { return unix.Mkfifo(path, 0o644) }) },
		"index is garbage":  func(r *repo) { r.write(".git/index", "garbage") },
		"exclude is a FIFO": func(r *repo) { r.replace("info/exclude", func(path string) error { return unix.Mkfifo(path, 0o644) }) },
		"config is garbage": func(r *repo) { r.write(".git/config", "[garbage") },
		"unknown extension": func(r *repo) {
			r.write(".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tnew = true\n")
		},
		"another work tree": func(r *repo) { r.add(".git/config", "[core]\n\tworktree = /\n") },
		"HEAD is garbage":   func(r *repo) { r.write(".git/HEAD", "garbage") },
		"no objects":        func(r *repo) { must(r.t, os.RemoveAll(filepath.Join(r.dir, ".git/objects"))) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			r.write("a", "one")
			r.git("add", "-A")
			r.git("commit", "-qm", "one")
			spoil(r)
			b, err := r.read("HEAD")
			if err == nil || b != nil {
				t.Fatalf("%+v, %v", b, err)
			}
			t.Log(err)
		})
	}
}
