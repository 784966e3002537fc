package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// watch returns a count of the calls whose operation and path are these.
func (l *fixture) watch(op, path string) *int {
	n := new(int)
	var mu sync.Mutex
	l.store.sysHook.Call = func(gotOp, gotPath string, f func() error) error {
		mu.Lock()
		if gotOp == op && gotPath == path {
			*n++
		}
		mu.Unlock()
		return f()
	}
	return n
}

// What is unchanged is not read again, unless the clock may have missed a
// change; what has changed is, whatever its times say.
func TestUnreadAgain(t *testing.T) {
	l := newFixture(t)
	l.store.sysHook.everywhere = true
	writeFile(t, l.path("f"), "old")
	age()
	l.take()
	opened := l.watch("open", "f")
	l.take()
	if *opened != 0 {
		t.Errorf("an unchanged file was opened %d times", *opened)
	}

	info, err := os.Stat(l.path("f"))
	must(t, err)
	writeFile(t, l.path("f"), "new")
	must(t, os.Chtimes(l.path("f"), info.ModTime(), info.ModTime()))
	*opened = 0
	snap := l.take()
	if *opened != 1 {
		t.Errorf("a file with its time set back was opened %d times", *opened)
	}
	*opened = 0
	l.take()
	if *opened != 0 { // the take before has waited for the clock, and synced
		t.Errorf("a file that was changed right before a snapshot was opened %d times", *opened)
	}
	l.store.sysHook.everywhere = false
	*opened = 0
	l.take()
	l.take()
	if *opened != 2 && !l.tracked() {
		t.Errorf("in memory, an unchanged file was opened %d times by two takes", *opened)
	}
	content, err := os.ReadFile(l.write(snap, "f"))
	must(t, err)
	if string(content) != "new" {
		t.Errorf("content %q", content)
	}
}

func TestRacy(t *testing.T) {
	start := time.Unix(1_000_000, 500)
	for _, test := range []struct {
		changed time.Time
		want    bool
	}{
		{start.Add(-time.Second), false},
		{start.Add(-fineTick / 2), true},
		{start, true},
		{start.Add(time.Hour), true},
		{time.Unix(999_998, 0), true}, // whole seconds
		{time.Unix(999_990, 0), false},
	} {
		b := baseline{synced: start}
		if got := b.racy(&Entry{ChangeTime: test.changed}); got != test.want {
			t.Errorf("changed %v before: racy is %v", start.Sub(test.changed), got)
		}
	}
}

// A file that changes while it is read is read again; one that goes on is an
// error that names it.
func TestChangesMeanwhile(t *testing.T) {
	for _, times := range []int{1, 100} {
		l := newFixture(t)
		writeFile(t, l.path("f"), "content")
		n := 0
		l.store.sysHook.Call = func(op, path string, f func() error) error {
			err := f()
			if op == "read" && path == "f" && n < times {
				n++
				writeFile(t, l.path("f"), strings.Repeat("x", n))
			}
			return err
		}
		snap, err := l.store.Take(context.Background(), l.request())
		var changed *ChangedError
		switch {
		case times == 1 && err != nil:
			t.Error(err)
		case times > 1 && (!errors.As(err, &changed) || changed.Path != "f" || snap != nil):
			t.Errorf("error %v", err)
		}
		l.store.sysHook.Call = nil
		l.emptyIncoming()
	}
}

