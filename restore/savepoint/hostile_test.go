package savepoint_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// damaged fails the test unless err names this savepoint.
func damaged(t testing.TB, err error, runDir string) {
	t.Helper()
	var damage *savepoint.DamageError
	if !errors.As(err, &damage) || damage.RunDir != runDir || !strings.Contains(err.Error(), filepath.Base(runDir)) {
		t.Errorf("%v; want damage of %q", err, runDir)
	}
}

// wantDamage asks in every way that reads a whole chain.
func (s *testStore) wantDamage(root, runDir string) {
	s.Helper()
	damaged(s, s.VerifyChain(root, ""), runDir)
	all, err := s.List(root)
	damaged(s, err, runDir)
	_, other := s.List("")
	damaged(s, other, runDir)
	sp, found := s.Find(strings.Repeat("0", 64))
	damaged(s, found, runDir)
	if all != nil || sp.ID() != "" {
		s.Errorf("with the error came %v %v", all, sp)
	}
}

// partlySigned are the artifacts that the signature does not cover whole: of
// OUTPUT_HASHES.json only the hashes, nothing of PROOF.json, whose own hash is
// optional, and not the signature's own date.
var partlySigned = []string{bundle.OutputHashes, bundle.Proof, bundle.Signature}

var signedFiles = []string{bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Identity, bundle.SignedPayload}

// TestEveryByte of every file of a savepoint is changed, and every length cut: it
// is damage, or it is the very same savepoint.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.add("/r", "a")
	sp := s.list("/r")[0]
	report, err := sp.Report()
	must(t, err)
	files, err := os.ReadDir(sp.RunDir())
	must(t, err)
	if len(files) != 9 {
		t.Fatalf("%d files", len(files))
	}
	tried := sample.Every(t, 7)
	for _, f := range files {
		path := filepath.Join(sp.RunDir(), f.Name())
		raw, err := os.ReadFile(path)
		must(t, err)
		same := 0
		for i := tried.First - 1; i < len(raw); i += tried.Every {
			changed := append([]byte{}, raw...)
			changed[i] ^= 1
			for _, bad := range [][]byte{changed, raw[:i]}[:1+(i+7)%8/7] { // cut at every eighth
				must(t, os.WriteFile(path, bad, 0o644))
				err := s.VerifyChain("/r", s.key.ValidatorID())
				if err != nil {
					damaged(t, err, sp.RunDir())
					continue
				}
				same++
				again := s.list("/r")[0]
				if other, err := again.Report(); again.ID() != sp.ID() || again.Created() != sp.Created() || err != nil || !reflect.DeepEqual(other, report) {
					t.Fatalf("%s, byte %d: another savepoint", f.Name(), i)
				}
			}
		}
		if same > 0 && !slices.Contains(partlySigned, f.Name()) {
			t.Errorf("%s: %d changes were not noticed", f.Name(), same)
		}
		must(t, os.WriteFile(path, raw, 0o644))
	}
	must(t, s.VerifyChain("/r", ""))
}

// TestMissingFile: each file of a savepoint is needed.
func TestMissingFile(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	id := s.add("/r")
	sp := s.list("/r")[1]
	files, err := os.ReadDir(sp.RunDir())
	must(t, err)
	for _, f := range files {
		path := filepath.Join(sp.RunDir(), f.Name())
		for name, put := range inPlace() {
			raw, err := os.ReadFile(path)
			must(t, err)
			must(t, os.Remove(path))
			must(t, put(path))
			inTime(t, func() { damaged(t, s.VerifyChain("/r", ""), sp.RunDir()) })
			isReport := strings.HasPrefix(f.Name(), "COMMIT_REPORT")
			if !isReport {
				inTime(t, func() { s.wantDamage("/r", sp.RunDir()) })
				_, ok, err := s.Tip("/r")
				damaged(t, err, sp.RunDir())
				if _, err := s.Prepare(t.Context(), "/r", newAttempt(), draft(t, "x"), s.key, "x"); err == nil || ok {
					t.Errorf("%s is %s: prepared behind it", f.Name(), name)
				}
			} else if _, err := sp.Report(); err == nil {
				t.Errorf("%s is %s: there is a report", f.Name(), name)
			}
			must(t, os.RemoveAll(path))
			must(t, os.WriteFile(path, raw, 0o644))
		}
	}
	s.wantChain("/r", sp.Parent(), id)
}

