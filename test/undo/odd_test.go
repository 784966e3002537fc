package undo

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// A user runs the program: root, or one without rights.
type user struct {
	name string
	id   int
	run  func(t *testing.T, args ...string) harness.Reply
}

func usersOf(p *harness.Project) []user {
	asRoot := func(t *testing.T, args ...string) harness.Reply { t.Helper(); return p.Run(t, nil, args...) }
	asNobody := func(t *testing.T, args ...string) harness.Reply { t.Helper(); return p.RunAsNobody(t, args...) }
	return []user{{"root", 0, asRoot}, {"nobody", harness.Nobody, asNobody}}
}

// onEveryVolume runs a test for each kind of file system and each user, in a root of his own.
func onEveryVolume(t *testing.T, do func(t *testing.T, u user, root string)) {
	if os.Geteuid() != 0 {
		t.Skip("other users need root")
	}
	type trial struct {
		format harness.Format
		user   int
	}
	var all []trial
	for _, format := range kindsOfVolumes() {
		all = append(all, trial{format, 0}, trial{format, 1})
	}
	for _, at := range sample.Pick(t, 4, all) {
		t.Run(at.format.Name+" as "+usersOf(nil)[at.user].name, func(t *testing.T) {
			volume := harness.MountedVolume(t, at.format).Path
			harness.LetOthersIn(t, volume)
			dir := filepath.Join(volume, "own")
			own := *project(t)
			own.State, own.Dir = filepath.Join(dir, "state"), filepath.Join(harness.MemoryDir(t), "project")
			harness.LetOthersIn(t, filepath.Dir(own.Dir))
			u, root := usersOf(&own)[at.user], filepath.Join(dir, "root")
			harness.Must(t, os.MkdirAll(own.State, 0o700))
			harness.Must(t, os.Mkdir(root, 0o755))
			for _, d := range []string{dir, own.State, root} {
				harness.Must(t, os.Chown(d, u.id, u.id))
			}
			do(t, u, root)
		})
	}
}

// write makes a file of a user, and the directories on the way to it.
func (u user) write(t *testing.T, path, text string) {
	t.Helper()
	var made []string
	for up := filepath.Dir(path); ; up = filepath.Dir(up) {
		if _, err := os.Lstat(up); err == nil {
			break
		}
		made = append(made, up)
	}
	harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	harness.Must(t, os.WriteFile(path, []byte(text), 0o644))
	for _, own := range append(made, path) {
		harness.Must(t, os.Lchown(own, u.id, u.id))
	}
}

// must runs a command that must succeed, and reads its answer.
func (u user) must(t *testing.T, into any, args ...string) harness.Reply {
	t.Helper()
	r := u.run(t, args...)
	if r.Status != 0 {
		t.Fatalf("%v", r)
	}
	if into != nil {
		harness.Must(t, json.Unmarshal([]byte(r.Stdout), into))
	}
	return r
}

// inPart is must for an undo operation that has to leave files that this user may not read.
func (u user) inPart(t *testing.T, into any, args ...string) harness.Reply {
	t.Helper()
	r := u.run(t, args...)
	if r.Status != 1 || r.Answer.Code != "ROLLBACK_INCOMPLETE" {
		t.Fatalf("%v", r)
	}
	harness.Must(t, json.Unmarshal([]byte(r.Stdout), &struct{ Details any }{into}))
	return r
}

// deep makes a tree with paths of more than 4,096 bytes below a directory, and returns the first
// directory from which on that is so, less the path of the root.
func deep(t *testing.T, u user, root, name string) string {
	t.Helper()
	at, err := unix.Open(filepath.Join(root), unix.O_PATH|unix.O_DIRECTORY, 0)
	harness.Must(t, err)
	path, first := "", ""
	for i := range 26 {
		part := strings.Repeat(string(rune('a'+i)), 200)
		if i == 0 {
			part = name
		}
		if first == "" && len(filepath.Join(path, part)) > 4096 {
			first = path
		}
		path = filepath.Join(path, part)
		harness.Must(t, unix.Mkdirat(at, part, 0o755))
		harness.Must(t, unix.Fchownat(at, part, u.id, u.id, 0))
		next, err := unix.Openat(at, part, unix.O_PATH|unix.O_DIRECTORY, 0)
		harness.Must(t, err)
		harness.Must(t, unix.Close(at))
		at = next
	}
	harness.Must(t, unix.Close(at))
	t.Cleanup(func() { harness.Must(t, os.RemoveAll(filepath.Join(root, name))) })
	return first
}

