package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// farRun is a run in a store on a web server, which a test can break.
type farRun struct {
	proxy   *farstore.Proxy
	address string
	dir     string // the store
	root    string // the bundle root
	outputs map[string]string
}

// newFarRun pushes a run of two outputs, of which the second has several blocks.
func newFarRun(t *testing.T, withTable bool) *farRun {
	t.Helper()
	f := &farRun{outputs: map[string]string{"out/a": "alpha\n", "out/big": strings.Repeat("0123456789abcdef", 4*blocktable.DefaultBlock/16)}}
	project := bundletest.New(t)
	run := project.Run("run-1", f.outputs)
	if withTable {
		run.SetBlocks(project.Blocks(blocktable.DefaultBlock, f.outputs, nil), blocktable.DefaultBlock)
	}
	store := t.TempDir()
	pushed := strings.TrimSpace(must(t, "push", run.Dir, "file://"+store))
	f.proxy = farstore.NewProxy(http.FileServer(http.Dir(store)))
	server := httptest.NewServer(f.proxy)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	_, f.root, _ = strings.Cut(pushed, "@")
	f.dir, f.address = store, server.URL+"@"+f.root
	return f
}

// seen counts the requests since the last call, all and those for packs.
func (f *farRun) seen() (all, packs int) {
	for _, request := range f.proxy.Seen() {
		all++
		if strings.Contains(request, "/packs/") {
			packs++
		}
	}
	return all, packs
}

// TestLazyMountOfStore: a lazy view of a run in a store takes one request until it is there, none for its
// attributes, and one for a block.
func TestLazyMountOfStore(t *testing.T) {
	f := newFarRun(t, true)
	v := mountView(t, "--lazy", f.address)
	if all, packs := f.seen(); all != 1 || packs != 0 {
		t.Errorf("to mount it: %d requests, %d for packs", all, packs)
	}
	for path, content := range f.outputs {
		if st, err := os.Stat(filepath.Join(v.dir, path)); err != nil || st.Size() != int64(len(content)) {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
	if all, _ := f.seen(); all != 0 {
		t.Errorf("for the attributes: %d requests", all)
	}
	if raw, err := os.ReadFile(filepath.Join(v.dir, "out/a")); string(raw) != f.outputs["out/a"] {
		t.Errorf("%q, %v", raw, err)
	}
	if _, packs := f.seen(); packs != 1 {
		t.Errorf("for a block: %d requests for packs", packs)
	}
	if raw, err := os.ReadFile(filepath.Join(v.dir, "out/big")); string(raw) != f.outputs["out/big"] {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if said, err := v.stop(os.Interrupt); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// TestLazyLooksOfStore: ls fetches no output, cat and diff only what they print, and a run without a block
// table is fetched whole, which is told.
func TestLazyLooksOfStore(t *testing.T) {
	f := newFarRun(t, true)
	if out := must(t, "ls", "--lazy", f.address); out != "RESTORE_MANIFEST.json\nRESTORE_REPORT.json\nout/a\nout/big\n" {
		t.Errorf("%q", out)
	}
	if all, _ := f.seen(); all != 1 {
		t.Errorf("ls: %d requests", all)
	}
	if out := must(t, "cat", "--lazy", f.address, "out/a"); out != "alpha\n" {
		t.Errorf("%q", out)
	}
	if all, packs := f.seen(); all != 2 || packs != 1 {
		t.Errorf("cat: %d requests, %d for packs", all, packs)
	}
	if out, _, status := spectrum(t, "diff", "--lazy", "--name-status", f.address, t.TempDir()); status != 1 || !strings.Contains(out, "out/a\n") {
		t.Errorf("%q, exit status %d", out, status)
	}
	if all, packs := f.seen(); all != 1 || packs != 0 {
		t.Errorf("diff: %d requests, %d for packs", all, packs)
	}

	f = newFarRun(t, false)
	out, said, status := spectrum(t, "cat", "--lazy", f.address, "out/a")
	if status != 0 || out != "alpha\n" || !strings.Contains(said, "the run has no signed block table: all of it is fetched first\n") {
		t.Errorf("%q, %q, exit status %d", out, said, status)
	}
	view := t.TempDir()
	must(t, "mount", "--daemon", "--lazy", f.address, view)
	if raw, err := os.ReadFile(filepath.Join(view, "out/big")); string(raw) != f.outputs["out/big"] {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	must(t, "umount", view)
}

// TestLazyMountMeetsFaults: bytes that stay wrong, and a pack that is gone, are I/O errors and findings; a
// server that is busy is only an I/O error, until it is not.
func TestLazyMountMeetsFaults(t *testing.T) {
	flip := farstore.Changed(func(_ http.Header, c []byte) []byte { c[0] ^= 4; return c })
	for _, test := range []struct {
		name      string
		fault     farstore.Fault
		isFinding bool
		status    int
	}{
		{"wrong", flip, true, statusRejected},
		{"missing", farstore.Status(http.StatusNotFound), true, statusMachine},
		{"forbidden", farstore.Status(http.StatusForbidden), false, statusMachine},
	} {
		f := newFarRun(t, true)
		v := mountView(t, "--lazy", f.address)
		f.proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, test.fault))
		if raw, err := os.ReadFile(filepath.Join(v.dir, "out/a")); !errors.Is(err, syscall.EIO) || len(raw) > 0 {
			t.Errorf("%s: %q, %v", test.name, raw, err)
		}
		out, said, status := spectrum(t, "cat", "--lazy", f.address, "out/a")
		if status != test.status || out != "" {
			t.Errorf("%s: %q, %q, exit status %d", test.name, out, said, status)
		}
		f.proxy.Break(nil)
		if raw, err := os.ReadFile(filepath.Join(v.dir, "out/a")); string(raw) != f.outputs["out/a"] {
			t.Errorf("%s, afterwards: %q, %v", test.name, raw, err)
		}
		said, err := v.stop(os.Interrupt)
		if err != nil || strings.Contains(said, "level=ERROR") != test.isFinding {
			t.Errorf("%s: %v: %s", test.name, err, said)
		}
	}
}

// TestLazyMountOfDeadServer: a reader of a server that does not answer can be killed, and the view
// unmounted.
func TestLazyMountOfDeadServer(t *testing.T) {
	f := newFarRun(t, true)
	v := mountView(t, "--lazy", f.address)
	asked := make(chan struct{}, 100)
	f.proxy.Break(farstore.On(http.MethodGet, "/packs/", 0, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		asked <- struct{}{}
		farstore.Silence(w, r, server)
	}))
	reader := exec.CommandContext(t.Context(), "cat", filepath.Join(v.dir, "out/a"))
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := reader.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = reader.Wait()
	cat := command(t, "cat", "--lazy", f.address, "out/a")
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cat.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cat.Wait()
	if status := cat.ProcessState.ExitCode(); status != statusInterrupted {
		t.Errorf("cat was interrupted: exit status %d", status)
	}
	if said, err := v.stop(os.Interrupt); err != nil || isMounted(t, v.dir) || strings.Contains(said, "level=ERROR") {
		t.Errorf("%v: %s", err, said)
	}
	harness.Eventually(t, "nothing is left of the runs", func() bool {
		left, err := filepath.Glob(filepath.Join(stateHome(t), "spectrum/fetched/.*"))
		return err == nil && len(left) == 0
	})
}