// inPlace puts something in the place of a file.
func inPlace() map[string]func(path string) error {
	return map[string]func(path string) error{
		"nothing":   func(string) error { return nil },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o644) },
		"socket":    func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) },
		"link":      func(path string) error { return os.Symlink("/dev/zero", path) },
		"loop":      func(path string) error { return os.Symlink(filepath.Base(path), path) },
	}
}

// TestLinkedFile: the very same file behind a link is none.
func TestLinkedFile(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	dir := s.list("/r")[0].RunDir()
	for _, name := range append(signedFiles, "COMMIT_REPORT.md") {
		path := filepath.Join(dir, name)
		must(t, os.Rename(path, filepath.Join(s.path, "../kept")))
		must(t, os.Symlink(filepath.Join(s.path, "../kept"), path))
		damaged(t, s.VerifyChain("/r", ""), dir)
		must(t, os.Remove(path))
		must(t, os.Rename(filepath.Join(s.path, "../kept"), path))
	}
	must(t, s.VerifyChain("/r", ""))
}

// TestMoved: savepoints that are not where they belong.
func TestMoved(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, s *testStore, dirs []string) (broken string){
		"removed from the middle": func(t *testing.T, s *testStore, dirs []string) string {
			must(t, os.RemoveAll(dirs[1]))
			return dirs[2]
		},
		"removed at the begin": func(t *testing.T, s *testStore, dirs []string) string {
			must(t, os.RemoveAll(dirs[0]))
			return dirs[1]
		},
		"order swapped": func(t *testing.T, s *testStore, dirs []string) string {
			a := filepath.Join(filepath.Dir(dirs[0]), "000002"+filepath.Base(dirs[2])[6:])
			must(t, os.Rename(dirs[1], dirs[1]+".x"))
			must(t, os.Rename(dirs[2], a))
			must(t, os.Rename(dirs[1]+".x", filepath.Join(filepath.Dir(dirs[0]), "000003"+filepath.Base(dirs[1])[6:])))
			return a
		},
		"content swapped": func(t *testing.T, s *testStore, dirs []string) string {
			must(t, os.Rename(dirs[1], s.path+".x"))
			must(t, os.Rename(dirs[2], dirs[1]))
			must(t, os.Rename(s.path+".x", dirs[2]))
			return dirs[1]
		},
		"doubled": func(t *testing.T, s *testStore, dirs []string) string {
			to := filepath.Join(filepath.Dir(dirs[0]), "000003-ffffffff-ffff-4fff-bfff-ffffffffffff")
			must(t, os.CopyFS(to, os.DirFS(dirs[2])))
			return to
		},
		"copied to the end": func(t *testing.T, s *testStore, dirs []string) string {
			to := filepath.Join(filepath.Dir(dirs[0]), "000004"+filepath.Base(dirs[0])[6:])
			must(t, os.CopyFS(to, os.DirFS(dirs[0])))
			return to
		},
		"another root's": func(t *testing.T, s *testStore, dirs []string) string {
			attempt := newAttempt()
			s.prepare("/other", attempt)
			found, err := filepath.Glob(s.path + "/*/prepared/*" + attempt)
			must(t, err)
			must(t, os.RemoveAll(dirs[1]))
			must(t, os.RemoveAll(dirs[2]))
			must(t, os.RemoveAll(dirs[0]))
			to := filepath.Join(filepath.Dir(dirs[0]), filepath.Base(found[0]))
			must(t, os.Rename(found[0], to))
			return to
		},
		"foreign file": func(t *testing.T, s *testStore, dirs []string) string {
			write(t, filepath.Dir(dirs[0]), "notes")
			return filepath.Join(filepath.Dir(dirs[0]), "notes")
		},
		"hidden file": func(t *testing.T, s *testStore, dirs []string) string {
			write(t, filepath.Dir(dirs[0]), ".x")
			return filepath.Join(filepath.Dir(dirs[0]), ".x")
		},
		"seven digits": func(t *testing.T, s *testStore, dirs []string) string {
			to := filepath.Join(filepath.Dir(dirs[0]), "0"+filepath.Base(dirs[0]))
			must(t, os.Rename(dirs[0], to))
			return to
		},
		"link": func(t *testing.T, s *testStore, dirs []string) string {
			must(t, os.Rename(dirs[1], s.path+".x"))
			must(t, os.Symlink(s.path+".x", dirs[1]))
			return dirs[1]
		},
		"FIFO": func(t *testing.T, s *testStore, dirs []string) string {
			must(t, os.RemoveAll(dirs[1]))
			must(t, unix.Mkfifo(dirs[1], 0o644))
			return dirs[1]
		},
		"linked chain": func(t *testing.T, s *testStore, dirs []string) string {
			chain := filepath.Dir(dirs[0])
			must(t, os.Rename(chain, s.path+".x"))
			must(t, os.Symlink(s.path+".x", chain))
			return filepath.Dir(chain)
		},
		"linked root": func(t *testing.T, s *testStore, dirs []string) string {
			key := filepath.Dir(filepath.Dir(dirs[0]))
			must(t, os.Rename(key, s.path+".x"))
			must(t, os.Symlink(s.path+".x", key))
			return key
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			var dirs []string
			for range 3 {
				s.add("/r")
			}
			for _, sp := range s.list("/r") {
				dirs = append(dirs, sp.RunDir())
			}
			t.Cleanup(func() { must(t, os.RemoveAll(s.path+".x")) })
			broken := move(t, s, dirs)
			inTime(t, func() { damaged(t, s.VerifyChain("/r", ""), broken) })
			if err := s.VerifyChain("/r", strings.Repeat("0", 64)); err == nil {
				t.Error("the chain verifies")
			}
		})
	}
}

