package fusemount

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"golang.org/x/sys/unix"
)

// dirVolumeSet is a volume set of the directories below "runs" of a directory. Files
// below "bend" make it behave badly, as long as they are there.
type dirVolumeSet struct{ dir string }

func (s dirVolumeSet) bent(how string) bool {
	_, err := os.Lstat(filepath.Join(s.dir, "bend", how))
	return err == nil
}

// slow waits until it is not bent that way any more.
func (s dirVolumeSet) slow(how string, done <-chan struct{}) bool {
	for s.bent(how) {
		select {
		case <-done:
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

func (s dirVolumeSet) Names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "runs"))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (s dirVolumeSet) Find(name string) fusefs.Volume {
	if _, err := os.Lstat(filepath.Join(s.dir, "runs", name)); err != nil || strings.HasPrefix(name, ".") {
		return nil
	}
	return dirVolume{s, name}
}

func (s dirVolumeSet) Latest(done <-chan struct{}) string {
	fmt.Println("latest")
	if !s.slow("latest.slow", done) {
		return ""
	}
	target, _ := os.ReadFile(filepath.Join(s.dir, "bend", "latest"))
	return string(target)
}

func (s dirVolumeSet) ModTime() time.Time { return time.Unix(1e9, 0) }

func (s dirVolumeSet) Perm() fs.FileMode { return 0o777 }

type dirVolume struct {
	volumeSet dirVolumeSet
	name      string
}

func (v dirVolume) Tree(done <-chan struct{}) (*fusefs.Tree, error) {
	fmt.Println("tree", v.name)
	if !v.volumeSet.slow(v.name+".slow", done) {
		return nil, errors.New("called off")
	}
	if v.volumeSet.bent(v.name + ".error") {
		return nil, errNoTree
	}
	if v.volumeSet.bent(v.name + ".panic") {
		panic("no tree")
	}
	files, err := describeAll(filepath.Join(v.volumeSet.dir, "runs", v.name), 0)
	for i := range files {
		files[i].Source = attributed{files[i].Source, someXAttrs}
	}
	if err != nil {
		return nil, err
	}
	return fusefs.NewTree(slices.Values(files), slices.Values([]fusefs.File{textFile("which", v.name)}))
}

func (v dirVolume) Spoiled() bool      { return v.volumeSet.bent(v.name + ".spoiled") }
func (v dirVolume) ModTime() time.Time { return time.Unix(2e9, 0) }

func (v dirVolume) Perm() fs.FileMode { return 0o777 }

// childVolumeSet serves a volume set until SIGTERM. On SIGUSR1 it prints how many contents of live
// files are still held.
func childVolumeSet(o orders) error {
	signals := make(chan os.Signal, 10)
	signal.Notify(signals, unix.SIGTERM, unix.SIGUSR1)
	var n, kept atomic.Int64
	live := fusefs.Live(func() []byte {
		data := copiesOf(n.Load())
		kept.Add(1)
		runtime.AddCleanup(&data[0], func(int) { kept.Add(-1) }, 0)
		return data
	})
	tree, err := fusefs.NewTree(
		slices.Values([]fusefs.File{{Path: "now", Mode: 0o444, Source: live}, textFile("top/file", "text")}),
		slices.Values([]fusefs.File{{Path: "live", Mode: 0o444, Source: live}, textFile("deep/status", "up")}))
	if err != nil {
		return err
	}
	before := runtime.NumGoroutine()
	v, err := mountWith(o.system(), tree, o.Mountpoint, Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), VolumeSet: dirVolumeSet{o.Source}})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	go changeOften(&n, stop)
	fmt.Println("ready", v.Path())
	for s := range signals {
		if s == unix.SIGTERM {
			break
		}
		runtime.GC()
		fmt.Println("holds", kept.Load(), n.Load())
	}
	close(stop)
	if err := v.Unmount(context.Background(), o.Grace); err != nil {
		return err
	}
	for range 10_000 { // they may take a moment to be gone
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if now := runtime.NumGoroutine(); now > before {
		return fmt.Errorf("%d goroutines, before %d", now, before)
	}
	fmt.Println("unmounted")
	return nil
}

