package snapshot

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// A counter counts calls of several goroutines.
type counter struct{ n atomic.Int64 }

func (c *counter) is(n int) bool { return c.n.Add(1) == int64(n) }

// TestVanishing: whatever goes away at whatever call of a take is left out and named, or
// was not seen at all; what is put in its place is kept. The rest is whole.
func TestVanishing(t *testing.T) {
	acts := map[string]func(t *testing.T, l *fixture){
		"file":      func(t *testing.T, l *fixture) { must(t, os.Remove(l.path("dir/f"))) },
		"directory": func(t *testing.T, l *fixture) { must(t, os.RemoveAll(l.path("dir/sub"))) },
		"link for file": func(t *testing.T, l *fixture) {
			must(t, os.Remove(l.path("dir/f")))
			must(t, os.Symlink("g", l.path("dir/f")))
		},
		"file for directory": func(t *testing.T, l *fixture) {
			must(t, os.RemoveAll(l.path("dir/sub")))
			writeFile(t, l.path("dir/sub"), "a file")
		},
		"directory for file": func(t *testing.T, l *fixture) {
			must(t, os.Remove(l.path("dir/f")))
			mkdir(t, l.path("dir/f"))
			writeFile(t, l.path("dir/f/new"), "new")
		},
		"link for directory": func(t *testing.T, l *fixture) {
			must(t, os.RemoveAll(l.path("dir/sub")))
			must(t, os.Symlink("..", l.path("dir/sub")))
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			named, memory, tried := 0, harness.OpenMemoryDir(t), sample.Every(t, 3)
			for i := 0; ; i++ {
				n := tried.At(i)
				l := makeFixture(t, mkdir(t, filepath.Join(memory, fmt.Sprint(n))))
				t.Cleanup(l.close)
				for _, dir := range []string{"dir", "dir/sub", "dir/sub/deep"} {
					mkdir(t, l.path(dir))
				}
				for _, file := range []string{"a", "dir/f", "dir/g", "dir/sub/h", "dir/sub/deep/i", "z"} {
					writeFile(t, l.path(file), file)
				}
				calls, acted := new(counter), false
				l.store.sysHook.Call = func(_, _ string, f func() error) error {
					if calls.is(n) {
						acted = true
						act(t, l)
					}
					return f()
				}
				snap, err := l.store.Take(t.Context(), l.request())
				l.store.sysHook.Call = nil
				if err != nil {
					t.Fatalf("before call %d: %v", n, err)
				}
				must(t, l.whole(snap))
				named += len(snap.LeftOut())
				if !acted {
					break
				}
			}
			if named == 0 && tried == sample.All && (name == "file" || name == "directory") {
				t.Error("nothing that went away was ever named")
			}
		})
	}
}

// whole is an error when a snapshot lacks what nothing was done to, or cannot be written.
func (l *fixture) whole(snap *Snapshot) error {
	var got []string
	for e := range snap.Entries() {
		got = append(got, e.Path)
	}
	for _, path := range []string{"", "a", "dir", "dir/g", "z"} {
		if !slices.Contains(got, path) {
			return fmt.Errorf("%q is not in %q", path, got)
		}
	}
	l.write(snap, "")
	l.sound()
	return nil
}

// TestVanishingInScope: a name that was asked for and goes away is absent, and not unknown.
func TestVanishingInScope(t *testing.T) {
	memory := harness.OpenMemoryDir(t)
	for n := 1; ; n++ {
		l := makeFixture(t, mkdir(t, filepath.Join(memory, fmt.Sprint(n))))
		t.Cleanup(l.close)
		mkdir(t, l.path("dir"))
		writeFile(t, l.path("dir/f"), "f")
		calls, acted := new(counter), false
		l.store.sysHook.Call = func(_, _ string, f func() error) error {
			if calls.is(n) {
				acted = true
				must(t, os.RemoveAll(l.path("dir")))
			}
			return f()
		}
		req := l.request("dir/f")
		req.Kind = PreAction
		snap, err := l.store.Take(t.Context(), req)
		l.store.sysHook.Call = nil
		must(t, err)
		e, err := snap.At(parse(t, "dir/f"))
		if err != nil || snap.Header().Names != 1 || e.Type != File && e.Type != Absent {
			t.Fatalf("before call %d: %v, %d names, %v", n, err, snap.Header().Names, e.Type)
		}
		l.sound()
		if !acted {
			return
		}
	}
}