// TestLinkedSavepoint: the very same savepoint behind a link is none.
func TestLinkedSavepoint(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	dir := s.list("/r")[0].RunDir()
	t.Cleanup(func() { must(t, os.RemoveAll(s.path+".x")) })
	must(t, os.Rename(dir, s.path+".x"))
	must(t, os.Symlink(s.path+".x", dir))
	s.wantDamage("/r", dir)
	_, _, err := s.Tip("/r")
	damaged(t, err, dir)
}

// TestSameNumber: two savepoints, both good, with one number.
func TestSameNumber(t *testing.T) {
	s := newTestStore(t)
	one, two := newAttempt(), newAttempt()
	s.prepare("/r", one)
	s.prepare("/r", two)
	found, err := filepath.Glob(s.path + "/*/prepared/*")
	must(t, err)
	var last string
	for _, from := range found {
		last = strings.Replace(from, "/prepared/", "/chain/", 1)
		must(t, os.Rename(from, last))
	}
	s.wantDamage("/r", last)
}

// TestOtherHistory: a savepoint of another chain, by the same host, of the same
// root and with the right number.
func TestOtherHistory(t *testing.T) {
	s, other := newTestStore(t), newTestStore(t)
	other.key = s.key
	s.add("/r")
	other.add("/r")
	other.add("/r")
	from := other.list("/r")[1].RunDir()
	to := filepath.Join(filepath.Dir(s.list("/r")[0].RunDir()), filepath.Base(from))
	must(t, os.Rename(from, to))
	damaged(t, s.VerifyChain("/r", s.key.ValidatorID()), to)
}

// TestSkippedNumber: the host has signed a number that does not follow.
func TestSkippedNumber(t *testing.T) {
	s := newTestStore(t)
	id := s.add("/r")
	spec := s.list("/r")[0].Listing().TaskSpec()
	constraints, _ := spec.Get("constraints")
	object, _ := constraints.Object()
	record, _ := object.Get("savepoint")
	text := strings.NewReplacer(`"parent":null`, `"parent":"`+id+`"`, `"sequence":1`, `"sequence":3`).Replace(string(record.Append(nil)))
	dir := s.list("/r")[0].RunDir()
	to := filepath.Join(filepath.Dir(dir), "000003"+filepath.Base(dir)[6:])
	opts := bundle.KnownOptions{RunDir: to, Outputs: known(t, "a"), Key: s.key, BuildID: "x", Constraints: map[string]any{"savepoint": json.RawMessage(text)}, Extra: map[string][]byte{}}
	for _, name := range []string{"COMMIT_REPORT.md", "COMMIT_REPORT.json"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		opts.Extra[name] = raw
	}
	_, err := bundle.SealKnown(t.Context(), opts)
	must(t, err)
	if n := len(s.list("/r")); n != 2 {
		t.Fatalf("%d savepoints", n)
	}
	damaged(t, s.VerifyChain("/r", ""), to)
}

// TestForeignKey: a savepoint that another key has signed.
func TestForeignKey(t *testing.T) {
	s := newTestStore(t)
	host := s.key.ValidatorID()
	s.add("/r")
	other, err := bundle.GenerateKey()
	must(t, err)
	s.key = other
	s.add("/r")
	damaged(t, s.VerifyChain("/r", host), s.list("/r")[1].RunDir())
	must(t, s.VerifyChain("/r", ""))
}

