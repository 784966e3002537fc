package attack

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestMappedContentIsNotLost: a process that has a file of a restore root mapped writes to it
// again and again, which changes no time while its page is dirty already: between two snapshots,
// and before any system call on that root of a third one. After that root was taken back to the
// first one, its newest content is in a snapshot, or the command has named the file.
func TestMappedContentIsNotLost(t *testing.T) {
	type on struct {
		harness.Format
		uid int
	}
	var all []on
	for _, f := range []harness.Format{harness.Ext4, harness.XFS, harness.Btrfs, harness.Tmpfs, {Name: "overlay"}} {
		all = append(all, on{f, 0}, on{f, ordinary})
	}
	needRoot(t)
	for _, o := range sample.Pick(t, 2, all) {
		t.Run(fmt.Sprintf("%s/%d", o.Name, o.uid), func(t *testing.T) { mappedContent(t, o.Format, o.uid) })
	}
}

func mappedContent(t *testing.T, format harness.Format, uid int) {
	top := open(t)
	p := &harness.Project{Dir: filepath.Join(top, "project"), State: filepath.Join(top, "state")}
	harness.Must(t, os.Mkdir(p.State, 0o700))
	root := filepath.Join(volumeOf(t, format), "root")
	harness.Must(t, os.Mkdir(root, 0o755))
	m := mapFile(t, filepath.Join(root, "f"))
	give(t, p, uid, root)
	first := m.take(t, p, nil, root)
	m.write()
	m.take(t, p, nil, root)
	m.write()
	stride := sample.Thin(t, 11, 6)
	acted := 0
	for i := 0; ; i++ {
		n, seen := stride.At(i), 0
		plan := sysfault.Plan{N: 1, Onward: true, Match: func(c sysfault.Call) bool { return harness.Inside(c.Path, root) }, Before: func(sysfault.Call) {
			if seen++; seen == n {
				m.write()
			}
		}}
		m.take(t, p, &plan, root)
		if seen < n {
			break
		}
		acted++
		r := p.Run(t, nil, "snapshot", "restore", "--json", first)
		if r.Status != 0 && strings.Contains(r.Stderr, "f\"") { // it is named, and nothing was displaced
			continue
		}
		if r.Status != 0 {
			t.Fatalf("written before call %d: %v", n, r)
		}
		if all := kept(t, p); !all[m.content()] {
			t.Fatalf("written before call %d: content %d is in no snapshot, but %v are", n, m.content(), all)
		}
		m.again(t)
	}
	if acted == 0 {
		t.Error("nothing was ever written meanwhile")
	}
}

// A mapped file is one whose first bytes are a number that its owner counts up through a
// mapping.
type mapped struct {
	path string
	page []byte
}

func mapFile(t *testing.T, path string) *mapped {
	t.Helper()
	m := &mapped{path: path}
	harness.Must(t, os.WriteFile(path, make([]byte, 4096), 0o644))
	m.open(t)
	t.Cleanup(func() { harness.Must(t, unix.Munmap(m.page)) })
	m.write()
	return m
}

func (m *mapped) open(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(m.path, os.O_RDWR, 0)
	harness.Must(t, err)
	defer f.Close()
	m.page, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	harness.Must(t, err)
}

// again maps the file that is there now: the previous one was replaced.
func (m *mapped) again(t *testing.T) {
	t.Helper()
	newest := m.content()
	harness.Must(t, unix.Munmap(m.page))
	m.open(t)
	binary.LittleEndian.PutUint32(m.page, newest)
	m.write()
}

func (m *mapped) content() uint32 { return binary.LittleEndian.Uint32(m.page) }

func (m *mapped) write() { binary.LittleEndian.PutUint32(m.page, m.content()+1) }

// take takes a snapshot, which has the content of then, or that of a write meanwhile, or names
// the file.
func (m *mapped) take(t *testing.T, p *harness.Project, plan *sysfault.Plan, root string) (id string) {
	t.Helper()
	before := m.content()
	r := p.Run(t, plan, "snapshot", "take", root)
	if r.Status != 0 {
		t.Fatal(r)
	}
	if all := kept(t, p); !all[before] && !all[m.content()] && !strings.Contains(r.Stderr, "written to while it was read") {
		t.Fatalf("content %d, then %d, is in no snapshot: %v", before, m.content(), r)
	}
	return strings.TrimSpace(strings.TrimPrefix(r.Stdout, "OK "))
}

// kept are the contents that the objects of snapshots have.
func kept(t *testing.T, p *harness.Project) map[uint32]bool {
	t.Helper()
	objects, err := filepath.Glob(filepath.Join(p.State, "snapshots/objects/*/*"))
	harness.Must(t, err)
	all := map[uint32]bool{}
	for _, path := range objects {
		raw, err := os.ReadFile(path)
		harness.Must(t, err)
		if len(raw) == 4096 {
			all[binary.LittleEndian.Uint32(raw)] = true
		}
	}
	return all
}

// volumeOf mounts a file system and lets every user in.
func volumeOf(t *testing.T, format harness.Format) string {
	t.Helper()
	dir := ""
	if format.Name == "overlay" {
		dir = harness.MountedOverlay(t)
	} else {
		dir = harness.MountedVolume(t, format).Path
	}
	harness.LetOthersIn(t, dir)
	return dir
}
