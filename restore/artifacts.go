package restore

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// This file is law: the bytes of the two result artifacts (section 7).

// appendEntry appends an entry of RESTORE_MANIFEST.json in canonical form
// (section 7.4), by hand: there may be millions.
func appendEntry(dst []byte, o verify.Output) []byte {
	digest := o.Digest()
	dst = append(dst, `{"bytes":`...)
	dst = strconv.AppendInt(dst, o.Size(), 10)
	dst = append(dst, `,"relative_path":`...)
	dst = canonjson.AppendText(dst, o.Path().String())
	dst = append(dst, `,"sha256":"`+bundle.HashPrefix...)
	dst = hex.AppendEncode(dst, digest[:])
	return append(dst, `"}`...)
}

// report is RESTORE_REPORT.json (section 7.5).
type report struct {
	OK                 bool     `json:"ok"`
	RestoredFilesCount int      `json:"restored_files_count"`
	RestoredBytes      int64    `json:"restored_bytes"`
	BundleRoots        []string `json:"bundle_roots"`
	ChainRoot          *string  `json:"chain_root"`
}

// makeArtifacts makes both artifacts from the verified outputs, which ascend
// by the bytes of their paths (section 7.4.5). Count and sum are taken from
// the same entries (section 7.6).
func (r *Run) makeArtifacts(chainRoot string) error {
	var err error
	rep := report{OK: true, BundleRoots: []string{r.bundle.Root()}}
	if r.manifest, err = r.makeManifest(&rep); err != nil {
		return err
	}
	if chainRoot != "" {
		rep.ChainRoot = &chainRoot
	}
	raw, err := canonjson.Marshal(rep)
	r.report, r.perm = string(raw), r.artifactPerm()
	return err
}

// artifactPerm is what every output grants, in directories that every reader of them may
// list and enter. Their owner always reads the artifacts.
func (r *Run) artifactPerm() fs.FileMode {
	perm := fs.FileMode(0o644)
	for o := range r.bundle.Outputs() {
		perm &= r.Perm(o)
	}
	for _, granted := range r.bundle.Dirs() {
		for _, class := range []fs.FileMode{0o050, 0o005} {
			if granted&class != class {
				perm &^= class
			}
		}
	}
	return perm | 0o400
}

// makeManifest writes the manifest, and counts what it writes.
func (r *Run) makeManifest(rep *report) (string, error) {
	var m strings.Builder
	var entry []byte
	m.Grow(r.manifestRoom())
	m.WriteString(`{"entries":[`)
	for o := range r.bundle.Outputs() {
		path := o.Path().String()
		if !utf8.ValidString(path) {
			return "", fmt.Errorf("path %q is not UTF-8", path)
		}
		if rep.RestoredFilesCount > 0 {
			m.WriteByte(',')
		}
		entry = appendEntry(entry[:0], o)
		m.Write(entry)
		rep.RestoredFilesCount++
		rep.RestoredBytes += o.Size()
	}
	m.WriteString("]}")
	return m.String(), nil
}

// entryRoom is what an entry takes beside its path.
const entryRoom = len(`{"bytes":,"relative_path":"","sha256":"sha256:"},`) + 64 + len("1000000000000")

// manifestRoom is about how many bytes the manifest takes: all but for what
// must be escaped in paths. Growing step by step would take twice as much.
func (r *Run) manifestRoom() int {
	room := 0
	for o := range r.bundle.Outputs() {
		room += len(o.Path().String()) + entryRoom
	}
	return room
}