// TestForeignInStore: what stands beside the roots.
func TestForeignInStore(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	for _, name := range []string{"notes", ".hidden", strings.Repeat("a", 64)} {
		write(t, s.path, name)
		_, err := s.List("")
		damaged(t, err, filepath.Join(s.path, name))
		must(t, os.Remove(filepath.Join(s.path, name)))
	}
}

// TestForeignBundle: a signed bundle that is not a savepoint, or says what a
// savepoint cannot say, though its key is the right one.
func TestForeignBundle(t *testing.T) {
	const zero = "0000000000000000000000000000000000000000000000000000000000000000"
	reports := map[string]any{"json": zero, "markdown": zero}
	for name, constraints := range map[string]func(attempt string) map[string]any{
		"none": func(string) map[string]any { return nil },
		"a text": func(string) map[string]any {
			return map[string]any{"savepoint": "x"}
		},
		"null": func(string) map[string]any { return map[string]any{"savepoint": nil} },
		"more": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": nil, "commit_report": reports, "restore_root": "/r", "sequence": 1, "x": 1}}
		},
		"less": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "commit_report": reports, "restore_root": "/r", "sequence": 1}}
		},
		"upper case": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"Attempt": a, "parent": nil, "commit_report": reports, "restore_root": "/r", "sequence": 1}}
		},
		"unclean root": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": nil, "commit_report": reports, "restore_root": "/r/", "sequence": 1}}
		},
		"quoted root": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": nil, "commit_report": reports, "restore_root": `"/r"`, "sequence": 1}}
		},
		"half quoted root": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": nil, "commit_report": reports, "restore_root": `"/r`, "sequence": 1}}
		},
		"other number": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": nil, "commit_report": reports, "restore_root": "/r", "sequence": 2}}
		},
		"other attempt": func(string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": "x", "parent": nil, "commit_report": reports, "restore_root": "/r", "sequence": 1}}
		},
		"parent of the first": func(a string) map[string]any {
			return map[string]any{"savepoint": map[string]any{"attempt": a, "parent": zero, "commit_report": reports, "restore_root": "/r", "sequence": 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			attempt := newAttempt()
			s.prepare("/r", attempt)
			found, err := filepath.Glob(s.path + "/*/prepared/*")
			must(t, err)
			must(t, os.RemoveAll(found[0]))
			_, err = bundle.SealKnown(t.Context(), bundle.KnownOptions{
				RunDir: found[0], Outputs: known(t, "a"), Key: s.key, BuildID: "x", Constraints: constraints(attempt),
			})
			must(t, err)
			if id, err := s.Publish("/r", attempt); id != "" {
				t.Errorf("published %q", id)
			} else {
				damaged(t, err, found[0])
			}
			to := strings.Replace(found[0], "/prepared/", "/chain/", 1)
			must(t, os.Rename(found[0], to))
			s.wantDamage("/r", to)
		})
	}
}

// TestPreparedDamage: what was changed after it was prepared is not published, and
// can be dropped.
func TestPreparedDamage(t *testing.T) {
	s := newTestStore(t)
	attempt := newAttempt()
	s.prepare("/r", attempt)
	found, err := filepath.Glob(s.path + "/*/prepared/*")
	must(t, err)
	must(t, os.Remove(filepath.Join(found[0], bundle.Status)))
	_, err = s.Publish("/r", attempt)
	damaged(t, err, found[0])
	s.wantPending("/r", attempt)
	must(t, s.Drop("/r", attempt))
	s.wantPending("/r")
	write(t, filepath.Dir(found[0]), "foreign")
	s.wantPending("/r") // it hides nothing, and does not disturb
	attempt = newAttempt()
	s.prepare("/r", attempt)
	s.wantPending("/r", attempt)
	must(t, s.Drop("/r", attempt))
	s.add("/r")
}

func TestAmbiguous(t *testing.T) {
	if sp, err := savepoint.Pick("0123", "01234", "01235", "1"); !errors.Is(err, savepoint.ErrAmbiguous) || sp.ID() != "" {
		t.Errorf("%q, %v", sp.ID(), err)
	}
	if sp, err := savepoint.Pick("01234", "01234", "01235"); err != nil || sp.ID() != "01234" {
		t.Errorf("%q, %v", sp.ID(), err)
	}
	if _, err := savepoint.Pick("2", "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
