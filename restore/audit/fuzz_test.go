package audit_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// FuzzAuditLog reads any bytes as a log. What is accepted is nothing but
// entries, each bound to the one before, and torn lines that the next entry
// names; and whatever it was, the next event is logged behind it.
func FuzzAuditLog(f *testing.F) {
	_, raw := logged(f)
	f.Add(raw)
	f.Add(raw[:len(raw)-10])
	f.Add(loggedAll(f, undoing()))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkLog(t, data)
		now := oneMore(t, data)
		if !bytes.HasPrefix(now, data) {
			t.Error("something was removed")
		}
		if was, is := damaged(data), damaged(now); was && !is {
			t.Errorf("the damage is gone after one more event: %q", now)
		}
	})
}

// FuzzAuditEdits edits a good log line by line and byte by byte, also with lines
// of another one. What is still accepted is a beginning of one of them; only in
// the last line a change can hide.
func FuzzAuditEdits(f *testing.F) {
	_, raw := logged(f)
	_, foreign := logged(f)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	others := bytes.SplitAfter(foreign, []byte("\n"))
	f.Add([]byte{0, 1, 2, 1, 3, 4, 2, 0, 0, 3, 5, 6, 4, 2, 200})
	f.Fuzz(func(t *testing.T, edits []byte) {
		now := slices.Clone(lines)
		for ; len(edits) >= 3 && len(now) > 1; edits = edits[3:] {
			now = edit(now, others, [3]int{int(edits[0]), int(edits[1]), int(edits[2])})
		}
		data := bytes.Join(now, nil)
		n := checkLog(t, data)
		if n > 1 && !bytes.HasPrefix(data, bytes.Join(lines[:n-1], nil)) && !bytes.HasPrefix(data, bytes.Join(others[:n-1], nil)) {
			t.Errorf("%d entries were accepted that are not all of this log: %q", n, data)
		}
	})
}

// edit makes one edit: what, where, and with what.
func edit(lines, others [][]byte, e [3]int) [][]byte {
	lines = slices.Clone(lines)
	i, j := e[1]%len(lines), e[2]%len(lines)
	switch e[0] % 6 {
	case 0:
		return slices.Delete(lines, i, i+1)
	case 1:
		return slices.Insert(lines, i, lines[j])
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		return slices.Insert(lines, i, others[e[2]%len(others)])
	case 4:
		if len(lines[i]) > 0 {
			lines[i] = bytes.Clone(lines[i])
			lines[i][e[2]%len(lines[i])] ^= 1 << (e[0] % 8)
		}
	case 5:
		lines[i] = lines[i][:min(len(lines[i]), e[2])]
	}
	return lines
}

// checkLog checks what a log says of itself, if it is not damaged, and returns
// how many entries it has.
func checkLog(t *testing.T, data []byte) int {
	t.Helper()
	var entries []audit.Entry
	head, err := audit.Read(bytes.NewReader(data), func(e audit.Entry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		if !damaged(data) || head.Sequence != 0 {
			t.Errorf("head %+v with the error %v", head, err)
		}
		return 0
	}
	torn := int64(0)
	for i, e := range entries {
		if e.Sequence != int64(i+1) || i > 0 && e.Previous != entries[i-1].Hash {
			t.Errorf("entry %d: %+v", i+1, e)
		}
		if e.Torn != nil {
			torn++
		}
	}
	if int(head.Sequence) != len(entries) || head.Tears < torn || head.Tail > int64(len(data)) {
		t.Errorf("%d entries, %d torn, head %+v: %q", len(entries), torn, head, data)
	}
	return len(entries)
}
