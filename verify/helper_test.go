package verify_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
)

var must = harness.Must

// strictOrder is the order in which SPECTRUM-05 checks the artifacts.
var strictOrder = []string{
	bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof, bundle.Identity, bundle.SignedPayload, bundle.Signature,
}

// newRun is a good run with two outputs.
func newRun(t testing.TB) *bundletest.Run {
	t.Helper()
	return bundletest.New(t).Run("run-1", map[string]string{"dist/a": "aaa", "dist/b": "bbb"})
}

// openRuns opens runs of one project for the time of the test.
func openRuns(t testing.TB, runs ...*bundletest.Run) []*verify.Run {
	t.Helper()
	if len(runs) == 0 {
		return nil
	}
	project, err := pathsafe.OpenRoot(runs[0].Root)
	must(t, err)
	t.Cleanup(func() { project.Close() })
	opened := make([]*verify.Run, len(runs))
	for i, r := range runs {
		opened[i], err = verify.OpenRun(project, r.Dir)
		must(t, err)
		t.Cleanup(func() { opened[i].Close() })
	}
	return opened
}

// strict verifies by SPECTRUM-05. A verdict that takes long is a hang.
func strict(t testing.TB, r *bundletest.Run) (*verify.Bundle, error) {
	t.Helper()
	run := openRuns(t, r)[0]
	var b *verify.Bundle
	err := inTime(t, func() (err error) {
		b, err = verify.Strict(t.Context(), run, verify.Watch{})
		return err
	})
	if (b == nil) != (err != nil) {
		t.Fatalf("bundle %v, error %v", b, err)
	}
	return b, err
}

// gate verifies as a restore does.
func gate(t testing.TB, r *bundletest.Run) (*verify.Gated, error) {
	t.Helper()
	run := openRuns(t, r)[0]
	var g *verify.Gated
	err := inTime(t, func() (err error) {
		g, err = verify.Gate(t.Context(), run, verify.Watch{})
		return err
	})
	if (g == nil) != (err != nil) {
		t.Fatalf("gated %v, error %v", g, err)
	}
	return g, err
}

// inTime fails the test when f does not come back.
func inTime(t testing.TB, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if everyVerdict != nil {
			everyVerdict(t, f, err)
		}
		return err
	case <-time.After(5 * time.Minute):
		t.Fatal("it hangs")
		return nil
	}
}

// rejected returns the verdict that err is; anything else fails the test.
func rejected(t testing.TB, err error) *verify.Reject {
	t.Helper()
	var reject *verify.Reject
	if !errors.As(err, &reject) {
		t.Fatalf("no verdict, but %v", err)
	}
	return reject
}

// want is an expected verdict.
type want struct {
	code    verify.Code
	details map[string]string
}

// about returns the details of a verdict on an artifact: its file, its field if there is one, and
// further ones.
func about(artifact string, field ...string) map[string]string {
	details := map[string]string{"artifact": artifact}
	if len(field) > 0 {
		details["field"] = field[0]
	}
	return details
}

func aboutPath(path string) map[string]string { return map[string]string{"path": path} }

// mismatch is what HASH_MISMATCH names.
func mismatch(path, expected, content string) map[string]string {
	return map[string]string{"path": path, "expected": expected, "actual": bundletest.Hash(content)}
}

// checkReject compares a verdict with what was expected, all but its words.
func checkReject(t testing.TB, err error, w want) {
	t.Helper()
	if err == nil {
		t.Errorf("accepted; want %s %v", w.code, w.details)
		return
	}
	reject := rejected(t, err)
	if reject.Code != w.code || !maps.Equal(reject.Details, w.details) {
		t.Errorf("got  %s %v\nwant %s %v\n(%s)", reject.Code, reject.Details, w.code, w.details, reject.Message)
	} else {
		caused.Store(w.code, true)
	}
	if i := strings.IndexFunc(reject.Message, func(r rune) bool { return !strconv.IsPrint(r) }); i >= 0 || reject.Message == "" {
		t.Errorf("%s: not one line that can be printed: %q", reject.Code, reject.Message)
	}
	if raw, err := reject.JSON(); err != nil || len(raw) == 0 {
		t.Errorf("%s cannot be written: %v", reject.Code, err)
	}
}

// always verifies many times under 1, 2 and 8 processors and requires the very same verdict.
func always(t *testing.T, do func() error) {
	t.Helper()
	_ = rejected(t, do())
	sameAnswer(t, func() string { return answerOf(do()) })
}

// set, drop and others change the fields of an artifact.
func set(field string, value any) func(map[string]any) {
	return func(f map[string]any) { f[field] = value }
}

func drop(field string) func(map[string]any) {
	return func(f map[string]any) { delete(f, field) }
}

// at names a file of the project.
func at(r *bundletest.Run, rel string) string { return filepath.Join(r.Root, rel) }

// replaceBy makes something else of a file of the project.
func replaceBy(t testing.TB, path string, make func(path string) error) {
	t.Helper()
	must(t, os.RemoveAll(path))
	must(t, make(path))
}

var (
	charDevice  = harness.Device(unix.S_IFCHR, 1, 3)
	blockDevice = harness.Device(unix.S_IFBLK, 7, 199)
)

// special are all those that are neither files nor links.
func special() map[string]func(string) error {
	kinds := map[string]func(string) error{"FIFO": harness.FIFO, "directory": harness.Directory, "socket": harness.Socket}
	if os.Geteuid() == 0 {
		kinds["character device"], kinds["block device"] = charDevice, blockDevice
	}
	return kinds
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func pathsOf(b *verify.Bundle) []string {
	var paths []string
	for o := range b.Outputs() {
		paths = append(paths, o.Path().String())
	}
	return paths
}

// outputAt finds an output of a verified bundle.
func outputAt(t testing.TB, b *verify.Bundle, path string) verify.Output {
	t.Helper()
	for o := range b.Outputs() {
		if o.Path().String() == path {
			return o
		}
	}
	t.Fatalf("no output %q", path)
	return verify.Output{}
}

// writeFile makes a new file, in the place of an old one if there is one.
func writeFile(path, content string) error {
	_ = os.Remove(path)
	return os.WriteFile(path, []byte(content), 0o644)
}

// proofHashOf computes the hash of a proof that has none.
func proofHashOf(t testing.TB, proof string) string {
	t.Helper()
	value, err := canonjson.Parse([]byte(proof))
	must(t, err)
	object, _ := value.Object()
	return bundle.ProofHash(object)
}

// readAll reads an output through its checked reader.
func readAll(t testing.TB, o verify.Output) string {
	t.Helper()
	source, err := o.Open(nil)
	must(t, err)
	defer source.Close()
	raw, err := io.ReadAll(io.NewSectionReader(source, 0, o.Size()+1))
	must(t, err)
	return string(raw)
}
