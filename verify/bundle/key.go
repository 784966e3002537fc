package bundle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// ErrKeyMode is the error for a key file that others may read.
var ErrKeyMode = errors.New("it is readable by others")

// Key signs bundles. The public key is always derived from the seed, never taken as input. The zero
// Key signs nothing.
type Key struct{ private ed25519.PrivateKey }

// GenerateKey makes a new key.
func GenerateKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("making a key: %w", err)
	}
	return newKey(private.Seed())
}

func newKey(seed []byte) (Key, error) { return checkKey(ed25519.NewKeyFromSeed(seed)) }

func checkKey(private ed25519.PrivateKey) (Key, error) {
	key := Key{private}
	if SmallOrder(key.public()) {
		return Key{}, errors.New("its public key has small order")
	}
	return key, nil
}

func (k Key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// ValidatorID is the key's identity: 64 lower-case hex digits, "" for the zero
// Key.
func (k Key) ValidatorID() string {
	if k.private == nil {
		return ""
	}
	return ValidatorID(k.public())
}

// SignDigest signs the SHA-256 of data that is not a bundle. The context names the type of the
// data, so that the signature is valid for no other type.
func (k Key) SignDigest(context string, digest [sha256.Size]byte) (public ed25519.PublicKey, signature []byte, err error) {
	if k.private == nil {
		return nil, nil, errNoKey
	}
	return k.public(), ed25519.Sign(k.private, digestMessage(context, digest)), nil
}

// DigestSigned reports whether a signature was made by [Key.SignDigest] with the key to which the
// public key belongs. It returns false for a public key of small order.
func DigestSigned(context string, digest [sha256.Size]byte, public ed25519.PublicKey, signature []byte) bool {
	return len(public) == ed25519.PublicKeySize && !SmallOrder(public) && ed25519.Verify(public, digestMessage(context, digest), signature)
}

// digestMessage returns a message that begins differently from that of a bundle, see [Message].
func digestMessage(context string, digest [sha256.Size]byte) []byte {
	return fmt.Appendf(nil, "spectrum %s\n%x\n", context, digest)
}

// errNoKey is the error for the zero Key.
var errNoKey = errors.New("no key")

// maxKeyFile bounds a key file; a PKCS#8 Ed25519 key has some 120 bytes.
const maxKeyFile = 16 << 10

// LoadKey reads a PKCS#8 PEM file. It rejects a file that another user could read or replace:
// other permissions than the owner's, another owner, more than one link, or not a regular
// file.
func LoadKey(path string) (Key, error) {
	data, err := readKeyFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("key file %q: %w", path, err)
	}
	key, err := parseKey(data)
	if err != nil {
		return Key{}, fmt.Errorf("key file %q: %w", path, err)
	}
	return key, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, st, err := pathsafe.OpenFile(path)
	if errors.Is(err, pathsafe.ErrNotRegular) {
		return nil, errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := checkKeyFile(st); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

func checkKeyFile(st pathsafe.Stat) error {
	switch {
	case st.Perm&0o077 != 0:
		return fmt.Errorf("%w (mode %04o)", ErrKeyMode, st.Perm&0o777)
	case int(st.UID) != os.Geteuid():
		return errors.New("it belongs to another user")
	case st.Links != 1:
		return errors.New("it has more than one hard link")
	}
	return nil
}

func parseKey(data []byte) (Key, error) {
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) != 0 {
		return Key{}, errors.New("not one PEM block of type PRIVATE KEY")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("not PKCS#8: %w", err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("a %T, not an Ed25519 key", parsed)
	}
	return newKey(private.Seed())
}

// Save writes the key as PKCS#8 PEM with mode 0600. The file appears whole or
// not at all, and an existing one is never replaced: that error is
// [fs.ErrExist].
func (k Key) Save(path string) error {
	dir, err := pathsafe.OpenOwn(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("key file %q: %w", path, err)
	}
	defer dir.Close()
	return k.SaveIn(dir, filepath.Base(path))
}

// SaveIn is [Key.Save] of a name in a directory that is open.
func (k Key) SaveIn(dir *pathsafe.Dir, name string) error {
	path := filepath.Join(dir.Name(), name)
	if k.private == nil {
		return fmt.Errorf("key file %q: %w", path, errNoKey)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err == nil {
		err = dir.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	}
	if err != nil {
		return fmt.Errorf("key file %q: %w", path, err)
	}
	return nil
}
