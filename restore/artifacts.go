package restore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// This file is law: the bytes of the two result artifacts (section 7).

// entry is an output in the manifest.
type entry struct {
	path   string
	size   int64
	digest [sha256.Size]byte
}

// append appends it to RESTORE_MANIFEST.json in canonical form (section 7.4), by hand: there may
// be millions.
func (e *entry) append(dst []byte) []byte {
	dst = append(dst, `{"bytes":`...)
	dst = strconv.AppendInt(dst, e.size, 10)
	dst = append(dst, `,"relative_path":`...)
	dst = canonjson.AppendText(dst, e.path)
	dst = append(dst, `,"sha256":"`+bundle.HashPrefix...)
	dst = hex.AppendEncode(dst, e.digest[:])
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
// by the bytes of their paths (section 7.4.5).
func (r *Run) makeArtifacts(chainRoot string) (err error) {
	r.perm = r.artifactPerm()
	r.manifest, r.report, err = artifactsOf(r.bundle.Root(), chainRoot, func(yield func(entry) bool) {
		for o := range r.bundle.Outputs() {
			if !yield(entry{o.Path().String(), o.Size(), o.Digest()}) {
				return
			}
		}
	})
	return err
}

// artifactsOf makes both artifacts. Count and sum are taken from the same entries (section 7.6).
func artifactsOf(bundleRoot, chainRoot string, entries iter.Seq[entry]) (manifest, rep string, err error) {
	totals := report{OK: true, BundleRoots: []string{bundleRoot}}
	if manifest, err = makeManifest(entries, &totals); err != nil {
		return "", "", err
	}
	if chainRoot != "" {
		totals.ChainRoot = &chainRoot
	}
	raw, err := canonjson.Marshal(totals)
	return manifest, string(raw), err
}

// artifactPerm is what every output grants, in directories that every reader of them may
// list and enter. Their owner always reads the artifacts.
func (r *Run) artifactPerm() fs.FileMode {
	perm := fs.FileMode(0o644)
	for o := range r.bundle.Outputs() {
		perm &= r.Perm(o)
	}
	return listedPerm(perm, r.bundle.Dirs())
}

// SourceReaders returns the permission bits of a file that shows contents of the run: it is for
// users who may read every source, whatever modes are signed.
func (r *Run) SourceReaders() fs.FileMode {
	perm := fs.FileMode(0o644)
	for o := range r.bundle.Outputs() {
		perm &= o.SourcePerm()
	}
	return listedPerm(perm, r.bundle.SourceDirs())
}

// listedPerm takes from the permission bits of a file that names everything in these directories
// what they do not grant.
func listedPerm(perm fs.FileMode, dirs iter.Seq2[string, fs.FileMode]) fs.FileMode {
	for _, granted := range dirs {
		for _, class := range []fs.FileMode{0o050, 0o005} {
			if granted&class != class {
				perm &^= class
			}
		}
	}
	return perm | 0o400
}

// makeManifest writes the manifest, and counts what it writes.
func makeManifest(entries iter.Seq[entry], rep *report) (string, error) {
	var m strings.Builder
	var text []byte
	m.Grow(manifestRoom(entries))
	m.WriteString(`{"entries":[`)
	for e := range entries {
		if !utf8.ValidString(e.path) {
			return "", fmt.Errorf("path %q is not UTF-8", e.path)
		}
		if rep.RestoredFilesCount > 0 {
			m.WriteByte(',')
		}
		text = e.append(text[:0])
		m.Write(text)
		rep.RestoredFilesCount++
		rep.RestoredBytes += e.size
	}
	m.WriteString("]}")
	return m.String(), nil
}

// entryRoom is what an entry takes beside its path.
const entryRoom = len(`{"bytes":,"relative_path":"","sha256":"sha256:"},`) + 64 + len("1000000000000")

// manifestRoom is about how many bytes the manifest takes: all but for what
// must be escaped in paths. Growing step by step would take twice as much.
func manifestRoom(entries iter.Seq[entry]) int {
	room := 0
	for e := range entries {
		room += len(e.path) + entryRoom
	}
	return room
}
