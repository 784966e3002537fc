package main

import (
	"crypto/ed25519"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

const (
	project = "project"
	runsDir = project + "/CONTRACTS/_runs"
	root    = "root"
	atRoot  = "$WORK/" + root
)

// A run is a bundle in the making.
type run struct {
	id  string
	dir string // below the working directory
	key ed25519.PrivateKey
	forge.Run
	outputs forge.Outputs    // what the run signs
	disk    map[string]*file // what stands below the project in their place; nil: nothing
	extra   []suite.Entry    // beside the artifacts, below the run directory
	pads    map[string]suite.Entry
	root    string // the bundle root, once it is signed
}

// A file stands for an output on the disk.
type file = suite.Entry

func newRun(n int, outputs forge.Outputs) *run {
	r := &run{id: fmt.Sprintf("run-%d", n), key: forge.Key(byte(n)), disk: map[string]*file{}, pads: map[string]suite.Entry{}}
	r.dir = runsDir + "/" + r.id
	r.outputs = outputs
	r.Run = forge.New(outputs)
	r.Set(forge.TaskSpec, forge.Fields{"task_id": fmt.Sprintf("task-%d", n), "inputs": []any{}})
	r.Set(forge.Status, forge.Fields{"status": "success", "cmp01": "pass", "completed_at": fmt.Sprintf("2026-01-0%dT03:04:05Z", n)})
	r.Edit(forge.OutputHashes, func(f forge.Fields) {
		f["validator_semver"] = "1.0.0"
		delete(f, "generated_at")
	})
	return r
}

// sign adds an output, before the run is signed.
func (r *run) sign(path, content string) {
	r.outputs[path] = content
	r.declare(path, forge.Hash(content))
}

// declare gives a path any hash.
func (r *run) declare(path string, hash any) {
	r.Edit(forge.OutputHashes, func(f forge.Fields) { f["hashes"].(forge.Fields)[path] = hash })
}

// A draft is a case in the making: runs, what is done to them, and the tree
// around them.
type draft struct {
	runs     []*run
	faults   []applied
	tree     []suite.Entry
	flags    []string // of a restore
	landing  map[string]string
	outside  []string // flags that name the project root
	ordinary bool
	modes    map[string]fs.FileMode // of what is restored, by the paths of outputs
	left     string                 // an output that is not restored, so that what is restored is a derived bundle
}

func single() *draft {
	return newDraft(newRun(1, forge.Outputs{"out/a.txt": "alpha\n", "out/b.txt": "beta\n"}))
}

func chain() *draft {
	return newDraft(newRun(1, forge.Outputs{"one/a.txt": "alpha\n"}), newRun(2, forge.Outputs{"two/b.txt": "beta\n"}))
}

func newDraft(runs ...*run) *draft {
	return &draft{
		runs:    runs,
		tree:    []suite.Entry{{Path: root, Kind: suite.Dir}},
		flags:   []string{"--restore-root", atRoot},
		landing: map[string]string{},
	}
}

// put adds something to the tree.
func (d *draft) put(entries ...suite.Entry) { d.tree = append(d.tree, entries...) }

// with does a fault to the run of this index.
func (d *draft) with(index int, f fault) *draft {
	d.faults = append(d.faults, applied{f, index})
	d.ordinary = d.ordinary || f.ordinary
	return d
}

// build signs the runs with all faults, in the order in which they can be made.
func (d *draft) build() {
	hook := func(of func(fault) func(*run)) {
		for _, a := range d.faults {
			if act := of(a.fault); act != nil {
				act(d.runs[a.run])
			}
		}
	}
	hook(func(f fault) func(*run) { return f.signed })
	for _, r := range d.runs {
		r.root = r.Root()
		r.SignRoot(r.root, r.key)
	}
	hook(func(f fault) func(*run) { return f.payload })
	for _, r := range d.runs {
		r.SignPayload(r.key)
	}
	hook(func(f fault) func(*run) { return f.sealed })
	hook(func(f fault) func(*run) { return f.raw })
	for _, a := range d.faults {
		if a.fault.tree != nil {
			a.fault.tree(d, d.runs[a.run])
		}
	}
}

// entries is the whole tree, and what an accepted restore adds to it.
func (d *draft) entries(accepted bool) []suite.Entry {
	var all []suite.Entry
	written := map[string]suite.Entry{}
	add := func(entries []suite.Entry) {
		for _, e := range entries {
			there, isThere := written[e.Path]
			if !isThere || e.After && !there.After && (there.Content != e.Content || (there.Mode^e.Mode)&0o100 != 0) { // not identical
				all = append(all, e)
			}
			written[e.Path] = e
		}
	}
	for _, r := range d.runs {
		add(r.artifacts())
	}
	for _, r := range d.runs {
		add(r.files())
	}
	add(d.tree)
	if accepted {
		add(d.restored())
	}
	return all
}

func (r *run) artifacts() []suite.Entry {
	var all []suite.Entry
	for _, name := range forge.Names {
		e, replaced := r.pads[name]
		raw, ok := r.Run[name]
		switch {
		case replaced && e.Kind != suite.File:
		case ok:
			e.Content = string(raw)
		default:
			continue
		}
		e.Path = r.dir + "/" + name
		all = append(all, e)
	}
	for _, e := range r.extra {
		e.Path = r.dir + "/" + e.Path
		all = append(all, e)
	}
	if len(all) == 0 {
		all = append(all, suite.Entry{Path: r.dir, Kind: suite.Dir})
	}
	return all
}

func (r *run) files() []suite.Entry {
	var all []suite.Entry
	for _, path := range slices.Sorted(maps.Keys(r.outputs)) {
		e := suite.Entry{Content: r.outputs[path]}
		if f, other := r.disk[path]; other {
			if f == nil {
				continue
			}
			e = *f
		}
		e.Path = project + "/" + path
		all = append(all, e)
	}
	return all
}

// restored is what an accepted restore makes (SPECTRUM-06 sections 5 to 7).
func (d *draft) restored() []suite.Entry {
	var all []suite.Entry
	for _, r := range d.runs {
		base := root + "/"
		if d.isChain() {
			base += r.id + "/"
		}
		var entries []any
		size := 0
		for _, path := range slices.Sorted(maps.Keys(r.outputs)) {
			if path == d.left {
				continue
			}
			content := r.outputs[path]
			size += len(content)
			made := suite.Entry{Path: d.landed(base + path), Content: content, Mode: d.modes[path], After: true}
			if f := r.disk[path]; f != nil { // in few bytes
				made.Content, made.Size = f.Content, f.Size
			}
			all = append(all, made)
			entries = append(entries, forge.Fields{"bytes": len(content), "relative_path": path, "sha256": forge.Hash(content)})
		}
		report := forge.Fields{
			"ok": true, "restored_files_count": len(entries), "restored_bytes": size,
			"bundle_roots": []string{r.root}, "chain_root": nil,
		}
		if d.isChain() {
			report["chain_root"] = d.chainRoot()
		}
		result := suite.Entry{Path: base + "RESTORE_REPORT.json", Content: string(forge.Canonical(report)), After: true}
		if d.left != "" { // its root is that of a bundle which the operator signs
			result.Content, result.Any = "", true
		}
		all = append(all,
			suite.Entry{Path: base + "RESTORE_MANIFEST.json", Content: string(forge.Canonical(forge.Fields{"entries": entries})), After: true}, result)
	}
	return all
}

// landed is where a target lands when a directory on its way is a link.
func (d *draft) landed(path string) string {
	for from, to := range d.landing {
		if rest, ok := strings.CutPrefix(path, from+"/"); ok {
			return to + "/" + rest
		}
	}
	return path
}

func (d *draft) isChain() bool {
	return len(d.runs) != 1 || slices.Contains(d.flags, "--chain")
}

func (d *draft) ids() (ids []string) {
	for _, r := range d.runs {
		ids = append(ids, r.id)
	}
	return ids
}

func (d *draft) roots() (roots []string) {
	for _, r := range d.runs {
		roots = append(roots, r.root)
	}
	return roots
}

func (d *draft) chainRoot() string { return forge.ChainRoot(d.ids(), d.roots()) }
