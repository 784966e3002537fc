package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

var must = harness.Must

// open opens a log, any number of times.
func open(t testing.TB, path string) *audit.Log {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	l := audit.New(f)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// inMemory is a file with this content that no disk is asked for.
func inMemory(t testing.TB, content []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("audit.log", unix.MFD_CLOEXEC)
	must(t, err)
	f := os.NewFile(uintptr(fd), "audit.log")
	t.Cleanup(func() { _ = f.Close() })
	_, err = f.Write(content)
	must(t, err)
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_APPEND)
	must(t, err)
	return f
}

// oneMore appends an event to a log with this content, and returns what is
// there now.
func oneMore(t testing.TB, content []byte) []byte {
	t.Helper()
	f := inMemory(t, content)
	must(t, audit.New(f).Append(audit.Event{Kind: audit.CommitBegin, Action: id(9), Root: "/r"}))
	info, err := f.Stat()
	must(t, err)
	now := make([]byte, info.Size())
	_, err = f.ReadAt(now, 0)
	must(t, err)
	must(t, f.Close())
	return now
}

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// history is what a few commits log.
func history() []audit.Event {
	return []audit.Event{
		{Kind: audit.CommitBegin, Action: id(1), Root: "/r", Preview: strings.Repeat("ab", 32)},
		{Kind: audit.CommitEnd, Action: id(1), Root: "/r"},
		{Kind: audit.CommitBegin, Action: id(2), Root: "/r"},
		{Kind: audit.CommitBegin, Action: id(3), Root: "/s\u00e9\n\x1b[2J"},
		{Kind: audit.RolledBack, Action: id(2), Root: "/r", Rollback: audit.Micro, Reason: "RESTORE_FINALIZE_FAILED"},
		{Kind: audit.Halted, Action: id(3), Root: "/s\u00e9\n\x1b[2J", Reason: "something foreign is in the way"},
		{Kind: audit.Released, Action: id(3), Root: "/s\u00e9\n\x1b[2J", Reason: "left"},
		{Kind: audit.Quarantined, Action: id(11), Root: "/r", Candidate: source, Reason: "artifact_status: rejected"},
		{Kind: audit.QuarantineCleared, Action: id(12), Root: "/r", Candidate: source, Reason: "artifact_status: rejected"},
		{Kind: audit.QuarantineReleased, Action: id(13), Root: "/r", Candidate: source, Reason: "looked at"},
		{Kind: audit.CommitBegin, Action: id(4), Root: "/\xff"},
	}
}

// source is the source id of a candidate.
var source = strings.Repeat("5c", 32)

func logged(t testing.TB) (path string, raw []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "audit.log")
	l := open(t, path)
	for _, event := range history() {
		must(t, l.Append(event))
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	return path, raw
}

// read reads a log that must be good.
func read(t testing.TB, raw []byte) ([]audit.Entry, audit.Head) {
	t.Helper()
	var entries []audit.Entry
	head, err := audit.Read(bytes.NewReader(raw), func(e audit.Entry) error {
		entries = append(entries, e)
		return nil
	})
	must(t, err)
	return entries, head
}

func damaged(raw []byte) bool {
	_, err := audit.Read(bytes.NewReader(raw), func(audit.Entry) error { return nil })
	var damage *audit.DamageError
	return errors.As(err, &damage) && damage.Line > 0
}

func TestAppend(t *testing.T) {
	path, raw := logged(t)
	entries, head := read(t, raw)
	if again, err := open(t, path).Read(func(audit.Entry) error { return nil }); err != nil || again.Hash != head.Hash {
		t.Errorf("%+v, %v", again, err)
	}
	var events []audit.Event
	for i, e := range entries {
		if e.Sequence != int64(i+1) || e.UID != os.Getuid() || e.Time.IsZero() {
			t.Errorf("entry %d: %+v", i+1, e)
		}
		events = append(events, e.Event)
	}
	want := history()
	want[10].Root = `"/\xff"`
	if diff := cmp.Diff(want, events); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{id(4): `"/\xff"`}, head.Open); diff != "" {
		t.Error(diff)
	}
	if head.Sequence != 11 || head.Tears != 0 || head.Tail != 0 || head.Hash != entries[10].Hash {
		t.Errorf("head %+v", head)
	}
}

