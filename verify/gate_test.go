package verify_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// noted is a fault for which a restore has its own code.
type noted struct {
	fault
	proof  verify.ProofFault
	hashes verify.HashesFault
}

// notedFaults are all of them, each in several ways.
func notedFaults() []noted {
	var all []noted
	proof := func(fault verify.ProofFault, name string, change func(r *bundletest.Run)) {
		f := noted{proof: fault}
		f.name, f.after = "proof "+name, change
		all = append(all, f)
	}
	hashes := func(fault verify.HashesFault, name string, f fault) {
		f.name = "hashes " + name
		all = append(all, noted{fault: f, hashes: fault})
	}
	proof(verify.ProofMissing, "missing", remove(bundle.Proof))
	for _, name := range []string{"nothing", "array", "double key", "bad UTF-8 in a value", "513 levels", "1e400"} {
		proof(verify.ProofMalformed, name, write(bundle.Proof, notArtifacts[name]))
		hashes(verify.HashesMalformed, name, fault{after: write(bundle.OutputHashes, notArtifacts[name])})
	}
	for name, kind := range special() {
		proof(verify.ProofMalformed, name, func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.Proof), kind) })
		hashes(verify.HashesMalformed, name, fault{after: func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.OutputHashes), kind) }})
	}
	proof(verify.ProofMalformed, "a link", func(r *bundletest.Run) { replaceBy(r.T, r.Path(bundle.Proof), harness.LinkTo(bundle.Status)) })
	proof(verify.ProofMalformed, "wrong hash", edit(bundle.Proof, set("proof_hash", zeros)))
	proof(verify.ProofMalformed, "wrong hash and no result", write(bundle.Proof, `{"proof_hash":"`+zeros+`"}`))
	proof(verify.ProofResultMissing, "no result", write(bundle.Proof, "{}"))
	for _, result := range []string{"null", "true", `"verified"`, "1", "[]", `[{"verified":true}]`} {
		proof(verify.ProofResultMissing, "result "+result, write(bundle.Proof, `{"restoration_result":`+result+`}`))
	}
	for _, verified := range []string{"false", "null", `"true"`, "1", "[true]", `{"verified":true}`} {
		proof(verify.ProofNotVerified, "verified "+verified, write(bundle.Proof, `{"restoration_result":{"verified":`+verified+`}}`))
	}
	proof(verify.ProofNotVerified, "no verified", write(bundle.Proof, `{"restoration_result":{"Verified":true}}`))
	hashes(verify.HashesFileMissing, "missing", fault{after: remove(bundle.OutputHashes)})
	hashes(verify.HashesMissing, "no hashes", fault{content: edit(bundle.OutputHashes, drop("hashes"))})
	for _, value := range []any{nil, true, "x", 1, []string{}, []any{map[string]any{}}} {
		hashes(verify.HashesMissing, "not an object", fault{content: edit(bundle.OutputHashes, set("hashes", value))})
	}
	hashes(verify.HashesEmpty, "empty", fault{content: edit(bundle.OutputHashes, set("hashes", map[string]any{}))})
	return all
}

func TestGateAccepts(t *testing.T) {
	r := newRun(t)
	g, err := gate(t, r)
	must(t, err)
	b, ok := g.Bundle()
	if !ok || b.Root() != r.BundleRoot() || b.Len() != 2 || g.RunID() != "run-1" {
		t.Errorf("bundle %v %v", b, ok)
	}
	if g.Proof() != verify.ProofGood || g.Hashes() != verify.HashesGood || !slices.Equal(slices.Collect(g.Paths()), []string{"dist/a", "dist/b"}) {
		t.Errorf("proof %d, hashes %d, paths %q", g.Proof(), g.Hashes(), slices.Collect(g.Paths()))
	}
}

// TestGateNotes: each fault is noted, there is no bundle, and the strict law itself rejects all
// of them but the empty one.
func TestGateNotes(t *testing.T) {
	seenProof, seenHashes := map[verify.ProofFault]bool{}, map[verify.HashesFault]bool{}
	for _, f := range notedFaults() {
		t.Run(f.name, func(t *testing.T) {
			r := newRun(t)
			spoil(r, f.fault)
			g, err := gate(t, r)
			must(t, err)
			if g.Proof() != f.proof || g.Hashes() != f.hashes {
				t.Errorf("noted proof %d, hashes %d; want %d, %d", g.Proof(), g.Hashes(), f.proof, f.hashes)
			}
			if b, ok := g.Bundle(); ok || b != nil {
				t.Error("there is a bundle")
			}
			if paths := slices.Collect(g.Paths()); (len(paths) == 2) != (f.hashes == verify.HashesGood) {
				t.Errorf("paths %q", paths)
			}
			if _, err := strict(t, r); (err == nil) != (f.hashes == verify.HashesEmpty) {
				t.Errorf("the strict law says %v", err)
			}
		})
		seenProof[f.proof], seenHashes[f.hashes] = true, true
	}
	if len(seenProof) != int(verify.ProofNotVerified)+1 || len(seenHashes) != int(verify.HashesEmpty)+1 {
		t.Errorf("not every fault was caused: %v, %v", seenProof, seenHashes)
	}
}