func TestRejected(t *testing.T) {
	for name, test := range map[string]struct {
		make func(t *testing.T, l *fixture) *Request
		want string
	}{
		"socket": {func(t *testing.T, l *fixture) *Request {
			must(t, unix.Mknod(l.path("sock"), unix.S_IFSOCK|0o600, 0))
			req := l.request("sock")
			return &req
		}, `"sock"`},
		"the store inside": {func(t *testing.T, l *fixture) *Request {
			req := l.request()
			req.Root, req.Dir = l.dir, openDir(t, l.dir)
			return &req
		}, `"state"`},
		"kind": {func(t *testing.T, l *fixture) *Request {
			req := l.request()
			req.Kind = "any"
			return &req
		}, "kind"},
		"relative root": {func(t *testing.T, l *fixture) *Request {
			req := l.request()
			req.Root = "root"
			return &req
		}, "absolute"},
		"long text": {func(t *testing.T, l *fixture) *Request {
			req := l.request()
			req.Reason = strings.Repeat("x", maxText+1)
			return &req
		}, "longer"},
		"empty scope": {func(t *testing.T, l *fixture) *Request {
			req := l.request()
			req.Scope = []pathsafe.Path{}
			return &req
		}, "scope"},
		"link that leaves": {func(t *testing.T, l *fixture) *Request {
			must(t, os.Symlink("../..", l.path("out")))
			req := l.request("out/x")
			return &req
		}, "leaves"},
		"mount": {func(t *testing.T, l *fixture) *Request {
			at := mkdir(t, l.path("mnt"))
			if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
				t.Skip("no mounts here")
			}
			t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
			req := l.request("mnt")
			return &req
		}, `"mnt"`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newFixture(t)
			req := test.make(t, l)
			snap, err := l.store.Take(context.Background(), *req)
			if err == nil || snap != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			l.emptyIncoming()
			if all, err := l.store.List(""); err != nil || len(all) > 0 {
				t.Errorf("%d snapshots, %v", len(all), err)
			}
		})
	}
}