// TestStorm: names that become other things at every call, again and again, end no take: what
// is there at no time for long is left out and named, or kept as it was once.
func TestStorm(t *testing.T) {
	memory, rand := harness.OpenMemoryDir(t), sample.Rand(t)
	for n := range sample.Of(24, 300, 3000) {
		l := makeFixture(t, mkdir(t, filepath.Join(memory, fmt.Sprint(n))))
		t.Cleanup(l.close)
		mkdir(t, l.path("dir"))
		for _, file := range []string{"a", "dir/g", "z"} {
			writeFile(t, l.path(file), file)
		}
		s := storm{rand: rand, at: l.path, often: []int{1, 2, 10}[n%3]}
		l.store.sysHook.Call = func(_, _ string, f func() error) error {
			s.blow(t)
			return f()
		}
		snap, err := l.store.Take(t.Context(), l.request())
		l.store.sysHook.Call = nil
		if err != nil {
			t.Errorf("storm %d: %v", n, err)
			continue
		}
		must(t, l.whole(snap))
	}
}

// A storm changes what stands at a few names.
type storm struct {
	mu    sync.Mutex
	rand  *rand.Rand
	at    func(string) string
	often int // one call of so many
	n     int
}

func (s *storm) blow(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rand.IntN(s.often) > 0 {
		return
	}
	names := []string{"b", "dir/f", "dir/sub", "dir/sub/deep", "dir/sub/deep/i", "y"}
	name := s.at(names[s.rand.IntN(len(names))])
	if in, err := os.Lstat(filepath.Dir(name)); err != nil || !in.IsDir() {
		return
	}
	must(t, os.RemoveAll(name))
	switch s.n++; s.rand.IntN(6) {
	case 0:
		writeFile(t, name, fmt.Sprint(s.n))
	case 1:
		mkdir(t, name)
	case 2:
		must(t, os.Symlink(fmt.Sprint(s.n), name))
	case 3:
		must(t, unix.Mkfifo(name, 0o600))
	case 4:
		mkdir(t, name)
		writeFile(t, filepath.Join(name, "deep"), fmt.Sprint(s.n))
	case 5: // it is gone
	}
}

// TestAnswersOfReplaced: whatever the kernel answers once for what is another thing by now
// ends no take, at no kind of call on any name in the root.
func TestAnswersOfReplaced(t *testing.T) {
	type call struct{ op, path string }
	memory, labs := harness.OpenMemoryDir(t), 0
	take := func(answer error, at call) (calls map[call]bool, err error) {
		labs++
		l := makeFixture(t, mkdir(t, filepath.Join(memory, fmt.Sprint(labs))))
		t.Cleanup(l.close)
		mkdir(t, l.path("dir"))
		writeFile(t, l.path("a"), "a")
		writeFile(t, l.path("dir/f"), "f")
		must(t, os.Symlink("a", l.path("link")))
		must(t, unix.Mkfifo(l.path("dir/fifo"), 0o600))
		var mu sync.Mutex
		calls = map[call]bool{}
		l.store.sysHook.Call = func(op, path string, f func() error) error {
			c := call{op, strings.TrimPrefix(path, l.root+"/")}
			mu.Lock()
			seen := calls[c]
			calls[c] = true
			mu.Unlock()
			if c == at && !seen {
				return answer
			}
			return f()
		}
		_, err = l.store.Take(t.Context(), l.request())
		l.store.sysHook.Call = nil
		l.sound()
		return calls, err
	}
	calls, err := take(nil, call{})
	must(t, err)
	tried := map[string]bool{}
	for c := range calls {
		if inRoot := []string{"a", "dir", "f", "fifo", "link"}; !slices.Contains(inRoot, c.path) || c.op == "close" {
			continue
		}
		tried[c.op] = true
		for _, errno := range []unix.Errno{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ESTALE} {
			if _, err := take(errno, c); err != nil {
				t.Errorf("%v as answer to %q of %q: %v", errno, c.op, c.path, err)
			}
		}
	}
	for _, op := range []string{"open", "open directory", "stat", "list", "read", "read link", "read attributes"} {
		if !tried[op] {
			t.Errorf("%q was never tried", op)
		}
	}
}