// TestGateNotesBoth: a fault of each artifact, both noted.
func TestGateNotesBoth(t *testing.T) {
	one := oneOfEach(notedFaults())
	for _, p := range one {
		for _, h := range one {
			if p.proof == verify.ProofGood || h.hashes == verify.HashesGood {
				continue
			}
			r := newRun(t)
			spoil(r, p.fault, h.fault)
			g, err := gate(t, r)
			must(t, err)
			if g.Proof() != p.proof || g.Hashes() != h.hashes {
				t.Fatalf("%s, %s: noted %d, %d", p.name, h.name, g.Proof(), g.Hashes())
			}
			if _, ok := g.Bundle(); ok {
				t.Fatalf("%s, %s: there is a bundle", p.name, h.name)
			}
		}
	}
}

// TestGateOtherRejectionsWin: any fault that a restore has no code for is the
// verdict, whatever was noted, before it or after it.
func TestGateOtherRejectionsWin(t *testing.T) {
	others := append([]noted{{fault: fault{name: "nothing else"}}}, oneOfEach(notedFaults())...)
	number, tried := 0, sample.Every(t, 13)
	for _, f := range strictFaults {
		if isNoted(f) {
			continue
		}
		for _, n := range others {
			if n.hashes != verify.HashesGood && needsHashes(f) {
				continue
			}
			if number++; !tried.Has(number) {
				continue
			}
			r := newRun(t)
			spoil(r, f, n.fault)
			_, err := gate(t, r)
			if checkReject(t, err, f.expected(r)); t.Failed() {
				t.Fatalf("%s, with %s", f.name, n.name)
			}
		}
	}
	if number < 200 {
		t.Errorf("only %d pairs", number)
	}
}

// isNoted reports whether a fault of the strict law is one that the gate notes.
func isNoted(f fault) bool {
	artifact := f.want.details["artifact"]
	return artifact == bundle.Proof || artifact == bundle.OutputHashes && f.want.details["path"] == ""
}

// needsHashes: these phases do not run when OUTPUT_HASHES.json cannot be used.
func needsHashes(f fault) bool {
	return slices.Contains([]verify.Code{verify.BundleRootMismatch, verify.OutputMissing, verify.HashMismatch}, f.want.code) || f.want.details["path"] != ""
}

// oneOfEach keeps the first of each fault.
func oneOfEach(all []noted) []noted {
	var one []noted
	for _, n := range all {
		if !slices.ContainsFunc(one, func(o noted) bool { return o.proof == n.proof && o.hashes == n.hashes }) {
			one = append(one, n)
		}
	}
	return one
}

// TestGateWithoutHashes: phases that need them do not run, and nothing is read.
func TestGateWithoutHashes(t *testing.T) {
	for _, change := range []func(*bundletest.Run){remove(bundle.OutputHashes), write(bundle.OutputHashes, "{"), write(bundle.OutputHashes, `{"hashes":[]}`)} {
		r := newRun(t)
		change(r)
		opened := watchOpens(t, at(r, "dist/a"))
		loseOutput("dist/b")(r)
		g, err := gate(t, r)
		must(t, err)
		if g.Hashes() == verify.HashesGood || len(slices.Collect(g.Paths())) > 0 {
			t.Errorf("noted %d, paths %q", g.Hashes(), slices.Collect(g.Paths()))
		}
		opened.none(t)
	}
}

// TestGateIllFormedPaths: such a path is not read, nothing is
// missing, and there is no bundle; every other output is checked.
func TestGateIllFormedPaths(t *testing.T) {
	for _, path := range illFormedPaths {
		r := newRun(t)
		r.EditHashes(func(h map[string]any) { h[path] = bundletest.Hash("aaa") })
		g, err := gate(t, r)
		must(t, err)
		if _, ok := g.Bundle(); ok || g.Proof() != verify.ProofGood || g.Hashes() != verify.HashesGood {
			t.Errorf("%q: bundle %v, noted %d %d", path, ok, g.Proof(), g.Hashes())
		}
		all := []string{"dist/a", "dist/b", path}
		slices.Sort(all)
		if got := slices.Collect(g.Paths()); !slices.Equal(got, all) {
			t.Errorf("%q: paths %q", path, got)
		}
		_, err = strict(t, r)
		checkReject(t, err, missingWant(path))
		changeOutput("dist/b")(r)
		_, err = gate(t, r)
		checkReject(t, err, want{verify.HashMismatch, mismatch("dist/b", bundletest.Hash("bbb"), "changed")})
	}
}