// TestNotHeld: in a whole root a socket, a device and a mount are named, and what is
// written of it is without them.
func TestNotHeld(t *testing.T) {
	l := newFixture(t)
	l.populate()
	wanted := map[string]Type{"dir/sock": Special}
	must(t, unix.Mknod(l.path("dir/sock"), unix.S_IFSOCK|0o600, 0))
	must(t, os.Link(l.path("dir/sock"), l.path("again")))
	wanted["again"] = Special
	if os.Geteuid() == 0 {
		must(t, unix.Mknod(l.path("null"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		at := mkdir(t, l.path("dir/mnt"))
		must(t, unix.Mount("none", at, "tmpfs", 0, ""))
		defer func() { must(t, unix.Unmount(at, 0)) }()
		writeFile(t, filepath.Join(at, "theirs"), "")
		wanted["null"], wanted["dir/mnt"] = Special, Mount
	}
	snap := l.take()
	found, err := l.store.Find(snap.ID())
	must(t, err)
	for path, is := range wanted {
		if e, err := found.At(parse(t, path)); err != nil || e.Type != is {
			t.Errorf("%q is %q, %v", path, e.Type, err)
		}
		if err := l.store.Write(t.Context(), found, parse(t, path), openDir(t, l.dir), "one"); !errors.Is(err, ErrRefused) {
			t.Errorf("%q is written: %v", path, err)
		}
	}
	if e, err := found.At(parse(t, "dir/mnt/theirs")); wanted["dir/mnt"] != "" && !errors.Is(err, ErrNotCovered) {
		t.Errorf("in the mount: %v, %v", e.Type, err)
	}
	made := look(t, l.write(found, ""))
	for path := range wanted {
		if _, there := made[path]; there {
			t.Errorf("%q was made", path)
		}
	}
	if _, there := made["dir/one"]; !there {
		t.Errorf("made %v", made)
	}
}

// A scope has its names whole, what is absent, and what stands on the way.
func TestScope(t *testing.T) {
	l := newFixture(t)
	l.populate()
	mkdir(t, l.path("other"))
	must(t, os.Symlink("dir", l.path("alias")))
	snap := l.take("dir/one", "dir/new/deep", "alias/two", "file/below", "other", "other/x")
	var got []string
	for e := range snap.Entries() {
		got = append(got, fmt.Sprintf("%s %s %v", e.Path, e.Type, e.Asked))
	}
	want := []string{" dir false", "alias link false", "dir dir false", "dir/new absent false", "dir/new/deep absent true",
		"dir/one file true", "dir/two file true", "file file false", "file/below absent true", "other dir true", "other/x absent true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	found, err := l.store.Find(snap.ID())
	must(t, err)
	if diff := cmp.Diff(snap.Header(), found.Header()); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]Type{
		"": Dir, "dir": Dir, "dir/one": File, "alias/one": File, "alias/new/deep/er": Absent, "dir/new": Absent, "file/below": Absent,
		"dir/two/x": Absent, "other/x": Absent, "other/y": Absent, "dir/empty": "", "hard": "", "nowhere": "",
	} {
		e, err := found.At(parse(t, path))
		if e.Type != want || (want == "") != errors.Is(err, ErrNotCovered) {
			t.Errorf("at %q: %q, %v", path, e.Type, err)
		}
	}
	for path, want := range map[string]error{"": ErrNotCovered, "dir": ErrNotCovered, "dir/new": fs.ErrNotExist, "dir/one": nil} {
		err := l.store.Write(context.Background(), found, parse(t, path), openDir(t, l.dir), "w"+filepath.Base(path))
		if !errors.Is(err, want) {
			t.Errorf("write %q: %v, want %v", path, err, want)
		}
	}
}

func TestPrune(t *testing.T) {
	l := newFixture(t)
	var taken []*Snapshot
	for i := range 5 {
		writeFile(t, l.path("f"), strings.Repeat("x", i+1))
		taken = append(taken, l.take())
	}
	ctx := context.Background()
	for _, policy := range []Policy{{}, {KeepLast: -1}, {KeepWithin: -1}} {
		if _, err := l.store.Prune(ctx, policy, nil); err == nil {
			t.Errorf("%+v: no error", policy)
		}
	}
	inUse := func(h Header) string {
		if h.ID == taken[0].ID() {
			return "a commit refers to it"
		}
		return ""
	}
	dry, err := l.store.Prune(ctx, Policy{KeepLast: 2, DryRun: true}, inUse)
	must(t, err)
	if len(l.sound()) != 5 {
		t.Error("a dry run has removed something")
	}
	done, err := l.store.Prune(ctx, Policy{KeepLast: 2}, inUse)
	must(t, err)
	if diff := cmp.Diff(dry, done); diff != "" {
		t.Error(diff)
	}
	if len(done.Gone) != 2 || done.Objects != 2 || done.Bytes != 2+3 || len(done.Kept) != 3 || done.Kept[0].Why != "a commit refers to it" {
		t.Errorf("%+v", done)
	}
	later := time.Now().Add(time.Hour)
	done, err = l.store.Prune(ctx, Policy{KeepWithin: time.Minute, Now: later, Root: "/elsewhere"}, nil)
	must(t, err)
	if len(done.Gone) != 0 {
		t.Errorf("%+v", done)
	}
	done, err = l.store.Prune(ctx, Policy{KeepWithin: time.Minute, Now: later}, nil)
	must(t, err)
	if len(done.Gone) != 2 || len(l.sound()) != 1 {
		t.Errorf("%+v", done)
	}
}

// takeAs takes a snapshot of this kind.
func (l *fixture) takeAs(kind Kind, scope ...string) *Snapshot {
	l.t.Helper()
	req := l.request(scope...)
	req.Kind = kind
	snap, err := l.store.Take(context.Background(), req)
	must(l.t, err)
	return snap
}

// TestPruneKeepsRollbacks: the snapshots of a person or a timer, those before an action
// and those of a part are counted apart, and the newest whole one that verifies stays,
// whatever is newer and whatever the policy says.
func TestPruneKeepsRollbacks(t *testing.T) {
	ctx, later := context.Background(), time.Now().Add(time.Hour)
	for _, policy := range []Policy{{KeepLast: 1}, {KeepWithin: time.Minute, Now: later}} {
		l := newFixture(t)
		writeFile(t, l.path("f"), "oldest")
		l.takeAs(Manual)
		writeFile(t, l.path("f"), "good")
		good := l.takeAs(Scheduled)
		writeFile(t, l.path("f"), "bad")
		newest := l.takeAs(Manual)
		for range 3 {
			l.takeAs(PreAction)
			l.takeAs(PreAction, "f")
		}
		done, err := l.store.Prune(ctx, policy, nil)
		must(t, err)
		kept := func(done Pruned) (ids []string) {
			for _, k := range done.Kept {
				ids = append(ids, k.Header.ID)
			}
			return ids
		}
		if ids := kept(done); !slices.Contains(ids, newest.ID()) || slices.Contains(ids, good.ID()) {
			t.Errorf("%+v keeps %+v", policy, done.Kept)
		}
		if want := map[bool]int{true: 3, false: 2}[policy.KeepLast > 0]; len(done.Kept) != want {
			t.Errorf("%+v keeps %+v, want one of each kind", policy, done.Kept)
		}

		l = newFixture(t)
		writeFile(t, l.path("f"), "good")
		good = l.takeAs(Scheduled)
		writeFile(t, l.path("f"), "bad")
		newest = l.takeAs(Manual)
		l.takeAs(PreAction, "f")
		lost, err := newest.At(parse(t, "f"))
		must(t, err)
		must(t, os.Remove(l.storePath(lost.Digest.path())))
		done, err = l.store.Prune(ctx, policy, nil)
		must(t, err)
		if ids := kept(done); !slices.Contains(ids, good.ID()) {
			t.Errorf("%+v, the newest damaged: keeps %+v", policy, done.Kept)
		}
		damaged, err := l.store.Verify(ctx, good)
		if err != nil || len(damaged) > 0 {
			t.Errorf("%v, %v", damaged, err)
		}
	}
}

// TestDamageBeside: an entry that is not a snapshot, or a damaged one, hides none of the others.
func TestDamageBeside(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("f"), "one")
	first := l.take()
	path := l.manifest()
	writeFile(t, l.path("f"), "two")
	second := l.take()
	in := filepath.Dir(path)
	for what, do := range map[string]func(){
		"empty manifest":   func() { replace(t, path, nil) },
		"stray manifest":   func() { writeFile(t, filepath.Join(in, "stray"), "") },
		"stray directory":  func() { mkdir(t, filepath.Join(in, "dir")) },
		"stray place":      func() { mkdir(t, l.storePath(rootsName, "stray")) },
		"file for a place": func() { writeFile(t, l.storePath(rootsName, strings.Repeat("0", 64)), "") },
	} {
		do()
		if _, err := l.store.Find(second.ID()[:8]); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		all, damaged, err := l.store.Survey("")
		if err != nil || len(damaged) == 0 || !slices.ContainsFunc(all, func(h Header) bool { return h.ID == second.ID() }) {
			t.Errorf("%s: %v, %v, %v", what, all, damaged, err)
		}
		if _, err := l.store.List(""); err == nil {
			t.Errorf("%s: no error where all are wanted", what)
		}
	}
	if _, err := l.store.Find(first.ID()); err == nil {
		t.Error("a damaged one is found")
	}
	all, damaged, err := l.store.Survey(l.root)
	if err != nil || len(all) != 1 || len(damaged) != 3 {
		t.Errorf("%v, %v, %v", all, damaged, err)
	}
}

// What a killed take has left goes with the next one, but never what a living
// one is at.
func TestSweep(t *testing.T) {
	l := newFixture(t)
	left := mkdir(t, l.storePath(incomingName, "left"))
	writeFile(t, filepath.Join(left, "x"), "x")
	living, err := l.store.share(context.Background())
	must(t, err)
	l.take()
	if _, err := os.Stat(left); err != nil {
		t.Error("removed beside a living one:", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.store.Prune(ctx, Policy{KeepLast: 1}, nil); !errors.Is(err, context.Canceled) {
		t.Error("prune beside a living one:", err)
	}
	living.Close()
	l.take()
	l.emptyIncoming()
}

// Of many files those are taken over that are still the same, however the names
// around them change; and what is missing in the store is brought again.
func TestManyUnread(t *testing.T) {
	l := newFixture(t)
	l.store.sysHook.everywhere = true
	for i := range fewObjects + 100 {
		if i < 50 {
			mkdir(t, l.path(fmt.Sprintf("%02d", i)))
		}
		writeFile(t, l.path(fmt.Sprintf("%02d/%04d", i%50, i)), fmt.Sprint(i))
	}
	age()
	first := l.take()
	lost, err := first.At(parse(t, "07/0007"))
	must(t, err)
	must(t, os.Remove(l.storePath(lost.Digest.path())))
	must(t, os.Rename(l.path("03/0003"), l.path("03/0003-moved")))
	must(t, os.Rename(l.path("04"), l.path("04-moved")))
	must(t, os.Remove(l.path("05/0005")))
	writeFile(t, l.path("06/0005"), "new")
	mkdir(t, mkdir(t, l.path("05/0005"))+"/0006")

	var mu sync.Mutex
	opened := map[string]bool{}
	l.store.sysHook.Call = func(op, path string, f func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "open" && len(path) < 20 {
			opened[path] = true
		}
		return f()
	}
	second := l.take()
	l.store.sysHook.Call = nil
	want := map[string]bool{"0003-moved": true, "0005": true, "0007": true}
	for i := 4; i < fewObjects+100; i += 50 {
		want[fmt.Sprintf("%04d", i)] = true // the path of its directory is another
	}
	if diff := cmp.Diff(want, opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	same(t, look(t, l.root), look(t, l.write(second, "")))
	l.sound()
}
