package blocktable_test

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// file is a file of a test, with its path.
type file struct {
	path    string
	content []byte
	perm    fs.FileMode
	sec     int64
	nsec    int32
}

// valuesOf are the chaining values between blocks, by nothing of the program.
func valuesOf(content []byte, block int) (values []byte) {
	h := sha256.New()
	for at := 0; at+block < len(content); at += block {
		h.Write(content[at : at+block])
		state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			panic(err)
		}
		values = append(values, state[4:4+sha256.Size]...)
	}
	return values
}

func pathsOf(files []file) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths
}

func contentOf(n int) []byte {
	content := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(content)
	return content
}

// filesOf are files of many sizes, in the order of their paths' bytes.
func filesOf(block int) []file {
	return []file{
		{"a", nil, 0o644, 1, 2},
		{"a-b/c", contentOf(1), 0o755, -5, 999_999_999},
		{"a/b", contentOf(block - 1), 0o600, 0, 0},
		{"a/b/é", contentOf(block), 0o777, 253_402_300_799, 999_999_999},
		{"a/c", contentOf(block + 1), 0, -62_167_219_200, 0},
		{"z/y/x", contentOf(3*block + 7), 0o640, 1e9, 5},
	}
}

var dirPerms = map[string]fs.FileMode{"a-b": 0o700, "a": 0o750, "a/b": 0o711, "z": 0o755, "z/y": 0o770}