func missingWant(path string) want { return want{verify.OutputMissing, aboutPath(path)} }

// illFormedPaths are keys that no output may have. Each would reach the file dist/a, or another,
// if it were joined or cleaned.
var illFormedPaths = []string{
	"", ".", "..", "./dist/a", "dist/./a", "dist/../dist/a", "../x", "dist/a/..", "/dist/a", "/etc/passwd", "//dist/a", "dist//a", "dist/a/", "dist/a/.",
	`dist\a`, `..\x`, `C:\x`, `\\srv\x`, "dist/a\x00", "\x00", "dist/a\x00/../b", "../\x00",
}

// TestGateIllFormedIsNotRead puts a file where a joined path would find it.
func TestGateIllFormedIsNotRead(t *testing.T) {
	r := newRun(t)
	r.Write("x", "outside")
	r.EditHashes(func(h map[string]any) { h["dist/../x"] = bundletest.Hash("outside") })
	opened := watchOpens(t, at(r, "x"))
	_, err := gate(t, r)
	must(t, err)
	opened.none(t)
}

func gateChain(t testing.TB, runs ...*bundletest.Run) (*verify.GatedChain, error) {
	t.Helper()
	c, err := verify.GateChain(t.Context(), openRuns(t, runs...), verify.Watch{})
	if (c == nil) != (err != nil) {
		t.Fatalf("chain %v, error %v", c, err)
	}
	return c, err
}

// TestGateChain: what is noted of one bundle does not hide a rejection of a
// later one; and a chain with a note has no root.
func TestGateChain(t *testing.T) {
	runs := newChain(t, 3)
	c, err := gateChain(t, runs...)
	must(t, err)
	plain, err := strictChain(t, runs...)
	must(t, err)
	if c.Root() != plain.Root() || c.Root() == "" {
		t.Errorf("root %q, want %q", c.Root(), plain.Root())
	}
	for i := range runs {
		proof := runs[i].Read(bundle.Proof)
		runs[i].Remove(bundle.Proof)
		if c, err := gateChain(t, runs...); err != nil || c.Root() != "" {
			t.Errorf("without the proof of r%d: root %q, %v", i, c.Root(), err)
		}
		runs[i].WriteRaw(bundle.Proof, proof)
	}
	runs[0].Remove(bundle.Proof)
	runs[1].WriteRaw(bundle.OutputHashes, nil)
	if c, err = gateChain(t, runs...); err != nil {
		t.Fatal(err)
	}
	var ids []string
	var proofs []verify.ProofFault
	var hashes []verify.HashesFault
	for g := range c.Bundles() {
		ids, proofs, hashes = append(ids, g.RunID()), append(proofs, g.Proof()), append(hashes, g.Hashes())
	}
	if !slices.Equal(ids, []string{"r0", "r1", "r2"}) || !slices.Equal(proofs, []verify.ProofFault{verify.ProofMissing, 0, 0}) ||
		!slices.Equal(hashes, []verify.HashesFault{0, verify.HashesMalformed, 0}) || c.Root() != "" {
		t.Errorf("%q: proofs %v, hashes %v, root %q", ids, proofs, hashes, c.Root())
	}
	runs[2].Remove(bundle.Signature)
	_, err = gateChain(t, runs...)
	checkRunReject(t, err, "r2", want{verify.ArtifactMissing, about(bundle.Signature)})
}

// TestGateDeterminism repeats notes and paths.
func TestGateDeterminism(t *testing.T) {
	r := newRun(t)
	spoil(r, fault{content: edit(bundle.OutputHashes, set("hashes", map[string]any{"b": "x", "a": "y", "../z": "z"}))})
	run := openRuns(t, r)[0]
	always(t, func() error {
		_, err := verify.Gate(t.Context(), run, verify.Watch{})
		return err
	})
}

// TestGateEmptiedHashes: an empty "hashes" still has a root, and one that was
// not signed is the verifier's rejection, which wins.
func TestGateEmptiedHashes(t *testing.T) {
	r := newRun(t)
	r.Edit(bundle.OutputHashes, func(f map[string]any) { f["hashes"] = map[string]any{} })
	_, err := gate(t, r)
	var reject *verify.Reject
	if !errors.As(err, &reject) || reject.Code != verify.BundleRootMismatch {
		t.Errorf("got %v", err)
	}
}