func TestEmpty(t *testing.T) {
	_, head := read(t, nil)
	if head.Sequence != 0 || head.Hash != strings.Repeat("0", 64) || len(head.Open) != 0 {
		t.Errorf("head %+v", head)
	}
}

// TestOpenActions: what has begun in a root is known until it ends, and ends once.
func TestOpenActions(t *testing.T) {
	path, _ := logged(t)
	l := open(t, path)
	for root, want := range map[string][]string{"/\xff": {id(4)}, "/r": nil, `"/\xff"`: {id(4)}} {
		if got, err := l.Open(root); err != nil || !slices.Equal(got, want) {
			t.Errorf("open in %q: %q, %v", root, got, err)
		}
	}
	end := audit.Event{Kind: audit.RolledBack, Action: id(4), Root: "/\xff", Rollback: audit.Emergency}
	must(t, l.Once(end))
	must(t, l.Once(end))
	raw, err := os.ReadFile(path)
	must(t, err)
	if entries, head := read(t, raw); len(entries) != 12 || len(head.Open) != 0 {
		t.Errorf("%d entries, head %+v", len(entries), head)
	}
}

// TestOnce: what is known is not logged again; another end is, and so is what
// becomes of an action that never began here.
func TestOnce(t *testing.T) {
	path, _ := logged(t)
	l := open(t, path)
	for i, c := range []struct {
		kind   audit.Kind
		action int
		wanted bool
	}{
		{audit.CommitEnd, 1, false},
		{audit.CommitEnd, 2, true}, // it was said to be rolled back
		{audit.CommitEnd, 2, false},
		{audit.Halted, 4, true},
		{audit.Halted, 4, false},
		{audit.CommitEnd, 4, true},
		{audit.Halted, 4, true}, // complete, and its journal cannot be removed
		{audit.CommitEnd, 4, false},
		{audit.Released, 7, true},
		{audit.Released, 7, false},
		{audit.Halted, 7, true},
		{audit.Released, 7, false},
	} {
		before, err := os.ReadFile(path)
		must(t, err)
		must(t, l.Once(audit.Event{Kind: c.kind, Action: id(c.action), Root: "/r"}))
		after, err := os.ReadFile(path)
		must(t, err)
		if (len(after) > len(before)) != c.wanted {
			t.Errorf("case %d: %s of action %d, logged: %v", i, c.kind, c.action, !c.wanted)
		}
		read(t, after)
	}
}

// TestRejectedEvents: what makes no sense is not written.
func TestRejectedEvents(t *testing.T) {
	path, raw := logged(t)
	for _, event := range []audit.Event{
		{},
		{Kind: "commit", Action: id(9), Root: "/r"},
		{Kind: audit.CommitBegin, Root: "/r"},
		{Kind: audit.CommitBegin, Action: id(9)},
		{Kind: audit.RolledBack, Action: id(4), Root: "/r"},
		{Kind: audit.CommitEnd, Action: id(4), Root: "/r", Rollback: audit.Micro},
		{Kind: audit.RolledBack, Action: id(4), Root: "/r", Rollback: "mini"},
		{Kind: audit.Quarantined, Action: id(9), Root: "/r"},
		{Kind: audit.Quarantined, Action: id(9), Root: "/r", Candidate: source[1:]},
		{Kind: audit.QuarantineCleared, Action: id(9), Root: "/r", Candidate: strings.ToUpper(source)},
		{Kind: audit.QuarantineReleased, Action: id(9), Candidate: source},
		{Kind: audit.QuarantineReleased, Action: id(9), Root: "/r", Candidate: source, Rollback: audit.Micro},
		{Kind: audit.CommitBegin, Action: id(9), Root: "/r", Candidate: source},
	} {
		if open(t, path).Append(event) == nil {
			t.Errorf("%+v was logged", event)
		}
	}
	now, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(raw, now) {
		t.Errorf("the log changed: %q", now[len(raw):])
	}
}

