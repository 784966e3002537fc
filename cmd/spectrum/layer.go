package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// This file seals the upper layer of an overlay: of "spectrum run", and of "spectrum seal --upper".

// sealLayer seals what is in an upper layer, which is at a path, as what has changed since lower. In a
// layer of "spectrum run" it makes what the seal needs: a place for the run directory, and unchanged
// files where the command has only removed some.
func (a *app) sealLayer(ctx context.Context, opts sealOptions, claims map[string]any, project *pathsafe.Dir, upper string, layer *bundle.Layer) (s sealedRun, err error) {
	isOwn := layer.Attributes != ""
	if isOwn {
		if err := makeRoom(project, layer.Attributes); err != nil {
			return s, err
		}
	}
	key, err := a.sealingKey(opts.key)
	if err != nil {
		return s, err
	}
	private, err := a.privateIn(layer.Lower.Name(), opts.key)
	if err != nil {
		return s, err
	}
	s = sealedRun{runDir: opts.runDir, isChangeSet: true, isFound: opts.runDir == ""}
	runDir := opts.runDir
	var in *pathsafe.Dir
	var another func() string
	if s.isFound {
		in = project // no link that is in the layer leads out of it
		another = func() string {
			s.runDir = freeRunDir(upper, time.Now(), opts.task)
			runDir = strings.TrimPrefix(s.runDir, upper+"/")
			return runDir
		}
		another()
	}
	bar := a.newBar("looking at the changes")
	defer bar.done()
	options := bundle.SealOptions{
		Project: project, Blocks: true, RunDir: runDir, In: in, Another: another, Outputs: []string{bundle.Whole}, Layer: layer, Inputs: opts.inputs, Constraints: claims, Key: key, BuildID: buildID(),
		Exclude: opts.exclude, SkipSpecial: opts.skipSpecial, Private: private, Restricted: a.restricted(claims), LeftOut: func(groups []bundle.LeftOut) { s.left = groups },
		Listed: func(files int, bytes int64) { bar.begin("sealing", files, bytes) }, Hashed: bar.add,
	}
	s.Sealed, err = bundle.Seal(ctx, options)
	if isOwn && errors.Is(err, bundle.ErrNothingCarried) {
		if err = a.carry(ctx, project, layer, opts, claims); err == nil {
			s.Sealed, err = bundle.Seal(ctx, options)
		}
	}
	bar.done()
	s.left.say(a)
	return s, err
}

// sealUpper is "spectrum seal --upper".
func (a *app) sealUpper(cmd *cobra.Command, opts sealOptions, claims map[string]any) error {
	upper, err := filepath.Abs(opts.upper)
	if err != nil {
		return err
	}
	if err := overlap("the upper layer", upper, []reserved{{"the lower layer", opts.lower}}); err != nil {
		return refusedHint(err, "name the upperdir and the lowerdir of an overlay")
	}
	lower, err := pathsafe.OpenRoot(opts.lower)
	if err != nil {
		return refusedHint(fmt.Errorf("the lower layer: %w", err), "name the lowerdir of the overlay")
	}
	defer lower.Close()
	layer := &bundle.Layer{Lower: lower}
	if err := readLayerRecord(upper, layer); err != nil {
		return err
	}
	project, err := openProject(upper)
	if err != nil {
		return err
	}
	defer project.Close()
	sealed, err := a.sealLayer(cmd.Context(), opts, claims, project, upper, layer)
	if err != nil {
		return sealError(err)
	}
	over, _ := lower.RealPath() // of one that was moved away it is not known
	a.noteCandidate(&sealed, over)
	sealed.say(a)
	return sealed.result(a, nil)
}