// leftOf are the names that an undo operation has left as they were, and why.
type leftOf struct {
	Target   string
	Left     []struct{ Path, Why string }
	NotKept  []string `json:"not_kept"`
	Snapshot string
	ID       string
	Unread   int
}

func (l leftOf) paths() []string {
	var all []string
	for _, one := range l.Left {
		all = append(all, one.Path)
	}
	return all
}

// TestOddNames: what no snapshot can hold stops neither the taking of one nor an undo operation.
// It is named, it stays as it is, and all the rest comes back.
func TestOddNames(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		at := func(name string) string { return filepath.Join(root, name) }
		mine := map[string]string{"top": "top\n", "dir/one": "one\n", "dir/sub/two": "two\n", "over": "over\n"}
		for name, text := range mine {
			u.write(t, at(name), text)
		}
		u.write(t, at(".spectrum06_notes"), "theirs\n")
		u.write(t, at(".spectrum06_staging_mine/x"), "theirs\n")
		odd := []string{".spectrum06_notes", ".spectrum06_staging_mine", "dir/sock"}
		harness.Must(t, harness.Socket(at("dir/sock")))
		harness.Must(t, harness.FIFO(at("fifo")))
		odd = append(odd, deep(t, u, root, "deep"))
		if harness.Device(unix.S_IFCHR, 1, 3)(at("dev")) == nil {
			odd = append(odd, "dev")
		}
		harness.Must(t, os.Mkdir(at("mnt"), 0o755))
		harness.Must(t, unix.Mount("none", at("mnt"), "tmpfs", 0, ""))
		t.Cleanup(func() { harness.Must(t, unix.Unmount(at("mnt"), unix.MNT_DETACH)) })
		harness.Must(t, os.WriteFile(at("mnt/theirs"), []byte("theirs\n"), 0o644))
		odd = append(odd, "mnt")
		slices.Sort(odd)

		var taken leftOf
		u.must(t, &taken, "snapshot", "take", "--json", root)
		slices.Sort(taken.NotKept)
		if !slices.Equal(taken.NotKept, odd) || taken.Unread != 0 {
			t.Fatalf("not kept: %q, want %q", taken.NotKept, odd)
		}
		u.write(t, at("top"), "other, longer\n")
		u.write(t, at("came/since"), "since\n")
		harness.Must(t, harness.Socket(at("came/sock")))
		harness.Must(t, os.Remove(at("over")))
		harness.Must(t, harness.Socket(at("over"))) // where a file was
		harness.Must(t, os.RemoveAll(at("dir/sub")))
		u.write(t, at(".spectrum06_later"), "theirs\n")
		inodes := inodesOf(t, root, append(odd, "came/sock", "over", ".spectrum06_later"))

		for _, args := range [][]string{
			{"rollback", "--emergency", "--json", "--dry-run", root}, {"rollback", "--emergency", "--json", root},
			{"rollback", "--emergency", "--json", root}, {"snapshot", "restore", "--json", taken.ID},
		} {
			var done leftOf
			u.must(t, &done, args...)
			want := []string{".spectrum06_later", "came", "came/sock", "over"}
			if !slices.Equal(done.paths(), want) {
				t.Errorf("%q leaves %q, want %q", args, done.paths(), want)
			}
			if now := inodesOf(t, root, slices.Collect(maps.Keys(inodes))); !maps.Equal(now, inodes) {
				t.Fatalf("%q: what was odd is %v, was %v", args, now, inodes)
			}
			if slices.Contains(args, "--dry-run") {
				continue
			}
			for name, text := range mine {
				if is, err := os.ReadFile(at(name)); name != "over" && (err != nil || string(is) != text) {
					t.Errorf("%q: %q is %q, %v", args, name, is, err)
				}
			}
			if _, err := os.Lstat(at("came/since")); err == nil {
				t.Errorf("%q: what came since is there", args)
			}
		}

		u.write(t, at("dir/one"), "other, longer\n") // and of one directory alone
		harness.Must(t, harness.Socket(at("dir/late")))
		var done leftOf
		u.must(t, &done, "snapshot", "restore", "--json", taken.ID, "dir")
		if is, err := os.ReadFile(at("dir/one")); err != nil || string(is) != "one\n" || !slices.Equal(done.paths(), []string{"dir/late"}) {
			t.Errorf("%q, %v; it has left %q", is, err, done.paths())
		}
	})
}

