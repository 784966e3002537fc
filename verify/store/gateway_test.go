package store

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// gateway starts a server of S3 over a directory, and returns its address.
func gateway(t *testing.T) string {
	t.Helper()
	program := os.Getenv("VERSITYGW")
	if program == "" {
		t.Fatal("set VERSITYGW to the path of versitygw; \"make sweep\" builds and sets it")
	}
	top := t.TempDir()
	if err := os.Mkdir(filepath.Join(top, "runs"), 0o755); err != nil { // the bucket
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	free.Close()
	cmd := exec.Command(program, "--port", at, "posix", top)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY=secret-of-the-test")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
			return "http://" + at
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestGateway does what the other tests do with a real server, which checks signatures.
func TestGateway(t *testing.T) {
	sample.Need(t, sample.Sweep)
	proxy, err := farstore.NewProxyTo(gateway(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-test")
	s := quick(t, "s3://runs/team?endpoint="+server.URL)
	outputs := sampleOutputs()
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	records := state(t)
	mustPush(t, s, b, records)
	if again := mustPush(t, s, b, records); !again.Existed || again.Packs != 0 {
		t.Errorf("%+v", again)
	}
	for name, fault := range map[string]farstore.Fault{
		"": nil, "busy": farstore.Status(http.StatusServiceUnavailable), "cut": farstore.Cut, "broken": farstore.Broken,
		"flipped": farstore.Changed(func(_ http.Header, c []byte) []byte { c[0] ^= 1; return c }),
	} {
		if fault != nil {
			proxy.Break(farstore.On(http.MethodGet, "/packs/", 1, fault))
		}
		pulled, err := pull(t, s, b.Root())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, run, pulled, outputs)
	}
	proxy.Break(nil)
	if done := collect(t, s); done.Runs != 1 || done.Removed+done.Marked != 0 {
		t.Errorf("%+v", done)
	}
	if listed, err := s.Runs(t.Context()); err != nil || len(listed) != 1 || listed[0].Key != b.Root() {
		t.Errorf("%v, %v", listed, err)
	}

	// Of two that make an object at once one succeeds.
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = s.driver.PutIfAbsent(t.Context(), "packs/aa/race", []byte{byte(i)}) })
	}
	all.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, fs.ErrExist) && !isPassing(err) {
			t.Error(err)
		}
	}
	if made != 1 {
		t.Errorf("%d made it: %v", made, errs)
	}

	t.Setenv("AWS_SECRET_ACCESS_KEY", "another")
	if _, err := pull(t, quick(t, s.Address()), b.Root()); !isFault(err) {
		t.Errorf("with a wrong key: %v", err)
	}
}
