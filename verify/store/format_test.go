package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// discard reads the members of a run and keeps nothing.
func discard(raw []byte) error {
	return readRun(context.Background(), raw, func(_ string, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})
}

// packed is a compressed archive of these members.
func packed(t *testing.T, headers []tar.Header, contents []string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := range headers {
		headers[i].Size = int64(len(contents[i]))
		if headers[i].Typeflag != tar.TypeReg {
			headers[i].Size = 0
		}
		if err := w.WriteHeader(&headers[i]); err != nil {
			t.Fatal(err)
		}
		if headers[i].Size > 0 {
			if _, err := io.WriteString(w, contents[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func plainMembers(names ...string) (headers []tar.Header, contents []string) {
	for _, name := range names {
		headers, contents = append(headers, tar.Header{Typeflag: tar.TypeReg, Name: name, Format: tar.FormatUSTAR}), append(contents, "{}")
	}
	return headers, contents
}

// TestArchives: which archives are those of a run.
func TestArchives(t *testing.T) {
	for _, names := range [][]string{members[:required], members, append(members[:required:required], blocksFile)} {
		if err := discard(packed(t, first(plainMembers(names...)), second(plainMembers(names...)))); err != nil {
			t.Errorf("%q: %v", names, err)
		}
	}
	all := members[:required]
	good := packed(t, first(plainMembers(all...)), second(plainMembers(all...)))
	hostile := map[string][]byte{
		"empty": nil, "no gzip": []byte("runs"), "cut": good[:len(good)-1], "twice": append(bytes.Clone(good), good...), "a byte after it": append(bytes.Clone(good), 0),
	}
	for name, names := range map[string][]string{
		"one is missing": all[:required-1], "another order": append(append([]string{}, all[1:]...), all[0]), "one twice": append(append([]string{}, all...), all[0]),
		"the last ones in another order": append(append([]string{}, all...), blocksFile, bundle.ChangesFile), "a path": append(append([]string{}, all...), "../CHANGES"), "unknown": append(append([]string{}, all...), "x"),
	} {
		hostile[name] = packed(t, first(plainMembers(names...)), second(plainMembers(names...)))
	}
	for kind, flag := range map[string]byte{"link": tar.TypeSymlink, "hard link": tar.TypeLink, "directory": tar.TypeDir, "device": tar.TypeChar, "fifo": tar.TypeFifo} {
		headers, contents := plainMembers(all...)
		headers[3].Typeflag, headers[3].Linkname = flag, "/etc/passwd"
		hostile[kind] = packed(t, headers, contents)
	}
	headers, contents := plainMembers(all...)
	headers[2].Format, headers[2].PAXRecords = tar.FormatPAX, map[string]string{"SPECTRUM.x": "y"}
	hostile["pax"] = packed(t, headers, contents)
	headers, contents = plainMembers(all...)
	headers[2].Format = tar.FormatGNU
	hostile["gnu"] = packed(t, headers, contents)
	headers, contents = plainMembers(all...)
	contents[1] = strings.Repeat("\x00", 16<<20+1)
	hostile["bomb"] = packed(t, headers, contents)
	for name, raw := range hostile {
		if err := discard(raw); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func first(headers []tar.Header, _ []string) []tar.Header { return headers }
func second(_ []tar.Header, contents []string) []string   { return contents }

// TestZeros: what follows the archive is not unpacked without a limit.
func TestZeros(t *testing.T) {
	headers, contents := plainMembers(members[:required]...)
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for i := range headers {
		headers[i].Size = int64(len(contents[i]))
		_ = w.WriteHeader(&headers[i])
		_, _ = io.WriteString(w, contents[i])
	}
	_ = w.Close()
	zeros := make([]byte, 1<<20)
	for range 64 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	if err := discard(out.Bytes()); err == nil {
		t.Error("64 MiB of zeros are accepted")
	}
}

// TestMaps: each MAP that is not exactly what a plan writes is rejected.
func TestMaps(t *testing.T) {
	p := &plan{runID: "run-1", packs: []pack{{id{1}, 100}, {id{2}, maxPack}}}
	p.add([]extent{{0, 0, 100}, {1, 5, 7}})
	p.add(nil)
	p.add([]extent{{1, 0, maxPack}})
	good := string(p.appendMap(nil))
	if again, err := parseMap(strings.NewReader(good)); err != nil || string(again.appendMap(nil)) != good {
		t.Fatalf("%v\n%s", err, good)
	}
	for from, to := range map[string]string{
		"spectrum-map 1": "spectrum-map 2", "run run-1": "run ../x", "run run-1\n": "run .x\n", "run-1": "a\u202eb", "packs 2": "packs 3", "packs 2\n": "packs 02\n",
		"0:0:100": "0:1:100", "1:5:7": "2:5:7", "1:5:7\n": "1:5:0\n", "0:0:100 1": "0:0:100  1", "files 3": "files 4", "files 3\n": "files 2\n", "1:5:7\n\n": "1:5:7\n", "100\n": "101\n1",
		"0:0:100 ": "0:0:100,", "1:5:": "1:-5:", "1:0:67108864\n": "1:0:67108864", " 67108864": " 67108865", "0100": "010G", "packs": "pack",
	} {
		if !strings.Contains(good, from) {
			t.Errorf("%q is not in the MAP", from)
		}
		if _, err := parseMap(strings.NewReader(strings.Replace(good, from, to, 1))); err == nil {
			t.Errorf("%q in the place of %q is accepted", to, from)
		}
	}
	for n := range good {
		if _, err := parseMap(strings.NewReader(good[:n])); err == nil {
			t.Errorf("the first %d bytes are accepted", n)
		}
	}
	for _, more := range []string{"\n", "0:0:1\n", "x"} {
		if _, err := parseMap(strings.NewReader(good + more)); err == nil {
			t.Errorf("%q at the end is accepted", more)
		}
	}
}

// TestLyingMaps: a MAP that points elsewhere makes an error, and no wrong byte.
func TestLyingMaps(t *testing.T) {
	s, _, bucket := far(t)
	project := bundletest.New(t)
	outputs := map[string]string{"a": random(1, 100), "b": random(2, 100), "c": ""}
	run := project.Run("run-1", outputs)
	b := verified(t, run)
	mustPush(t, s, b, state(t))
	other := verified(t, project.Run("run-2", othersOf(outputs)))
	mustPush(t, s, other, state(t))
	key := "team/runs/" + b.Root()
	raw := bucket.Content(key)
	plan, err := s.planOf(t.Context(), b.Root())
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(p *planned)) []byte {
		p := *plan
		p.ends, p.extents, p.packs = cloned(p.ends), cloned(p.extents), cloned(p.packs)
		change(&p)
		return withMap(t, run, &p)
	}
	if !bytes.Equal(with(func(*planned) {}), raw) {
		t.Fatal("the run is not written as it was pushed")
	}
	for name, raw := range map[string][]byte{
		"swapped":       with(func(p *planned) { p.extents[0], p.extents[1] = p.extents[1], p.extents[0] }),
		"shorter":       with(func(p *planned) { p.extents[0].n-- }),
		"empty":         with(func(p *planned) { p.extents, p.ends = p.extents[:1], []uint32{0, 1, 1} }),
		"not empty":     with(func(p *planned) { p.extents, p.ends = append(p.extents, extent{0, 0, 1}), []uint32{1, 2, 3} }),
		"fewer outputs": with(func(p *planned) { p.ends = p.ends[:2] }),
		"more outputs":  with(func(p *planned) { p.ends = append(p.ends, p.ends[2]) }),
		"another run":   bucket.Content("team/runs/" + other.Root()),
	} {
		bucket.Set(key, raw)
		if _, err := pull(t, s, b.Root()); !isWrong(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The name of the run is a hint: any safe one will do.
	bucket.Set(key, with(func(p *planned) { p.runID = "another name" }))
	if _, err := pull(t, s, b.Root()); err != nil {
		t.Error(err)
	}
	// A pack that claims to be larger than it is.
	bucket.Set(key, with(func(p *planned) { p.packs[0].size = 300; p.extents[1].off = 150 }))
	if _, err := pull(t, s, b.Root()); !isFault(err) {
		t.Errorf("beyond the end of the pack: %v", err)
	}
}

// withMap is a run as it was sealed, with another MAP.
func withMap(t *testing.T, run *bundletest.Run, p *plan) []byte {
	t.Helper()
	raw, err := writeRun(func(name string) ([]byte, error) {
		if name == mapFile {
			return p.appendMap(nil), nil
		}
		content, err := os.ReadFile(filepath.Join(run.Dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		return content, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// planned is a name for the type where a variable has its own.
type planned = plan

func cloned[T any](s []T) []T { return append([]T(nil), s...) }

func othersOf(outputs map[string]string) map[string]string {
	changed := map[string]string{}
	for path, content := range outputs {
		changed["x/"+path] = content + "."
	}
	return changed
}

// TestEveryByteOfARun changes each byte of a run: it is rejected, or it is the very same run.
func TestEveryByteOfARun(t *testing.T) {
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "x"})
	b := verified(t, run)
	dir := t.TempDir()
	s := quick(t, "file://"+dir)
	mustPush(t, s, b, state(t))
	at := filepath.Join(dir, "runs", b.Root())
	raw, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for i := 0; i < len(raw); i += 1 + len(raw)/200 {
		changed := bytes.Clone(raw)
		changed[i] ^= 0x41
		if err := os.WriteFile(at, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		pulled, err := pull(t, s, b.Root())
		switch {
		case err == nil:
			same(t, run, pulled, map[string]string{"a": "x"})
		case !isWrong(err) && !isFault(err):
			t.Errorf("byte %d: %T %v", i, err, err)
		default:
			rejected++
		}
	}
	if rejected < 100 {
		t.Errorf("%d changes were rejected", rejected)
	}
}

// TestDamagedRecord: a record is read up to its first damaged line, and what is lost is sent again.
func TestDamagedRecord(t *testing.T) {
	s, _, bucket := far(t)
	outputs := sampleOutputs()
	b := verified(t, bundletest.New(t).Run("run-1", outputs))
	kept := t.TempDir()
	mustPush(t, s, b, openDir(t, kept))
	names, err := filepath.Glob(kept + "/*/*")
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	whole, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for name, raw := range map[string][]byte{
		"empty": {}, "another store": append([]byte(recordHead+"s3://x\n"), whole...), "zeros": append(bytes.Join(lines[:6], nil), make([]byte, 4096)...),
		"torn": bytes.Join(lines[:6], nil)[:len(bytes.Join(lines[:6], nil))-9], "no packs": append(bytes.Clone(lines[0]), bytes.Join(lines[3:], nil)...),
		"a pack that is nowhere": fmt.Appendf(nil, "%sp %s 4000\nf %x 0:0:3000\n", lines[0], id{9}, firstDigest(b)),
	} {
		if err := os.WriteFile(names[0], raw, 0o600); err != nil {
			t.Fatal(err)
		}
		bucket.Set("team/runs/"+b.Root(), nil)
		mustPush(t, s, b, openDir(t, kept))
		if _, err := pull(t, s, b.Root()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all, _ := filepath.Glob(kept + "/*/*")
		for _, other := range all {
			if other != names[0] {
				_ = os.Remove(other)
			}
		}
	}
}
