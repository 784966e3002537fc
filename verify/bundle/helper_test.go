package bundle_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

var must = harness.Must

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(s)
	must(t, err)
	return raw
}

// sealing is a project and the options to seal something of it.
type sealing struct {
	*bundletest.Project
	opts bundle.SealOptions
}

// goldenSeed is the first key of RFC 8032, section 7.1.
const goldenSeed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"

func newSealing(t testing.TB) *sealing {
	t.Helper()
	project := bundletest.New(t)
	dir, err := pathsafe.OpenRoot(project.Root)
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	return &sealing{project, bundle.SealOptions{
		Project: dir,
		RunDir:  filepath.Join(project.Root, "CONTRACTS", "_runs", "run-1"),
		Key:     keyOf(t, goldenSeed),
		BuildID: "git:abc1234",
		Now:     time.Date(2026, 1, 2, 5, 4, 5, 678_000_000, time.FixedZone("", 2*3600)),
	}}
}

func (s *sealing) path(rel string) string { return filepath.Join(s.Root, rel) }

func (s *sealing) mkdir(rel string) { s.T.Helper(); must(s.T, os.MkdirAll(s.path(rel), 0o755)) }

func (s *sealing) symlink(target, rel string) {
	s.T.Helper()
	s.mkdir(filepath.Dir(rel))
	must(s.T, os.Symlink(target, s.path(rel)))
}

// node makes a special file.
func (s *sealing) node(rel string, mode uint32) {
	s.T.Helper()
	s.mkdir(filepath.Dir(rel))
	must(s.T, unix.Mknod(s.path(rel), mode|0o644, int(unix.Mkdev(1, 3))))
}

// keyOf makes a key of a seed, by way of a file: there is no other.
func keyOf(t testing.TB, seedHex string) bundle.Key {
	t.Helper()
	key, err := bundle.LoadKey(writeKey(t, ed25519.NewKeyFromSeed(fromHex(t, seedHex))))
	must(t, err)
	return key
}

// writeKey writes a private key of any kind as PKCS#8 PEM.
func writeKey(t testing.TB, private any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return path
}

// asNobody calls f on a thread that accesses files as a user without rights.
func asNobody(t testing.TB, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends here
		if err := unix.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}