func inodesOf(t *testing.T, root string, names []string) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	for _, name := range names {
		var st unix.Stat_t
		if len(name) > 3000 {
			continue
		}
		harness.Must(t, unix.Lstat(filepath.Join(root, name), &st))
		all[name] = st.Ino
	}
	return all
}

// TestNamesOfOthers: for an ordinary user what he may not read makes a snapshot a partial one,
// which an emergency does not go back to but names; what belongs to others stays as it is and is
// named; his own files come back. Root reads all, and brings back all.
func TestNamesOfOthers(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		at := func(name string) string { return filepath.Join(root, name) }
		root0 := user{id: 0}
		u.write(t, at("mine"), "mine\n")
		u.write(t, at("dir/mine"), "mine\n")
		root0.write(t, at("dir/theirs"), "theirs\n")
		root0.write(t, at("theirs"), "theirs\n")
		root0.write(t, at("gone"), "gone\n")
		root0.write(t, at("closed/theirs"), "theirs\n")
		u.write(t, at("secret"), "secret\n")
		u.write(t, at("barred/x"), "x\n")
		change := func() {
			u.write(t, at("mine"), "other, longer\n")
			harness.Must(t, os.RemoveAll(at("dir")))
			root0.write(t, at("theirs"), "other, longer\n")
			harness.Must(t, os.RemoveAll(at("gone")))
			root0.write(t, at("closed/theirs"), "other, longer\n")
			root0.write(t, at("closed/since"), "since\n")
			u.write(t, at("since"), "since\n")
		}
		isOwn := u.id != 0
		var whole, partial, done leftOf
		u.must(t, &whole, "snapshot", "take", "--json", root)
		harness.Must(t, os.Chmod(at("secret"), 0))
		harness.Must(t, os.Chmod(at("barred"), 0))
		r := u.must(t, &partial, "snapshot", "take", "--json", root)
		if isOwn && (!slices.Equal(partial.NotKept, []string{"barred", "secret"}) || partial.Unread != 2) || !isOwn && partial.Unread != 0 {
			t.Fatalf("a partial one: %v", r)
		}
		change()
		if isOwn {
			r = u.inPart(t, &done, "rollback", "--emergency", "--json", root)
		} else {
			u.must(t, &done, "rollback", "--emergency", "--json", root)
		}
		want := []string{"barred", "closed/since", "closed/theirs", "dir/theirs", "gone", "secret", "theirs"}
		if target := partial.ID; !isOwn && (done.Target != target || len(done.Left) > 0) {
			t.Errorf("as root it has left %q, and gone to %s, not %s", done.paths(), done.Target, target)
		}
		if isOwn && (done.Target != whole.ID || !slices.Equal(done.paths(), want)) {
			t.Errorf("it has left %q, want %q; %v", done.paths(), want, r)
		}
		for name, text := range map[string]string{"mine": "mine\n", "dir/mine": "mine\n"} {
			if is, err := os.ReadFile(at(name)); err != nil || string(is) != text {
				t.Errorf("%q is %q, %v", name, is, err)
			}
		}
		if _, err := os.Lstat(at("since")); err == nil {
			t.Error("what came since is there")
		}
		if is, err := os.ReadFile(at("theirs")); err != nil || (string(is) == "theirs\n") == isOwn {
			t.Errorf("what belongs to others is %q, %v", is, err)
		}
		if !isOwn {
			return
		}
		change()
		u.must(t, nil, "snapshot", "restore", "--json", partial.ID)
		if is, err := os.ReadFile(at("mine")); err != nil || string(is) != "mine\n" {
			t.Errorf("by the partial one it is %q, %v", is, err)
		}
	})
}

