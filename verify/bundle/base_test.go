package bundle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// leaf is what is at a path of a tree: a file, a link, or an empty directory.
type leaf struct {
	content string
	mode    fs.FileMode // of a file its bits
}

// drawTree draws a tree of few names, so that a file of one tree often is a directory of another.
func drawTree(t *rapid.T, name string) map[string]leaf {
	tree := map[string]leaf{}
	for _, path := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "a/x", "a/y", "b/x", "c", "c/d/e", "c/d/f", ".hid", "log/x.log"}), rapid.ID).Draw(t, name) {
		if slices.ContainsFunc(slices.Collect(maps.Keys(tree)), func(other string) bool {
			return strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/")
		}) {
			continue
		}
		mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o644, 0o600, 0o755, fs.ModeSymlink}).Draw(t, "mode of "+path)
		tree[path] = leaf{rapid.SampledFrom([]string{"one", "two"}).Draw(t, "content of "+path), mode}
	}
	return tree
}

func (l leaf) put(at string) error {
	if l.mode.Type() == fs.ModeSymlink {
		return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(l.content, at))
	}
	return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(l.content), 0o600), os.Chmod(at, l.mode))
}

// putTree writes a tree, and opens it.
func putTree(t *rapid.T, at string, tree map[string]leaf) *pathsafe.Dir {
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, l := range tree {
		if err := l.put(filepath.Join(at, path)); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := pathsafe.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// noForm reports whether a change set cannot say what became of a path of one of both trees.
func noForm(before, now map[string]leaf, path string) bool {
	was, had := before[path]
	is, has := now[path]
	wasLink, isLink := had && was.mode == fs.ModeSymlink, has && is.mode == fs.ModeSymlink
	if (wasLink || isLink) && was != is {
		return true
	}
	isDirIn := func(tree map[string]leaf) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(tree)), func(p string) bool { return strings.HasPrefix(p, path+"/") })
	}
	return had && !wasLink && isDirIn(now) || has && !isLink && isDirIn(before)
}

// modelOf is the change set from one tree to another, as text: what is new, changed and removed.
func modelOf(before, now map[string]leaf) string {
	var lines []string
	for path, is := range now {
		was, had := before[path]
		switch {
		case is.mode == fs.ModeSymlink:
		case !had:
			lines = append(lines, fmt.Sprintf("%s new %v", path, is.mode&0o100 != 0))
		case was.content != is.content || was.mode&0o100 != is.mode&0o100:
			lines = append(lines, fmt.Sprintf("%s from %s %v", path, was.content, is.mode&0o100 != 0))
		}
	}
	for path, was := range before {
		if _, has := now[path]; !has && was.mode != fs.ModeSymlink {
			lines = append(lines, path+" removed from "+was.content)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestSealBase: sealing against a base returns what a slow model returns, and a name that cannot be
// represented is rejected.
func TestSealBase(t *testing.T) {
	key, err := bundle.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{hexOf("one"): "one", hexOf("two"): "two"}
	rapid.Check(t, func(rt *rapid.T) {
		top, err := os.MkdirTemp(t.TempDir(), "trial")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(top)
		before, now := drawTree(rt, "before"), drawTree(rt, "now")
		beforeDir, nowDir := putTree(rt, filepath.Join(top, "before"), before), putTree(rt, filepath.Join(top, "now"), now)
		defer beforeDir.Close()
		defer nowDir.Close()
		exclude := []string{"*.log"}
		delete(before, "log/x.log")
		delete(now, "log/x.log")
		run := filepath.Join(top, "run")
		opts := bundle.SealOptions{
			Project: nowDir, Base: beforeDir, RunDir: run, Outputs: []string{bundle.Whole}, Exclude: exclude, Key: key, BuildID: "git:abc1234",
		}
		as := rapid.SampledFrom([]string{"a directory", "a list", "a layer"}).Draw(rt, "as")
		switch as {
		case "a list":
			opts.Base, opts.BaseList = nil, listOf(rt, before)
		case "a layer":
			opaque := rapid.SampledFrom([]string{"", "a", "c", "c/d"}).Draw(rt, "opaque")
			upper := filepath.Join(top, "upper")
			if err := putLayer(upper, before, now, opaque); err != nil {
				rt.Fatal(err)
			}
			if opts.Project, err = pathsafe.OpenRoot(upper); err != nil {
				rt.Fatal(err)
			}
			defer opts.Project.Close()
			opts.Base, opts.Layer = nil, &bundle.Layer{Lower: beforeDir}
		}
		sealed, err := bundle.Seal(context.Background(), opts)
		all := slices.Collect(maps.Keys(before))
		all = append(all, slices.Collect(maps.Keys(now))...)
		if slices.ContainsFunc(all, func(path string) bool { return noForm(before, now, path) }) {
			var form *bundle.FormError
			var special *bundle.SpecialError
			if !errors.As(err, &form) && !errors.As(err, &special) {
				rt.Fatalf("from %v to %v: %v", before, now, err)
			}
			if _, err := os.Lstat(run); err == nil {
				rt.Fatal("there is a run directory")
			}
			return
		}
		want := modelOf(before, now)
		onlyRemoves := want != "" && !strings.Contains(want, " new ") && !strings.Contains(want, " from one ") && !strings.Contains(want, " from two ")
		if err != nil {
			carries := slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(path string) bool { return path != ".hid" && now[path].mode != fs.ModeSymlink })
			if want != "" && (!onlyRemoves || carries && as != "a layer") {
				rt.Fatalf("from %v to %v: %v", before, now, err)
			}
			return
		}
		got := readChanges(rt, run, names, sealed.Counts.Carried)
		if got != want || (sealed.Counts.Carried > 0) != onlyRemoves {
			rt.Fatalf("from %v to %v:\n%s\nwant\n%s", before, now, got, want)
		}
	})
}

// putLayer makes the upper layer of an overlay that shows a tree over another one. One directory is
// opaque if both have it.
func putLayer(upper string, before, now map[string]leaf, opaque string) error {
	isDirIn := func(tree map[string]leaf, dir string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(tree)), func(path string) bool { return strings.HasPrefix(path, dir+"/") })
	}
	isOpaque := func(path string) bool {
		return opaque != "" && strings.HasPrefix(path, opaque+"/") && isDirIn(before, opaque) && isDirIn(now, opaque)
	}
	if err := os.Mkdir(upper, 0o755); err != nil {
		return err
	}
	for path, l := range now {
		if was, had := before[path]; !had || was != l || isOpaque(path) {
			if err := l.put(filepath.Join(upper, path)); err != nil {
				return err
			}
		}
	}
	for path := range before {
		parts := strings.Split(path, "/")
		for n := range parts {
			at := strings.Join(parts[:n+1], "/")
			if _, has := now[at]; has || isOpaque(at) {
				break
			}
			if isDirIn(now, at) {
				continue
			}
			name := filepath.Join(upper, at)
			err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), unix.Mknod(name, unix.S_IFCHR, 0))
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			break
		}
	}
	if !isOpaque(opaque + "/") {
		return nil
	}
	return unix.Setxattr(filepath.Join(upper, opaque), bundle.UserOverlay+"opaque", []byte("y"), 0)
}

