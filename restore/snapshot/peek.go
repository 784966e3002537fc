package snapshot

import (
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Peek returns the content with a digest from a store at a path, if a snapshot has it and it
// is not larger than most, in bytes. It takes no lock and makes nothing, not even a store; the
// result always matches the digest.
func Peek(store string, d Digest, most int64) ([]byte, error) {
	base, err := pathsafe.OpenRoot(store)
	if err != nil {
		return nil, err
	}
	defer base.Close()
	path, err := pathsafe.Parse(d.path())
	if err != nil {
		return nil, err
	}
	f, _, err := base.OpenRegular(path, pathsafe.NoLinks)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && (int64(len(content)) > most || Digest(sha256.Sum256(content)) != d) {
		err = fmt.Errorf("object %q: it is larger than %d bytes, or damaged", path, most)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}