// TestTimeInGroupOfOthers: a directory of the user's own whose group is not one of his has its time
// and its mode back, like any other: its owner may set them.
func TestTimeInGroupOfOthers(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		dir := filepath.Join(root, "dir")
		u.write(t, filepath.Join(dir, "f"), "f\n")
		harness.Must(t, os.Chown(dir, int(u.id), 4242))
		when := time.Unix(1_400_000_000, 123)
		harness.Must(t, os.Chtimes(dir, when, when))
		u.must(t, nil, "snapshot", "take", "--json", root)
		before, err := os.Stat(dir)
		harness.Must(t, err)
		u.write(t, filepath.Join(dir, "since"), "since\n")
		harness.Must(t, os.Chmod(dir, 0o700))
		var done leftOf
		r := u.must(t, &done, "rollback", "--emergency", "--json", root)
		info, err := os.Stat(dir)
		harness.Must(t, err)
		if !info.ModTime().Equal(when) || info.Mode() != before.Mode() || len(done.Left) > 0 {
			t.Errorf("%v, %v", info.ModTime(), r)
		}
	})
}

// TestOnlyPartial: where all snapshots are partial ones, an emergency names the newest of them
// with the command that goes back to it.
func TestOnlyPartial(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		if u.id == 0 {
			t.Skip("root reads everything")
		}
		u.write(t, filepath.Join(root, "f"), "f\n")
		u.write(t, filepath.Join(root, "secret"), "secret\n")
		harness.Must(t, os.Chmod(filepath.Join(root, "secret"), 0))
		var partial leftOf
		u.must(t, &partial, "snapshot", "take", "--json", root)
		u.write(t, filepath.Join(root, "f"), "other, longer\n")
		r := u.run(t, "rollback", "--emergency", root)
		if r.Status != 1 || !strings.Contains(r.Stderr, fmt.Sprintf("snapshot restore %s\"", partial.ID[:8])) {
			t.Fatal(r)
		}
		u.must(t, nil, "snapshot", "prune", "--keep-within", "1ns", root)
		u.must(t, nil, "snapshot", "restore", partial.ID)
		if is, err := os.ReadFile(filepath.Join(root, "f")); err != nil || string(is) != "f\n" {
			t.Errorf("%q, %v", is, err)
		}
	})
}

// TestRollbackOfOthers: an ordinary user undoes a commit of which he may not read a file, or not
// move one away: those stay, and are named, and the others go. The commit stands, and is undone when they
// can be removed; after that it says when it was.
func TestRollbackOfOthers(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		at := func(name string) string { return filepath.Join(root, name) }
		from := t.TempDir()
		run := harness.NewIn(t, from, files()).Runs[0].Dir
		harness.LetOthersIn(t, from)
		var made struct {
			ID string `json:"preview_id"`
		}
		u.must(t, &made, "preview", "--json", "--restore-root", root, run)
		u.must(t, nil, harness.CommitArgs(made.ID)...)
		harness.Must(t, os.Chmod(at("top.txt"), 0))
		harness.Must(t, os.Chmod(at("whole/deep"), 0))
		harness.Must(t, os.Chown(at("out/deep"), 0, 0))
		var list struct{ Savepoints []struct{ Attempt string } }
		u.must(t, &list, "savepoint", "list", "--json", root)
		commit := list.Savepoints[0].Attempt
		want := []string{"out/deep/long.bin", "top.txt", "whole/deep"}
		if u.id == 0 {
			want = nil
		}
		for _, dry := range []string{"--dry-run", "--json", "--json"} { // twice, with nothing else to take away
			r := u.run(t, "rollback", "--json", dry, commit)
			var done struct {
				leftOf
				Code    string
				Details leftOf
			}
			harness.Must(t, json.Unmarshal([]byte(r.Stdout), &done))
			paths := append(done.paths(), done.Details.paths()...)
			slices.Sort(paths)
			if !slices.Equal(paths, want) || (r.Status == 1 && done.Code == "ROLLBACK_INCOMPLETE") != (want != nil) {
				t.Errorf("it has left %q, want %q: %v", paths, want, r)
			}
			if want != nil && strings.Contains(r.Stderr, "undone: commit") {
				t.Errorf("it says that it is undone: %v", r)
			}
			if dry == "--json" && want == nil {
				break
			}
		}
		for _, name := range []string{"out/a.txt", "new", "RESTORE_REPORT.json"} {
			if _, err := os.Lstat(at(name)); err == nil {
				t.Errorf("%q is there", name)
			}
		}
		if u.id != 0 {
			u.must(t, nil, "audit", "verify")
			u.must(t, nil, "recover", root)
			harness.Must(t, os.Chmod(at("top.txt"), 0o644))
			harness.Must(t, os.Chmod(at("whole/deep"), 0o755))
			harness.Must(t, os.Chown(at("out/deep"), u.id, u.id))
			u.must(t, nil, "rollback", commit)
		}
		if left, err := os.ReadDir(root); err != nil || len(left) > 0 {
			t.Errorf("%v is there, %v", left, err)
		}
		if r := u.run(t, "rollback", commit); r.Status != 1 || !strings.Contains(r.Stderr, "commit "+commit+" was already undone at 2") {
			t.Errorf("a second time: %v", r)
		}
		u.must(t, nil, "audit", "verify")
	})
}