// changeOften counts, thousands of times a second.
func changeOften(n *atomic.Int64, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Microsecond):
			n.Add(1)
		}
	}
}

// volumeSetView is a served volume set.
type volumeSetView struct {
	*child
	t   *testing.T
	src string
}

// serveVolumeSet serves a volume set with some volumes, each with a file "f" with the volume's name
// as content, and "d/big" of 64 blocks.
func serveVolumeSet(t *testing.T, names ...string) *volumeSetView {
	t.Helper()
	s := serveVolumeSetAs(t, orders{})
	for _, name := range names {
		s.put(name)
	}
	return s
}

// serveVolumeSetAs serves an empty volume set as ordered.
func serveVolumeSetAs(t *testing.T, o orders, env ...string) *volumeSetView {
	t.Helper()
	s := &volumeSetView{t: t, src: t.TempDir()}
	for _, dir := range []string{"runs", "bend"} {
		if err := os.Mkdir(filepath.Join(s.src, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o.Scenario, o.Source, o.Mountpoint = "volume set", s.src, mountDir(t)
	s.child = start(t, o, env...)
	s.mount = s.line("ready")
	return s
}

func (s *volumeSetView) put(name string) {
	s.t.Helper()
	dir := filepath.Join(s.src, "runs", name)
	big := strings.Repeat(fmt.Sprintf("%-64s", name), 64*testBlock/64)
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "d"), 0o755), os.WriteFile(filepath.Join(dir, "f"), []byte(name), 0o644),
		os.WriteFile(filepath.Join(dir, "d/big"), []byte(big), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

// bend makes the volume set behave badly, straighten well again.
func (s *volumeSetView) bend(how, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.src, "bend", how), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *volumeSetView) straighten(how string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.src, "bend", how)); err != nil {
		s.t.Fatal(err)
	}
}

// at is a path in the view.
func (s *volumeSetView) at(path string) string { return filepath.Join(s.mount, path) }

// reads requires the content of a file.
func (s *volumeSetView) reads(path, want string) {
	s.t.Helper()
	if got, err := os.ReadFile(s.at(path)); err != nil || string(got) != want {
		s.t.Errorf("%s: %q, %v, want %q", path, got, err, want)
	}
}

// end unmounts; nothing may be left.
func (s *volumeSetView) end() {
	s.t.Helper()
	signalAndExit(s.t, s.child, unix.SIGTERM)
}

// inode returns the inode number that stat shows, of a link itself.
func (s *volumeSetView) inode(path string) uint64 {
	s.t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(s.at(path), &st); err != nil {
		s.t.Fatal(path, err)
	}
	return st.Ino
}

// says waits for lines of stdout, in any order.
func (s *volumeSetView) says(lines ...string) {
	s.t.Helper()
	for len(lines) > 0 {
		got := s.line("")
		lines = slices.DeleteFunc(lines, func(want string) bool { return want == got })
	}
}

// checkInodes compares the numbers of a listing itself (ls shows others) with those of stat.
func (s *volumeSetView) checkInodes(dir string) {
	s.t.Helper()
	fd, err := unix.Open(s.at(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer unix.Close(fd)
	buf, listed := make([]byte, 4096), 0
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil {
			s.t.Fatal(err)
		}
		if n == 0 {
			break
		}
		for rest := buf[:n]; len(rest) > 0; rest = rest[binary.NativeEndian.Uint16(rest[16:]):] {
			name, _, _ := strings.Cut(string(rest[19:]), "\x00")
			if listed++; name == ".." && dir == "" {
				continue // that is outside
			}
			if got, want := binary.NativeEndian.Uint64(rest), s.inode(dir+"/"+name); got != want {
				s.t.Errorf("%s/%s: listed as %x, stat says %x", dir, name, got, want)
			}
		}
	}
	if listed <= 2 {
		s.t.Errorf("%q lists nothing", dir)
	}
}