// TestReasons: long ones are cut, and bytes that are not text become text.
func TestReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must(t, open(t, path).Append(audit.Event{Kind: audit.CommitBegin, Action: id(1), Root: "/r", Reason: strings.Repeat("\xff\x00", 1<<20)}))
	raw, err := os.ReadFile(path)
	must(t, err)
	if entries, _ := read(t, raw); len(entries) != 1 || len(raw) > 100<<10 {
		t.Errorf("%d bytes", len(raw))
	}
}

// TestEveryCut cuts the log at every length: whole entries are left, and
// at most the beginning of one more; the next event can be logged, and says so.
func TestEveryCut(t *testing.T) {
	_, raw := logged(t)
	all, _ := read(t, raw)
	tried := sample.Every(t, 19)
	for n := tried.First - 1; n < len(raw); n += tried.Every {
		cut := raw[:n]
		entries, head := read(t, cut)
		for i, e := range entries {
			if e.Hash != all[i].Hash {
				t.Fatalf("cut at %d: entry %d is another", n, i+1)
			}
		}
		again := oneMore(t, cut)
		if !bytes.HasPrefix(again, cut) {
			t.Fatalf("cut at %d: something was removed", n)
		}
		after, now := read(t, again)
		last := after[len(after)-1]
		if len(after) != len(entries)+1 || now.Tail != 0 || (head.Tail > 0) != (last.Torn != nil) || (now.Tears > 0) != (last.Torn != nil) {
			t.Fatalf("cut at %d: %d entries, head %+v, before %+v", n, len(after), now, head)
		}
	}
}

// TestEveryByte flips a bit of each byte of each line but the last: it is found. The bit follows
// from the number of the try, since a stride of 8 or 16 would always flip the same one.
func TestEveryByte(t *testing.T) {
	_, raw := logged(t)
	last := bytes.LastIndexByte(raw[:len(raw)-1], '\n') + 1
	tried := sample.Every(t, 11)
	for i := tried.First - 1; i < last; i += tried.Every {
		changed := bytes.Clone(raw)
		changed[i] ^= 1 << (i / tried.Every % 8)
		if !damaged(changed) {
			t.Fatalf("byte %d is not noticed: %q", i, changed)
		}
	}
}

// TestLines drops, doubles and swaps lines, and puts in lines of another log.
func TestLines(t *testing.T) {
	_, raw := logged(t)
	_, foreign := logged(t)
	lines, others := bytes.SplitAfter(raw, []byte("\n")), bytes.SplitAfter(foreign, []byte("\n"))
	n := len(history())
	check := func(what string, lines ...[]byte) {
		t.Helper()
		if !damaged(bytes.Join(lines, nil)) {
			t.Errorf("%s: not noticed", what)
		}
	}
	for i := range n {
		if i < n-1 {
			check(fmt.Sprintf("without line %d", i+1), slices.Delete(slices.Clone(lines), i, i+1)...)
		}
		check(fmt.Sprintf("twice line %d", i+1), slices.Insert(slices.Clone(lines), i, lines[i])...)
		check(fmt.Sprintf("a foreign line at %d", i+1), slices.Insert(slices.Clone(lines), i, others[n-1])...)
		check(fmt.Sprintf("an empty line at %d", i+1), slices.Insert(slices.Clone(lines), i, []byte("\n"))...)
		for j := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			check(fmt.Sprintf("%d and %d swapped", i+1, j+1), swapped...)
		}
	}
}

// TestChangedLastLine: a last line that is none any more is damage, also after
// more was logged. (One that was changed into another good one is found only
// with a head that was kept.)
func TestChangedLastLine(t *testing.T) {
	_, raw := logged(t)
	raw[len(raw)-2] = 'x'
	if !damaged(raw) {
		t.Error("it is not noticed")
	}
	if !damaged(oneMore(t, raw)) {
		t.Error("it is not noticed after the next event")
	}
}

