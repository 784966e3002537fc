package restore

import (
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// This file is law: the bytes of the two result artifacts (section 7).

// manifest is RESTORE_MANIFEST.json (section 7.4).
type manifest struct {
	Entries []manifestEntry `json:"entries"`
}

type manifestEntry struct {
	RelativePath string `json:"relative_path"`
	SHA256       string `json:"sha256"`
	Bytes        int64  `json:"bytes"`
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
	m := manifest{Entries: make([]manifestEntry, 0, r.bundle.Len())}
	rep := report{OK: true, BundleRoots: []string{r.bundle.Root()}}
	for o := range r.bundle.Outputs() {
		m.Entries = append(m.Entries, manifestEntry{o.Path().String(), o.Hash(), o.Size()})
		rep.RestoredFilesCount++
		rep.RestoredBytes += o.Size()
	}
	if chainRoot != "" {
		rep.ChainRoot = &chainRoot
	}
	var err error
	if r.manifest, err = canonjson.Marshal(m); err != nil {
		return err
	}
	r.report, err = canonjson.Marshal(rep)
	return err
}