// TestRootOfOthers: in a root in which this user may make nothing, a dry run and what follows it end
// alike, before anything is written.
func TestRootOfOthers(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		if u.id == 0 {
			t.Skip("root may write everywhere")
		}
		u.write(t, filepath.Join(root, "f"), "f\n")
		var taken leftOf
		u.must(t, &taken, "snapshot", "take", "--json", root)
		u.write(t, filepath.Join(root, "f"), "other, longer\n")
		harness.Must(t, os.Chown(root, 0, 0))
		list := u.must(t, nil, "snapshot", "list", root).Stdout
		for _, args := range [][]string{{"snapshot", "restore", taken.ID}, {"snapshot", "restore", taken.ID, "f"}, {"rollback", "--emergency", root}} {
			dry := u.run(t, append(slices.Clone(args), "--dry-run")...)
			r := u.run(t, args...)
			if dry.Status != 1 || r.Status != 1 || !strings.Contains(r.Stderr, "belongs to user 0") {
				t.Errorf("%v\n%v", dry, r)
			}
		}
		if now := u.must(t, nil, "snapshot", "list", root).Stdout; now != list {
			t.Errorf("snapshots were taken: %s", now)
		}
	})
}

// TestOpenFileOfOthers: what another user has open to write to is kept, also where only root can
// see which process has a file open.
func TestOpenFileOfOthers(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		shared := filepath.Join(root, "shared")
		harness.Must(t, os.Mkdir(shared, 0o777))
		harness.Must(t, os.Chmod(shared, 0o777))
		harness.Must(t, os.Chown(shared, u.id, u.id))
		var taken struct{ ID string }
		u.must(t, &taken, "snapshot", "take", "--json", root)
		log, err := os.Create(filepath.Join(shared, "log"))
		harness.Must(t, err)
		defer log.Close()
		harness.Must(t, log.Chmod(0o644))
		harness.Must(t, log.Chown(4711, 4711))
		var dry struct{ Open []string }
		u.must(t, &dry, "snapshot", "restore", "--dry-run", "--json", taken.ID)
		if !slices.Equal(dry.Open, []string{"shared/log"}) {
			t.Errorf("the dry run says that %q would be kept", dry.Open)
		}
		var done struct{ Kept []struct{ At string } }
		u.must(t, &done, "snapshot", "restore", "--json", taken.ID)
		_, err = log.WriteString("later")
		harness.Must(t, err)
		if len(done.Kept) != 1 {
			t.Fatalf("kept is %v", done.Kept)
		}
		if text, err := os.ReadFile(done.Kept[0].At); string(text) != "later" {
			t.Errorf("kept is %q, %v", text, err)
		}
	})
}