// listOf is a tree as a base of which the files are known.
func listOf(t interface{ Fatal(args ...any) }, tree map[string]leaf) *bundle.BaseList {
	list := &bundle.BaseList{HasModes: true, Links: map[string]string{}}
	for name, l := range tree {
		path, err := pathsafe.Found(name)
		if err != nil {
			t.Fatal(err)
		}
		if l.mode == fs.ModeSymlink {
			list.Links[name] = l.content
			continue
		}
		known := bundle.Known{Path: path, Bytes: int64(len(l.content)), Digest: sha256.Sum256([]byte(l.content))}
		list.Files = append(list.Files, bundle.BaseFile{Known: known, Executable: l.mode&0o100 != 0})
	}
	return list
}

// TestSealLeave: what the caller leaves out is out on both sides, and reported once; of a base's files those
// whose modes are not known differ by their bytes only, and one whose name no output can have is rejected
// unless it is left out.
func TestSealLeave(t *testing.T) {
	key, err := bundle.GenerateKey()
	must(t, err)
	now := map[string]leaf{"a": {"two", 0o644}, "run": {"one", 0o755}, "built/x": {"one", 0o644}, "built/y/z": {"one", 0o644}, "links/in": {"one", fs.ModeSymlink}}
	before := map[string]leaf{"a": {"one", 0o644}, "run": {"one", 0o644}, "built/gone": {"one", 0o644}, "odd\\name": {"one", 0o644}}
	top := t.TempDir()
	for path, l := range now {
		must(t, l.put(filepath.Join(top, path)))
	}
	project, err := pathsafe.OpenRoot(top)
	must(t, err)
	defer project.Close()
	var left []bundle.LeftOut
	opts := bundle.SealOptions{
		Project: project, BaseList: listOf(t, before), RunDir: filepath.Join(t.TempDir(), "run"), Outputs: []string{bundle.Whole}, Key: key, BuildID: "git:abc1234",
		LeftOut: func(groups []bundle.LeftOut) { left = groups },
		Leave: func(path string, mode fs.FileMode) bundle.Why {
			switch {
			case path == "built" && mode.IsDir():
				return "built"
			case mode.Type() == fs.ModeSymlink:
				return "linked"
			}
			return ""
		},
	}
	opts.BaseList.HasModes = false
	if _, err := bundle.Seal(t.Context(), opts); !errors.Is(err, pathsafe.ErrTraversal) {
		t.Fatalf("a name with a backslash: %v", err)
	}
	opts.Exclude = []string{"odd*"}
	sealed, err := bundle.Seal(t.Context(), opts)
	must(t, err)
	if want := (bundle.Counts{Changed: 1}); sealed.Counts != want {
		t.Errorf("%+v, want %+v", sealed.Counts, want)
	}
	want := []bundle.LeftOut{{Why: "built", Paths: []string{"built"}}, {Why: "linked", Paths: []string{"links/in"}}}
	if !reflect.DeepEqual(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
}

// readChanges returns the changes of a run, in the words of modelOf.
func readChanges(t *rapid.T, run string, names map[string]string, carried int) string {
	raw, err := os.ReadFile(filepath.Join(run, bundle.ChangesFile))
	if err != nil {
		t.Fatal(err)
	}
	hashes, err := os.ReadFile(filepath.Join(run, bundle.OutputHashes))
	if err != nil {
		t.Fatal(err)
	}
	value, err := canonjson.Parse(hashes)
	if err != nil {
		t.Fatal(err)
	}
	object, _ := value.Object()
	member, _ := object.Get("hashes")
	outputs, _ := member.Object()
	paths := slices.Sorted(maps.Keys(maps.Collect(outputs.Members())))
	c, err := bundle.ParseChanges(raw, slices.Values(paths))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, path := range paths {
		was, exists := c.Base(path)
		switch {
		case carried > 0:
		case exists:
			lines = append(lines, fmt.Sprintf("%s from %s %v", path, names[hex.EncodeToString(was[:])], c.Executable(path)))
		default:
			lines = append(lines, fmt.Sprintf("%s new %v", path, c.Executable(path)))
		}
	}
	for _, path := range c.Removes() {
		was, _ := c.Base(path.String())
		lines = append(lines, path.String()+" removed from "+names[hex.EncodeToString(was[:])])
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func hexOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