// TestLongTail: the last entry is found behind whatever stands after it.
func TestLongTail(t *testing.T) {
	_, raw := logged(t)
	entries, head := read(t, oneMore(t, append(raw, bytes.Repeat([]byte("x"), 3<<20)...)))
	if len(entries) != 12 || head.Tears != 1 || entries[11].Torn.Bytes != 3<<20+2 {
		t.Errorf("%d entries, %+v, torn %+v", len(entries), head, entries[11].Torn)
	}
}

// TestTogether: many append at once, through handles of their own.
func TestTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var group sync.WaitGroup
	for n := range 8 {
		l := open(t, path)
		group.Go(func() {
			for i := range 10 {
				e := audit.Event{Kind: audit.CommitBegin, Action: id(100*n + i), Root: fmt.Sprintf("/%d", n)}
				if err := l.Append(e); err != nil {
					t.Error(err)
				}
				if e.Kind = audit.CommitEnd; i%2 == 0 {
					if err := l.Once(e); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	raw, err := os.ReadFile(path)
	must(t, err)
	if entries, head := read(t, raw); len(entries) != 120 || len(head.Open) != 40 {
		t.Errorf("%d entries, %d open", len(entries), len(head.Open))
	}
}

// TestHeld: a process that holds the log and does not release it cannot block others for ever.
func TestHeld(t *testing.T) {
	path, raw := logged(t)
	holder, err := os.Open(path)
	must(t, err)
	defer holder.Close()
	must(t, unix.Flock(int(holder.Fd()), unix.LOCK_EX))
	l := audit.Hurried(open(t, path))
	event := audit.Event{Kind: audit.CommitBegin, Action: id(9), Root: "/r"}
	if err := l.Append(event); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("appended: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, now) {
		t.Errorf("the log changed, %v", err)
	}
	must(t, unix.Flock(int(holder.Fd()), unix.LOCK_UN))
	must(t, l.Append(event))
}

// TestTwoTears tears a line, and then what the next event writes, at every
// length: also at the end that the torn line is given. That is not damage.
func TestTwoTears(t *testing.T) {
	_, raw := logged(t)
	torn := raw[:len(raw)-7]
	again := oneMore(t, torn)
	tried := sample.Every(t, 7)
	for n := len(torn) + tried.First - 1; n <= len(again); n += tried.Every {
		if damaged(again[:n]) {
			t.Errorf("damaged at %d, torn at %d", n, len(torn))
		}
		entries, head := read(t, oneMore(t, again[:n]))
		if len(entries) < 11 || head.Tail != 0 || head.Tears < 1 || head.Tears > 2 {
			t.Errorf("cut at %d: %d entries, head %+v", n, len(entries), head)
		}
	}
}

// TestFullDisk: what could not be written whole is not logged, as often as it is
// tried, and the next one says what is left of it.
func TestFullDisk(t *testing.T) {
	path, raw := logged(t)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	l := open(t, path)
	event := audit.Event{Kind: audit.CommitBegin, Action: id(9), Root: "/r"}
	for _, room := range []int{40, 80, 81, 82, 120} {
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(len(raw) + room), Max: old.Max}))
		err := l.Append(event)
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
		if err == nil {
			t.Fatal("it was logged")
		}
		if now, err := os.ReadFile(path); err != nil || damaged(now) {
			t.Fatalf("%d bytes of room: damaged, %v", room, err)
		}
	}
	must(t, l.Append(event))
	now, err := os.ReadFile(path)
	must(t, err)
	entries, head := read(t, now)
	if len(entries) != 12 || head.Tears != 3 || entries[11].Torn.Bytes != 122 {
		t.Errorf("%d entries, %+v, torn %+v", len(entries), head, entries[11].Torn)
	}
}

// TestForms: a line that anything is missing from, or that says something else
// than an entry can, is none.
func TestForms(t *testing.T) {
	_, raw := logged(t)
	first, _, _ := bytes.Cut(raw, []byte("\n"))
	entries, _ := read(t, append(bytes.Clone(first), '\n'))
	if len(entries) != 1 {
		t.Fatal("the first line is none")
	}
	when := entries[0].Time.Format(time.RFC3339Nano)
	for _, change := range [][2]string{
		{`"open":{`, `"open":{"a":1,`}, {`"open":{"00000000-0000-4000-8000-000000000001":"/r"}`, `"open":[]`}, {`"open":{"00000000-0000-4000-8000-000000000001":"/r"}`, `"open":null`},
		{`"uid":`, `"uid":-`}, {`"uid":`, `"uid":1.5,"x":`}, {`"uid":`, `"UID":`}, {`"sequence":1`, `"sequence":01`}, {`"sequence":1`, `"sequence":"1"`}, {`"sequence":1`, `"sequence":0`},
		{when, strings.Replace(when, "Z", "+00:00", 1)}, {when, "yesterday"}, {when, ""}, {`"torn":null`, `"torn":{}`}, {`"torn":null`, `"torn":{"bytes":1}`}, {`"torn":null`, `"torn":{"bytes":1,"sha256":2}`},
		{`"kind":"commit_begin"`, `"kind":"commit"`}, {`"kind":"commit_begin"`, `"kind":"rollback"`}, {`"rollback":null`, `"rollback":"micro"`}, {`"rollback":null`, `"rollback":""`}, {`"root":"/r"`, `"root":""`}, {`"root":"/r"`, `"root":null`},
		{`"action":`, ` "action":`}, {`"action":`, `"a":1,"action":`}, {`"reason":null,`, ``}, {`"reason":null`, `"reason":"\u0041"`}, {`"snapshot":null`, `"snapshot":1`},
		{`"kind":`, `"candidate":null,"kind":`}, {`"kind":`, `"candidate":"","kind":`}, {`"kind":`, `"candidate":"` + source + `","kind":`}, {`"kind":"commit_begin"`, `"kind":"quarantine"`},
	} {
		changed := bytes.Replace(first, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(changed, first) {
			t.Fatalf("the line does not hold %s", change[0])
		}
		if !damaged(append(changed, '\n')) {
			t.Errorf("%s for %s is taken", change[1], change[0])
		}
	}
}

// TestReaderStops: with the error of the callback, and of the source.
func TestReaderStops(t *testing.T) {
	_, raw := logged(t)
	enough, n := errors.New("enough"), 0
	head, err := audit.Read(bytes.NewReader(raw), func(audit.Entry) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 || head.Sequence != 0 {
		t.Errorf("%d entries, %+v, %v", n, head, err)
	}
	broken := io.MultiReader(bytes.NewReader(raw), iotest.ErrReader(enough))
	if _, err := audit.Read(broken, func(audit.Entry) error { return nil }); !errors.Is(err, enough) {
		t.Errorf("%v", err)
	}
}

// TestDamageSaysWhere: the line, and the last good entry.
func TestDamageSaysWhere(t *testing.T) {
	_, raw := logged(t)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines[4] = []byte("what is this\n")
	_, err := audit.Read(bytes.NewReader(bytes.Join(lines, nil)), func(audit.Entry) error { return nil })
	var damage *audit.DamageError
	if !errors.As(err, &damage) || damage.Line != 5 && damage.Line != 6 || damage.After != 4 || !strings.Contains(err.Error(), "after entry 4") {
		t.Errorf("%v", err)
	}
}

// TestLogMissing: a log whose file is closed does nothing, and says so.
func TestLogMissing(t *testing.T) {
	path, raw := logged(t)
	l := open(t, path)
	must(t, l.Close())
	_, openErr := l.Open("/r")
	_, readErr := l.Read(func(audit.Entry) error { return nil })
	for what, err := range map[string]error{"append": l.Append(history()[0]), "end": l.End(history()[1]), "open": openErr, "read": readErr} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(raw, now) {
		t.Errorf("the log changed: %v", err)
	}
}
