package bundle_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

func TestKeyRoundTrip(t *testing.T) {
	key, err := bundle.GenerateKey()
	must(t, err)
	path := filepath.Join(t.TempDir(), "key.pem")
	must(t, key.Save(path))
	info, err := os.Lstat(path)
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	again, err := bundle.LoadKey(path)
	if err != nil || again.ValidatorID() != key.ValidatorID() {
		t.Errorf("loaded another key: %v", err)
	}
	other, err := bundle.GenerateKey()
	must(t, err)
	if other.ValidatorID() == key.ValidatorID() {
		t.Error("two new keys are the same")
	}
}

// TestKeyFileOfOpenSSL reads what "openssl genpkey -algorithm ed25519" writes.
func TestKeyFileOfOpenSSL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.pem")
	must(t, os.WriteFile(path, []byte("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"), 0o400))
	key, err := bundle.LoadKey(path)
	if err != nil || key.ValidatorID() != keyOf(t, goldenSeed).ValidatorID() {
		t.Errorf("not the first key of RFC 8032: %v", err)
	}
}

// TestLoadKeyRejects: each case spoils one good key file. None may hang, so
// each gets a time limit.
func TestLoadKeyRejects(t *testing.T) {
	rename := func(t *testing.T, path string) string {
		must(t, os.Rename(path, path+".real"))
		return path + ".real"
	}
	cases := map[string]func(t *testing.T, path string){
		"mode 0640":     func(t *testing.T, path string) { must(t, os.Chmod(path, 0o640)) },
		"mode 0604":     func(t *testing.T, path string) { must(t, os.Chmod(path, 0o604)) },
		"mode 0610":     func(t *testing.T, path string) { must(t, os.Chmod(path, 0o610)) },
		"mode 0602":     func(t *testing.T, path string) { must(t, os.Chmod(path, 0o602)) },
		"mode 0777":     func(t *testing.T, path string) { must(t, os.Chmod(path, 0o777)) },
		"two links":     func(t *testing.T, path string) { must(t, os.Link(path, path+".2")) },
		"missing":       func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"symbolic link": func(t *testing.T, path string) { must(t, os.Symlink(rename(t, path), path)) },
		"dangling link": func(t *testing.T, path string) { must(t, os.Symlink(rename(t, path)+"x", path)) },
		"FIFO":          func(t *testing.T, path string) { rename(t, path); must(t, unix.Mkfifo(path, 0o600)) },
		"directory":     func(t *testing.T, path string) { rename(t, path); must(t, os.Mkdir(path, 0o700)) },
		"socket":        func(t *testing.T, path string) { rename(t, path); must(t, unix.Mknod(path, unix.S_IFSOCK|0o600, 0)) },
		"empty":         func(t *testing.T, path string) { rewrite(t, path, func([]byte) []byte { return nil }) },
		"cut":           func(t *testing.T, path string) { rewrite(t, path, func(d []byte) []byte { return d[:len(d)-5] }) },
		"trailing byte": func(t *testing.T, path string) { rewrite(t, path, func(d []byte) []byte { return append(d, 'x') }) },
		"trailing line": func(t *testing.T, path string) { rewrite(t, path, func(d []byte) []byte { return append(d, '\n') }) },
		"two keys":      func(t *testing.T, path string) { rewrite(t, path, func(d []byte) []byte { return append(d, d...) }) },
		"padded beyond": func(t *testing.T, path string) {
			rewrite(t, path, func(d []byte) []byte { return append(bytes.Repeat([]byte("#\n"), 10<<10), d...) })
		},
		"other type":     func(t *testing.T, path string) { replaceIn(t, path, "PRIVATE", "PUBLIC") },
		"not base64":     func(t *testing.T, path string) { replaceIn(t, path, "MC4C", "****") },
		"not DER":        func(t *testing.T, path string) { replaceIn(t, path, "MC4C", "AAAA") },
		"another's file": func(t *testing.T, path string) { needRoot(t); must(t, os.Chown(path, 65534, 65534)) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeKey(t, ed25519.NewKeyFromSeed(fromHex(t, goldenSeed)))
			if _, err := bundle.LoadKey(path); err != nil {
				t.Fatalf("the good file is refused: %v", err)
			}
			spoil(t, path)
			refused(t, path)
		})
	}
}

