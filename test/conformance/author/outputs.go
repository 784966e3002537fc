package main

import (
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

// outputFault is something wrong with an output (phase 9; SPECTRUM-02 step 3).
func outputFault(path, slugs, says, code string, details forge.Fields, tree func(*draft, *run)) fault {
	return fault{
		name:    slugs,
		says:    says,
		touches: []string{"output " + path},
		needs:   []string{forge.OutputHashes, forge.OutputHashes + ":hashes"},
		laws: map[law]verdict{
			strict: in05(9, 0, code, details).on(path).under("D18"),
			resume: in02(part02Outputs, "step 3, outputs", code).on(path).naming(details).under("D18"),
		},
		tree: tree,
	}
}

// plain makes a path a part of a case's name.
func plain(path string) string {
	return strings.NewReplacer("out/", "", "/", "-", ".", "-").Replace(path)
}

// changed is an output whose content is another one.
func changed(path, how string, change func(string) string) fault {
	f := outputFault(path, "output-"+plain(path)+"-"+how, path+" is not the file that was signed", "HASH_MISMATCH", nil, nil)
	f.tree = func(d *draft, r *run) { r.disk[path] = &file{Content: change(r.outputs[path])} }
	return f.expecting(path, change)
}

// expecting fills in both hashes of a mismatch: they depend on the content, and
// what the base run signs is known.
func (f fault) expecting(path string, change func(string) string) fault {
	content := map[string]string{"out/a.txt": "alpha\n", "out/b.txt": "beta\n", "one/a.txt": "alpha\n", "two/b.txt": "beta\n"}[path]
	details := forge.Fields{"path": path, "expected": forge.Hash(content), "actual": forge.Hash(change(content))}
	v := f.laws[strict]
	v.details = details
	w := f.laws[resume]
	w.given = details
	f.laws = map[law]verdict{strict: v, resume: w}
	return f
}

func upper(s string) string { return strings.ToUpper(s) }

// replaced is an output in whose place stands something that is not a regular file,
// or nothing (D4).
func replaced(path, how, says string, in *file, beside ...suite.Entry) fault {
	return outputFault(path, "output-"+plain(path)+"-"+how, path+" "+says, "OUTPUT_MISSING", forge.Fields{"path": path},
		func(d *draft, r *run) {
			r.disk[path] = in
			d.put(beside...)
		})
}

// illFormedHash is a signed hash that is a string and not of the form (D8).
func illFormedHash(how string, change func(string) string) fault {
	const path, content = "out/a.txt", "alpha\n"
	hash := change(forge.Hash(content))
	f := outputFault(path, "output-hash-form-"+how, "the signed hash of "+path+" is \""+hash+"\"", "HASH_MISMATCH",
		forge.Fields{"path": path, "expected": hash, "actual": forge.Hash(content)}, nil)
	f.signed = func(r *run) { r.declare(path, hash) }
	return f
}

// illFormedPath is a signed path whose form is wrong. At the place to which a
// careless reader would be led stands what was signed (D3).
func illFormedPath(path, slugs, code, bait string) fault {
	f := outputFault(path, "path-"+slugs, "an output is signed with the path "+string(forge.Canonical(path)), "OUTPUT_MISSING",
		forge.Fields{"path": path}, nil)
	for _, l := range []law{strict, resume} {
		v := f.laws[l]
		f.laws[l] = v.under("D3")
	}
	sub := 0
	if code == "RESTORE_PATH_NULL_BYTE_DETECTED" {
		sub = 1
	}
	v := in06(stepPaths, 0, "path safety", code).on(path).under("section 4.2 and D3")
	v.at.sub = sub
	f.laws[restore] = v
	const content = "bait\n"
	f.signed = func(r *run) { r.sign(path, content) }
	f.tree = func(d *draft, r *run) {
		r.disk[path] = nil
		if bait != "" {
			d.put(suite.Entry{Path: bait, Content: content})
		}
	}
	return f
}
