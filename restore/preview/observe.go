package preview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// observe condenses everything beneath a restore root into one digest: names,
// types, permissions, owners, sizes, inodes, and the times of modification and
// change. File contents are not read: changing them changes the times. Links
// are not followed, other mounts not entered.
func observe(ctx context.Context, root *pathsafe.Dir) (string, error) {
	h := sha256.New()
	st, err := root.Stat()
	if err != nil {
		return "", err
	}
	describe(h, "", st)
	err = root.Walk(ctx, func(rel string, st pathsafe.Stat) error {
		describe(h, rel, st)
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe writes one entry; %q keeps entries apart. Writes to a hash do not
// fail.
func describe(w io.Writer, rel string, st pathsafe.Stat) {
	_, _ = fmt.Fprintf(w, "%q %v %d %d:%d %d %d %d %d\n", rel, st.Mode, st.Size,
		st.UID, st.GID, st.ID.Dev, st.ID.Ino, st.ModTime.UnixNano(), st.ChangeTime.UnixNano())
}