func TestLoadKeyRejectsOtherKinds(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	refused(t, writeKey(t, rsaKey))
	refused(t, writeKey(t, ecKey))
}

// refused loads a key, which must fail within seconds and give no key.
func refused(t *testing.T, path string) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		key, err := bundle.LoadKey(path)
		if err == nil {
			err = errAccepted
		} else if !reflect.ValueOf(key).IsZero() {
			err = errors.New("a key came with the error")
		} else if !strings.Contains(err.Error(), "key.pem") {
			err = errors.New("the error does not name the file: " + err.Error())
		} else {
			err = nil
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("LoadKey hangs")
	}
}

var errAccepted = errors.New("accepted")

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
}

func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(data), 0o600))
}

func replaceIn(t *testing.T, path, old, new string) {
	t.Helper()
	rewrite(t, path, func(d []byte) []byte {
		if !bytes.Contains(d, []byte(old)) {
			t.Fatalf("%q is not in the file", old)
		}
		return bytes.ReplaceAll(d, []byte(old), []byte(new))
	})
}

// TestSaveNeverReplaces: an existing file of any kind stays as it is.
func TestSaveNeverReplaces(t *testing.T) {
	key := keyOf(t, goldenSeed)
	for name, make := range map[string]func(path string) error{
		"file":          func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) },
		"empty file":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"FIFO":          func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "key.pem")
		must(t, make(path))
		before := bundletest.Snapshot(t, dir)
		if err := key.Save(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if after := bundletest.Snapshot(t, dir); after != before {
			t.Errorf("%s: changed:\n%s", name, bundletest.Changes(before, after))
		}
	}
}

func TestSaveFails(t *testing.T) {
	key := keyOf(t, goldenSeed)
	if err := key.Save(filepath.Join(t.TempDir(), "missing", "key.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such directory: %v", err)
	}
	closed := t.TempDir()
	must(t, os.Chmod(closed, 0o555))
	must(t, os.Chmod(filepath.Dir(closed), 0o755)) // the directory can be entered
	asNobody(t, func() {
		if err := key.Save(filepath.Join(closed, "key.pem")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a directory that is not ours: %v", err)
		}
	})
	if got := bundletest.Snapshot(t, closed); strings.Contains(got, "key") {
		t.Errorf("something was left: %s", got)
	}
}

// TestZeroKey signs nothing and is saved nowhere.
func TestZeroKey(t *testing.T) {
	var key bundle.Key
	dir := t.TempDir()
	if err := key.Save(filepath.Join(dir, "key.pem")); err == nil {
		t.Error("saved")
	}
	if id := key.ValidatorID(); id != "" {
		t.Errorf("validator id %q", id)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

// TestPublicKeyIsDerived: a key file may also contain a public key (RFC 5958). It is never used: an
// attacker who could choose it would learn the private key from two signatures.
func TestPublicKeyIsDerived(t *testing.T) {
	seed := fromHex(t, goldenSeed)
	right := keyOf(t, goldenSeed)
	for _, public := range append(encodings(t), bytes.Repeat([]byte{7}, 32), ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)) {
		der := slices.Concat([]byte{0x30, 0x51, 2, 1, 1, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20}, seed, []byte{0x81, 0x21, 0}, public)
		path := filepath.Join(t.TempDir(), "key.pem")
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
		key, err := bundle.LoadKey(path)
		if must(t, err); key.ValidatorID() != right.ValidatorID() {
			t.Errorf("public key %x was taken from the file", public)
		}
	}
}

// TestWeakKeyIsNoKey: no seed is known that leads to a public key of small order. It would be
// rejected.
func TestWeakKeyIsNoKey(t *testing.T) {
	seed := fromHex(t, goldenSeed)
	if _, err := bundle.CheckKey(ed25519.NewKeyFromSeed(seed)); err != nil {
		t.Fatal(err)
	}
	for _, public := range encodings(t) {
		if key, err := bundle.CheckKey(ed25519.PrivateKey(slices.Concat(seed, public))); err == nil || !reflect.ValueOf(key).IsZero() {
			t.Errorf("%x: key %v, error %v", public, key, err)
		}
	}
}
