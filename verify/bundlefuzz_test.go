package verify_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"golang.org/x/sys/unix"
)

// goodFolders are three bundles over the same three outputs: two of one key and
// one of another, with little else in common.
func goodFolders() []*folder {
	var all []*folder
	for i, outputs := range []map[string]string{{"d/a": "aaa", "d/b": "bbb"}, {"d/a": "aaa", "e": "other"}, {"d/b": "bbb", "e": "other"}} {
		f := &folder{map[string]node{}, map[string]node{"d/a": {file, "aaa"}, "d/b": {file, "bbb"}, "e": {file, "other"}}}
		hashes := fields{}
		for path, content := range outputs {
			hashes[path] = "sha256:" + hexOf(content)
		}
		status := fields{"status": "success", "cmp01": "pass", "completed_at": fmt.Sprintf("2026-01-0%dT03:04:05Z", i+1), "error": nil}
		task := fmt.Sprintf(`{ "task_id": "task %d", "inputs": [] }`, i)
		f.set(lawStatus, status)
		f.set(lawHashes, fields{"validator_semver": "1.1.0", "hashes": hashes})
		proof := fields{"restoration_result": fields{"verified": true}, "note": fmt.Sprint("caf\u00e9 \U0001f4a1 ", i)}
		proof["proof_hash"] = hexOf(onlyASCII(plainjson.Canonical(proof)))
		f.set(lawProof, proof)
		f.entries[lawTask] = node{file, task}
		f.sign(rootOf(task, hashes, status), keyNumber(i/2))
		all = append(all, f)
	}
	return all
}

func (f *folder) set(name string, object fields) {
	f.entries[name] = node{file, plainjson.Canonical(object)}
}

// site is where mutants are put on the disk, and verified. What did not change
// since the one before is not written again.
type site struct {
	t       testing.TB
	root    string
	run     *verify.Run
	written map[string]node
}

func newSite(t testing.TB) *site {
	root := t.TempDir()
	s := &site{t: t, root: root, written: map[string]node{}}
	must(t, os.MkdirAll(filepath.Join(root, "d"), 0o755))
	must(t, os.MkdirAll(filepath.Join(root, "run-1"), 0o755))
	project, err := pathsafe.OpenRoot(root)
	must(t, err)
	t.Cleanup(func() { project.Close() })
	s.run, err = verify.OpenRun(project, filepath.Join(root, "run-1"))
	must(t, err)
	t.Cleanup(func() { s.run.Close() })
	return s
}

// put makes the disk hold a folder.
func (s *site) put(f *folder) {
	s.t.Helper()
	want := maps.Clone(f.outputs)
	for name, n := range f.entries {
		want["run-1/"+name] = n
	}
	for path := range s.written {
		if n, ok := want[path]; !ok || n != s.written[path] {
			must(s.t, os.RemoveAll(filepath.Join(s.root, path)))
			delete(s.written, path)
		}
	}
	for path, n := range want {
		if _, ok := s.written[path]; !ok {
			must(s.t, n.make(filepath.Join(s.root, path)))
			s.written[path] = n
		}
	}
}

func (n node) make(path string) error {
	switch n.kind {
	case dirNode:
		return os.Mkdir(path, 0o755)
	case fifoNode:
		return unix.Mkfifo(path, 0o644)
	case linkNode:
		return os.Symlink(n.data, path)
	}
	return os.WriteFile(path, []byte(n.data), 0o644)
}

// verify is the product's verdict on a folder.
func (s *site) verify(f *folder) (b *verify.Bundle, code verify.Code) {
	s.t.Helper()
	s.put(f)
	err := inTime(s.t, func() (err error) {
		b, err = verify.Strict(s.t.Context(), s.run, verify.Watch{})
		return err
	})
	if (b == nil) != (err != nil) {
		s.t.Fatalf("bundle %v, error %v", b, err)
	}
	if err != nil {
		return nil, rejected(s.t, err).Code
	}
	return b, verify.OK
}

// FuzzBundle applies up to 24 mutations to a run directory and its outputs, some of which sign it
// again, and requires the verdict and code of the law. A run that was not signed again is accepted
// only as one of the originals.
func FuzzBundle(f *testing.F) {
	tried := sample.Every(f, 16) // TestJudge tries them as well
	if flag.Lookup("test.fuzz").Value.String() != "" {
		tried = sample.All
	}
	for i, text := range seedInputs() {
		if tried.Has(i + 1) {
			f.Add([]byte(text))
		}
	}
	originals := goodFolders()
	s := newSite(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		s.t = t
		checkMutant(t, s, originals, text)
	})
}

