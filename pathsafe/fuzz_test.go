package pathsafe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzOpen makes a tree of files, directories, FIFOs and links, one a line as for plant, and opens
// a path in it: both walkers reach the inode, or return the reason, of a walk over the lines in
// memory.
func FuzzOpen(f *testing.F) {
	const tree = "f\nd/f\nd/e/f\np|\nempty/\n"
	for _, seed := range [][2]string{
		{"f", ""}, {"d/e/f", ""}, {"d", ""}, {"p", ""}, {"empty/x", ""}, {"f/x", ""}, {"p/x", ""}, {"nowhere", ""}, {strings.Repeat("n", 256), ""},
		{"l/f", "l -> d"}, {"d/l", "d/l -> ../f"}, {"l", "l -> ../root/f"}, {"l", "l -> ../outside"}, {"l", "l -> ../root2/f"}, {"l", "l -> /etc/passwd"},
		{"l/l", "l -> ."}, {"l/n", "l -> d/../d//."}, {"l", "l -> l"}, {"l", "l -> f/.."}, {"l", "l -> f/"}, {"l", "l -> f/."}, {"l", "l -> p"},
		{"l", "l -> /proc/self/cwd/f"}, {"l/x", "l -> nowhere"}, {"l", "l -> d/.."}, {"l/f", "l -> d/../../root/d"}, {"l", "l -> .."}, {"d/l/f", "d/l -> .."},
		{"a/f", "a -> b\nb -> c\nc -> d/e/.././e"}, {"a", "a -> b\nb -> a"}, {"d/l/l/l/f", "d/l -> ../d"}, {"l", "l -> " + strings.Repeat("n", 256)},
		{"l40", links(40)}, {"l41", links(41)}, {"l/x", "l -> " + strings.Repeat("d/../", 800) + "d"}, {"d/..f", "d/..f"}, {"... /f", "... /f"},
	} {
		f.Add(seed[0], tree+seed[1])
	}
	f.Fuzz(func(t *testing.T, path, lines string) {
		p, err := Parse(path)
		if err != nil {
			return
		}
		m := grow(t, lines)
		checkAgree(t, m.root, p)
		for _, w := range walkers {
			m.check(t, openDir(t, m.root, w.w), p)
		}
	})
}

// links is a row of so many links that ends in a file.
func links(n int) string {
	var lines strings.Builder
	before := "f"
	for i := range n {
		name := "l" + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10))
		lines.WriteString(name + " -> " + before + "\n")
		before = name
	}
	return lines.String()
}

// A model is a tree in memory, and on the disk.
type model struct {
	root string
	all  map[string]string // by path: "file", "fifo", "dir", or "-> " and the target of a link
}

// grow makes the tree that the lines describe, as far as possible, and files outside of it that
// must not be reached.
func grow(t *testing.T, lines string) *model {
	t.Helper()
	dir := t.TempDir()
	m := &model{root: filepath.Join(dir, "root"), all: map[string]string{"": "dir"}}
	plant(t, dir, "root/", "outside", "root2/f", "f")
	for i, line := range strings.Split(lines, "\n") {
		if i == 50 {
			break
		}
		name, target, isLink := strings.Cut(line, " -> ")
		switch bare := strings.TrimRight(name, "/|"); {
		case isLink:
			m.add(t, name, "-> "+target)
		case strings.HasSuffix(name, "/"):
			m.add(t, bare, "dir")
		case strings.HasSuffix(name, "|"):
			m.add(t, bare, "fifo")
		default:
			m.add(t, name, "file")
		}
	}
	return m
}

// add adds one entry with its parents, if its name is plain and neither it nor a file above it
// exists.
func (m *model) add(t *testing.T, name, what string) {
	t.Helper()
	up, _, nested := cutLast(name)
	if nested && up == "" {
		return // absolute
	}
	if nested && m.all[up] == "" {
		m.add(t, up, "dir")
	}
	if m.all[up] != "dir" || m.all[name] != "" {
		return
	}
	base := strings.TrimPrefix(strings.TrimPrefix(name, up), "/")
	if base == "" || base == "." || base == ".." || len(base) > 255 || len(m.root)+len(name) > 4000 || strings.Contains(name+what, "\x00") {
		return
	}
	full := filepath.Join(m.root, name)
	switch {
	case what == "dir":
		must(t, os.Mkdir(full, 0o755))
	case what == "fifo":
		must(t, unix.Mkfifo(full, 0o644))
	case what == "file":
		must(t, os.WriteFile(full, []byte("content of "+name), 0o644))
	case len(what) == len("-> ") || len(what) > 4000:
		return // no link can hold that
	default:
		must(t, os.Symlink(what[len("-> "):], full))
	}
	m.all[name] = what
}

func cutLast(name string) (up, base string, nested bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", name, false
	}
	return name[:i], name[i+1:], true
}

// resolve walks in memory. It returns the path that was reached, or the reason why there is none.
func (m *model) resolve(path string, links Links) (at, why string) {
	if len(path) > 4095 {
		return "", "too long"
	}
	todo := strings.Split(path, "/")
	for _, name := range todo {
		if len(name) > 255 {
			return "", "too long" // is reported before anything is looked at
		}
	}
	for followed := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		next := strings.TrimPrefix(at+"/"+name, "/")
		what := m.all[next]
		switch {
		case m.all[at] != "dir":
			return "", "missing"
		case name == "" || name == ".":
			continue
		case name == ".." && at == "":
			return "", "escape"
		case name == "..":
			at, _, _ = cutLast(at)
			continue
		case len(name) > 255:
			return "", "too long"
		case what == "":
			return "", "missing"
		case !strings.HasPrefix(what, "-> "):
			at = next
			continue
		case links == NoLinks:
			return "", "symlink"
		}
		if followed++; followed > 40 || what[len("-> ")] == '/' {
			return "", "escape"
		}
		todo = append(strings.Split(what[len("-> "):], "/"), todo...)
	}
	return at, "ok"
}

// check opens and describes a path, and compares the results with the model.
func (m *model) check(t *testing.T, d *Dir, p Path) {
	t.Helper()
	for _, links := range []Links{NoLinks, LinksBeneath} {
		at, want := m.resolve(p.String(), links)
		st, err := d.StatPath(p, links)
		if reason(err) != want || want == "ok" && st.ID.Ino != inode(t, filepath.Join(m.root, at)) {
			t.Errorf("%q with links %v: %v, inode %d; want %s, %q", p, links, err, st.ID.Ino, want, at)
		}
		if want == "ok" && m.all[at] != "file" {
			want = "not regular"
		}
		f, _, err := d.OpenRegular(p, links)
		if reason(err) != want {
			t.Errorf("%q with links %v: %v, want %s", p, links, err, want)
		}
		if err != nil {
			continue
		}
		if content := readAll(t, f); content != "content of "+at {
			t.Errorf("%q with links %v holds %q, want that of %q", p, links, content, at)
		}
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Ino
}