// makeRoom has a run directory find its place in a layer in which the command has removed
// CONTRACTS: what was there counts as removed as before.
func makeRoom(upper *pathsafe.Dir, attributes string) error {
	const top = "CONTRACTS"
	st, err := upper.Lstat(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && st.IsWhiteout() {
		if err = upper.Unlink(top); err == nil {
			err = upper.Mkdir(top, 0o755)
		}
		if err == nil {
			var node *pathsafe.Node
			if node, err = upper.Pin(top); err == nil {
				defer node.Close()
				err = node.SetXattr(pathsafe.Xattr{Name: attributes + "opaque", Value: "y"})
			}
		}
	}
	if err != nil || !st.Mode.IsDir() {
		return err
	}
	contracts, err := upper.OpenDir(top)
	if err != nil {
		return err
	}
	defer contracts.Close()
	runs := filepath.Base(runsDirs[0])
	if st, err = contracts.Lstat(runs); err == nil && st.IsWhiteout() {
		return contracts.Unlink(runs)
	}
	return nil
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// carry copies some unchanged files into a layer: a bundle has at least one output.
func (a *app) carry(ctx context.Context, upper *pathsafe.Dir, layer *bundle.Layer, opts sealOptions, claims map[string]any) error {
	restricted := a.restricted(claims)
	rules, err := ignore.New(layer.Lower, opts.exclude)
	if err != nil {
		return err
	}
	found := 0
	err = layer.Lower.WalkReadable(ctx, func(rel string, st pathsafe.Stat) error {
		isHidden := strings.HasPrefix(filepath.Base(rel), ".")
		by, err := rules.Match(rel, st.Mode.IsDir())
		switch {
		case err != nil:
			return err
		case st.Mode.IsDir() && (isHidden || st.ChangeTime.After(layer.Since) || by != "" || rel == runsDirs[0] || rel == runsDirs[1] || isInUpper(upper, rel, true)):
			return fs.SkipDir
		case !st.Mode.IsRegular() || isHidden || by != "" || restricted(rel) || st.ChangeTime.After(layer.Since) || isInUpper(upper, rel, false):
			return nil
		}
		if err := copyBelow(layer.Lower, upper, rel, st.Perm&0o777); err != nil {
			return err
		}
		if found++; found == bundle.MaxCarried {
			return errEnough
		}
		return nil
	}, func(string) {})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// isInUpper reports whether a path of the lower layer is hidden, or changed, by the upper one. A
// directory that is in both is not.
func isInUpper(upper *pathsafe.Dir, rel string, isDir bool) bool {
	path, err := pathsafe.Parse(rel)
	if err != nil {
		return true
	}
	st, err := upper.StatPath(path, pathsafe.NoLinks)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || !isDir || !st.Mode.IsDir() || isOpaque(upper, path)
}

func isOpaque(upper *pathsafe.Dir, path pathsafe.Path) bool {
	dir, err := upper.OpenParent(path, len(path.Components()))
	if err != nil {
		return true
	}
	defer dir.Close()
	all, err := dir.Node().ReadableXattrs(func(string, error) {})
	for _, x := range all {
		if x.Name == bundle.TrustedOverlay+"opaque" || x.Name == bundle.UserOverlay+"opaque" {
			return true
		}
	}
	return err != nil
}

// copyBelow copies a file to the same path beneath another directory.
func copyBelow(from, to *pathsafe.Dir, rel string, perm uint32) error {
	path, err := pathsafe.Parse(rel)
	if err != nil {
		return err
	}
	in, _, err := from.OpenRegular(path, pathsafe.NoLinks)
	if err != nil {
		return err
	}
	defer in.Close()
	dir, err := to.Reopen()
	if err != nil {
		return err
	}
	defer func() { dir.Close() }()
	parts := path.Components()
	for _, name := range parts[:len(parts)-1] {
		if err := dir.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		next, err := dir.OpenDir(name)
		if err != nil {
			return err
		}
		dir.Close()
		dir = next
	}
	out, err := dir.Create(path.Base(), perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(fs.FileMode(perm)), out.Close())
}

// layerRecord is what is known of a layer of "spectrum run", in a file beside it: with it the
// layer can be sealed later as it would have been.
type layerRecord struct {
	Lower      string       `json:"lower"`
	Attributes string       `json:"attributes"` // as those of [bundle.Layer]
	Since      time.Time    `json:"since"`
	Seen       []seenRecord `json:"seen"`
}

type seenRecord struct {
	Path       []byte `json:"path"`
	SHA256     string `json:"sha256"`
	Size       int64  `json:"size"`
	Executable bool   `json:"executable"`
}

// recordName is the file of a [layerRecord].
const recordName = statedir.LayerRecord

// writeLayerRecord replaces the record of a layer.
func writeLayerRecord(home *pathsafe.Dir, lower string, layer *bundle.Layer) error {
	record := layerRecord{Lower: lower, Attributes: layer.Attributes, Since: layer.Since}
	for path, seen := range layer.Seen {
		record.Seen = append(record.Seen, seenRecord{[]byte(path), hex.EncodeToString(seen.Digest[:]), seen.Bytes, seen.Executable})
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	const next = recordName + ".new"
	if err := home.WriteFile(next, raw, 0o600); err != nil {
		return err
	}
	err = home.RenameNoReplace(next, home, recordName)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := home.RenameExchange(next, home, recordName); err != nil { // the earlier one stays until this one is there
		return err
	}
	return home.Unlink(next)
}

// readLayerRecord takes over what is known of a layer, if it is one of "spectrum run".
func readLayerRecord(upper string, layer *bundle.Layer) error {
	if filepath.Base(upper) != changedName {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(upper), recordName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	var record layerRecord
	if err == nil {
		err = json.Unmarshal(raw, &record)
	}
	if err != nil {
		return fmt.Errorf("the record of the layer: %w", err)
	}
	layer.Attributes, layer.Since, layer.Seen = record.Attributes, record.Since, map[string]bundle.BaseFile{}
	for _, seen := range record.Seen {
		path, err := pathsafe.Found(string(seen.Path))
		if err != nil {
			return fmt.Errorf("the record of the layer: %w", err)
		}
		base := bundle.BaseFile{Known: bundle.Known{Path: path, Bytes: seen.Size}, Executable: seen.Executable}
		if n, err := hex.Decode(base.Digest[:], []byte(seen.SHA256)); err != nil || n != len(base.Digest) {
			return fmt.Errorf("the record of the layer: %q is not a SHA-256", seen.SHA256)
		}
		layer.Seen[string(seen.Path)] = base
	}
	return nil
}

// checkLayer checks the arguments of "seal --upper".
func (o *sealOptions) checkLayer(cmd *cobra.Command, args []string) error {
	switch {
	case o.upper == "" || o.lower == "":
		return usage(cmd, "--upper and --lower require each other")
	case len(args) > 0:
		return usage(cmd, "--upper seals the whole layer; leave files out with --exclude PATTERN")
	}
	return nil
}