func tableOf(t testing.TB, block int, files []file) *blocktable.Table {
	t.Helper()
	table, err := blocktable.New(blocktable.Draft{
		Block: int64(block), DirPerm: func(dir string) fs.FileMode { return dirPerms[dir] },
		Entries: func(yield func(blocktable.Entry) bool) {
			for _, f := range files {
				attributes := blocktable.Attributes{Size: int64(len(f.content)), Perm: f.perm, Sec: f.sec, Nsec: f.nsec}
				if !yield(blocktable.Entry{Path: f.path, Attributes: attributes, Values: valuesOf(f.content, block)}) {
					return
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestForm: the bytes of a small table, by hand, as docs/formats.md describes them.
func TestForm(t *testing.T) {
	files := []file{{"a", []byte("abc"), 0o644, 1, 2}, {"b/c/d", contentOf(1<<16 + 1), 0o755, 3, 4}}
	want := "737065637472756d20626c6f636b7320310a" + "00010000" +
		"00000001" + "61" + "0000000000000003" + "01a4" + "0000000000000001" + "00000002" +
		"00000005" + "622f632f64" + "01c0" + "0000" + "0000000000010001" + "01ed" + "0000000000000003" + "00000004" +
		hex.EncodeToString(valuesOf(files[1].content, 1<<16))
	dirPerms := map[string]fs.FileMode{"b": 0o700, "b/c": 0}
	table, err := blocktable.New(blocktable.Draft{
		Block: 1 << 16, DirPerm: func(dir string) fs.FileMode { return dirPerms[dir] },
		Entries: func(yield func(blocktable.Entry) bool) {
			for _, f := range files {
				attributes := blocktable.Attributes{Size: int64(len(f.content)), Perm: f.perm, Sec: f.sec, Nsec: f.nsec}
				if !yield(blocktable.Entry{Path: f.path, Attributes: attributes, Values: valuesOf(f.content, 1<<16)}) {
					return
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(table.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := maps.Collect(table.Dirs()); !maps.Equal(got, dirPerms) {
		t.Errorf("directories %v, want %v", got, dirPerms)
	}
}

// TestRoundTrip: what is parsed is what was made, and made again it has the same bytes.
func TestRoundTrip(t *testing.T) {
	const block = blocktable.MinBlock
	files := filesOf(block)
	table := tableOf(t, block, files)
	again, err := blocktable.Parse(table.Bytes(), slices.Values(pathsOf(files)))
	if err != nil {
		t.Fatal(err)
	}
	if got := maps.Collect(again.Dirs()); !maps.Equal(got, dirPerms) {
		t.Errorf("directories %v, want %v", got, dirPerms)
	}
	var total int64
	for i, f := range files {
		want := blocktable.Attributes{Size: int64(len(f.content)), Perm: f.perm, Sec: f.sec, Nsec: f.nsec}
		if got := again.Attributes(i); got != want || !again.HasValues(i, valuesOf(f.content, block)) || again.HasValues(i, append(valuesOf(f.content, block), 0)) {
			t.Errorf("%q: %+v, want %+v, or its chaining values are others", f.path, got, want)
		}
		total += int64(len(f.content))
	}
	if again.Len() != len(files) || again.Block() != block || again.Size() != total {
		t.Error(again.Len(), again.Block(), again.Size())
	}
	all, err := again.Only(func(int) bool { return true })
	if err != nil || !bytes.Equal(all.Bytes(), table.Bytes()) {
		t.Errorf("the table of all files is another one: %v", err)
	}
	some, err := again.Only(func(i int) bool { return i == 2 || i == 5 })
	if want := tableOf(t, block, []file{files[2], files[5]}); err != nil || !bytes.Equal(some.Bytes(), want.Bytes()) {
		t.Errorf("the table of two files is another one: %v", err)
	}
}

// TestRules: each rule of the form, broken alone.
func TestRules(t *testing.T) {
	files := []file{{"a/b", contentOf(5), 0o644, 1, 2}, {"c", contentOf(1<<16 + 1), 0o755, 3, 4}}
	good := tableOf(t, 1<<16, files).Bytes()
	const head, first = 22, 22 + 4 + 3 + 2 // where the attributes of a/b begin
	put := func(at int, b ...byte) []byte {
		raw := bytes.Clone(good)
		copy(raw[at:], b)
		return raw
	}
	u64 := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for want, raw := range map[string][]byte{
		"does not begin with":                             put(0, 'S'),
		"its head is cut off":                             good[:20],
		"blocks have 65537 bytes":                         put(18, 0, 1, 0, 1),
		"blocks have 32768 bytes":                         put(18, 0, 0, 0x80, 0),
		"blocks have 8388608 bytes":                       put(18, 0, 0x80, 0, 0),
		`it has "a/c" where "a/b"`:                        put(head+4+2, 'c'),
		`it has "" where "a/b"`:                           put(head, 0, 0, 0, 0),
		`cut off in "a/b"`:                                put(head, 0xff, 0xff, 0xff, 0xff),
		`on the way to "a/b"`:                             put(head+4+3, 2, 0),
		`the mode of "a/b"`:                               put(first+8, 2, 0),
		`1000000000 nanoseconds`:                          put(first+18, binary.BigEndian.AppendUint32(nil, 1_000_000_000)...),
		`the time of "a/b", 253402300800 seconds`:         put(first+10, u64(253_402_300_800)...),
		`the time of "a/b", -62167219201 seconds`:         put(first+10, u64(^uint64(62_167_219_200))...),
		`the time of "a/b", -9223372036854775808 seconds`: put(first+10, u64(1<<63)...),
		`"a/b" of 18446744073709551615`:                   put(first, u64(math.MaxUint64)...),
		`"a/b" of 9223372036854775807`:                    put(first, u64(math.MaxInt64)...),
		`it has 32 bytes after`:                           put(len(good)-32-22, u64(1<<16)...),
		`it has 1 bytes after`:                            append(bytes.Clone(good), 0),
		`it ends before "c"`:                              good[:first+22],
		`cut off in "c"`:                                  good[:len(good)-33],
		`before the chaining values`:                      good[:len(good)-1],
	} {
		table, err := blocktable.Parse(raw, slices.Values(pathsOf(files)))
		if table != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q: %v", want, err)
		}
	}
	for _, paths := range [][]string{{"a/b"}, {"a/b", "c", "d"}, {"c", "a/b"}, {}} {
		if table, err := blocktable.Parse(good, slices.Values(paths)); err == nil || table != nil {
			t.Errorf("it is one of %q", paths)
		}
	}
	twice := tableOf(t, 1<<16, files[:1]).Bytes()
	twice = append(twice, twice[22:]...)
	if table, err := blocktable.Parse(twice, slices.Values([]string{"a/b", "a/b"})); err == nil || table != nil {
		t.Error("a path may be there twice")
	}
	big := make([]byte, blocktable.MaxSize+1)
	if _, err := blocktable.Parse(big, slices.Values(pathsOf(files))); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("too long: %v", err)
	}
}

// TestEveryByte: with each byte changed, each length cut, and with the text doubled, parsing
// returns an error or a table that is written as exactly these bytes. None is accepted for other
// files.
func TestEveryByte(t *testing.T) {
	files := []file{{"a", nil, 0o644, 1, 2}, {"b/c", contentOf(1<<16 + 9), 0o600, 3, 4}, {"b/d", contentOf(4), 0o755, 5, 6}}
	good := tableOf(t, 1<<16, files).Bytes()
	paths := pathsOf(files)
	for at := range good {
		for _, with := range []byte{0, 1, 0x80, 0xff, good[at] + 1} {
			raw := bytes.Clone(good)
			raw[at] = with
			if table, err := blocktable.Parse(raw, slices.Values(paths)); err == nil && !bytes.Equal(table.Bytes(), raw) || (err == nil) != (table != nil) {
				t.Fatalf("byte %d as %#x: %v", at, with, err)
			}
		}
		if table, err := blocktable.Parse(good[:at], slices.Values(paths)); err == nil || table != nil {
			t.Fatalf("cut to %d bytes it is a table", at)
		}
	}
	if table, err := blocktable.Parse(append(bytes.Clone(good), good...), slices.Values(paths)); err == nil || table != nil {
		t.Error("doubled it is a table")
	}
}

// TestBlockFor: blocks grow until the table fits; beyond the largest there is none.
func TestBlockFor(t *testing.T) {
	const tib = 1 << 40
	for _, c := range []struct {
		size int64
		want int64
	}{{0, 256 << 10}, {tib, 256 << 10}, {2*tib - 1<<30, 256 << 10}, {2 * tib, 512 << 10}, {8 * tib, 2 << 20}, {30 * tib, 4 << 20}, {32 * tib, 0}, {math.MaxInt64, 0}} {
		one := func(yield func(string, int64) bool) { yield("a", c.size) }
		if got := blocktable.BlockFor(one); got != c.want {
			t.Errorf("%d bytes: blocks of %d, want %d", c.size, got, c.want)
		}
	}
	long := strings.Repeat("x", 1<<20)
	many := func(yield func(string, int64) bool) {
		for range 256 {
			if !yield(long, 0) {
				return
			}
		}
	}
	if got := blocktable.BlockFor(many); got != 0 {
		t.Errorf("paths beyond the limit: blocks of %d", got)
	}
}

// FuzzParse: no input does more than return an error, and what is parsed has the same bytes when
// it is made again.
func FuzzParse(f *testing.F) {
	for _, files := range [][]file{filesOf(blocktable.MinBlock)[:3], {{"a", nil, 0o644, 1, 2}}, {{"a/b", contentOf(1<<16 + 1), 0, -1, 0}, {"a/c", contentOf(1), 0o777, 1, 1}}} {
		table := tableOf(f, blocktable.MinBlock, files)
		f.Add(table.Bytes(), strings.Join(pathsOf(files), "\n"))
		f.Add(table.Bytes()[:len(table.Bytes())-1], strings.Join(pathsOf(files), "\n"))
	}
	f.Add([]byte{}, "")
	f.Fuzz(func(t *testing.T, raw []byte, names string) {
		table, err := blocktable.Parse(raw, strings.SplitSeq(names, "\n"))
		if err != nil {
			if table != nil {
				t.Error("an error and a table")
			}
			return
		}
		again, err := table.Only(func(int) bool { return true })
		if err != nil || !bytes.Equal(again.Bytes(), raw) {
			t.Errorf("made again it is another one: %v", err)
		}
		for i := range table.Len() {
			if a := table.Attributes(i); a.Size < 0 || time.Unix(a.Sec, 0).UTC().Year() > 9999 || time.Unix(a.Sec, 0).UTC().Year() < 0 || a.Perm > fs.ModePerm || a.Nsec < 0 {
				t.Errorf("file %d: %+v", i, a)
			}
		}
	})
}