func checkMutant(t testing.TB, s *site, originals []*folder, text []byte) verify.Code {
	t.Helper()
	m := &mutant{choices: &choices{text}, originals: originals}
	first := m.other()
	m.folder = folder{maps.Clone(first.entries), maps.Clone(first.outputs)}
	m.mutate()
	want := judge(&m.folder)
	b, code := s.verify(&m.folder)
	if code != want.code {
		t.Fatalf("%s, want %s, after %q: %.2000v", code, want.code, m.applied, m.folder)
	}
	if b == nil {
		return code
	}
	checkAccepted(t, b, want, &m.folder)
	if !m.signed && !isOriginal(originals, want) {
		t.Fatalf("accepted without a new signature, after %q: %v", m.applied, m.folder)
	}
	return code
}

// checkAccepted requires the bundle to have the signed values and the bytes of the folder.
func checkAccepted(t testing.TB, b *verify.Bundle, want sentence, f *folder) {
	t.Helper()
	if b.Root() != want.root || b.ValidatorID() != want.id || b.RunID() != "run-1" {
		t.Errorf("%s of %s in %s, want %s of %s", b.Root(), b.ValidatorID(), b.RunID(), want.root, want.id)
	}
	n := 0
	for o := range b.Outputs() {
		path := o.Path().String()
		content, ok := f.content(path)
		if !ok || o.Hash() != want.hashes[path] || o.Size() != int64(len(content)) {
			t.Errorf("output %q: %s, %d bytes", path, o.Hash(), o.Size())
		}
		if f.outputs[path].kind == linkNode { // it can be verified, and not restored
			if _, err := o.Open(nil); !errors.Is(err, pathsafe.ErrSymlink) {
				t.Errorf("output %q is a link, and opening it gives %v", path, err)
			}
		} else if got := readAll(t, o); got != content {
			t.Errorf("output %q holds %q", path, got)
		}
		n++
	}
	if n != len(want.hashes) {
		t.Errorf("%d outputs, want %d", n, len(want.hashes))
	}
}

func isOriginal(originals []*folder, s sentence) bool {
	for _, f := range originals {
		if o := judge(f); o.root == s.root && o.id == s.id {
			return true
		}
	}
	return false
}

// seedInputs are texts that begin with each of the mutations, on each artifact.
func seedInputs() []string {
	all := []string{"", "\x01", "\x02", "\x00\x0a\x01", "\x00\x00\x06\x01"}
	for i := range bundleMutations {
		for j := range lawOrder {
			all = append(all, string([]byte{byte(j), byte(i), byte(j), 1, 1}))
			all = append(all, string([]byte{0, byte(i), byte(j), 3, 2, 9, 1, 12, 0, 3, 9, 0}))
			all = append(all, string([]byte{0, 15, 2, byte(j), 15, byte(i), byte(j), 1, 1, 9, byte(j)}))
			all = append(all, string([]byte{0, 12, byte(j), byte(i), byte(j), 15, byte(j), 2, byte(i), 9, 0}))
			all = append(all, string([]byte{0, 4, 5, byte(i), byte(10 * j), 10, 0, 4, 1, byte(j), byte(i), 9, 0, 4, 6, byte(i), byte(j)}))
		}
	}
	return all
}

// TestJudge: the law in memory and the product agree on all that fuzzing starts
// from, and that reaches every code of SPECTRUM-05 that a single bundle can
// have, and what is good. The sample need not reach every code.
func TestJudge(t *testing.T) {
	s, originals := newSite(t), goodFolders()
	for i, f := range originals {
		if _, code := s.verify(f); code != verify.OK || judge(f).code != verify.OK {
			t.Fatalf("original %d: %s, %s", i, code, judge(f).code)
		}
	}
	codes := map[verify.Code]int{}
	tried := sample.Every(t, 8)
	for i, text := range seedInputs() {
		if !tried.Has(i + 1) {
			continue
		}
		codes[checkMutant(t, s, originals, []byte(text))]++
	}
	if t.Log(codes); len(codes) == 0 {
		t.Error("no input was tried")
	}
	if tried != sample.All {
		return
	}
	for _, code := range strings.Fields("OK ARTIFACT_EXTRA ARTIFACT_MALFORMED ARTIFACT_MISSING BUNDLE_ROOT_MISMATCH FORBIDDEN_ARTIFACT HASH_MISMATCH IDENTITY_MISMATCH OUTPUT_MISSING SIGNATURE_INVALID") {
		if codes[verify.Code(code)] == 0 {
			t.Errorf("no program leads to %s", code)
		}
	}
}
