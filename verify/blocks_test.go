package verify_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

const testBlock = blocktable.MinBlock

// blockOutputs are outputs of several blocks.
func blockOutputs() map[string]string {
	return map[string]string{"dist/a": "aaa", "dist/b": strings.Repeat("b", 3*testBlock+7), "dist/empty": ""}
}

// newBlockRun is a run with a block table, which change may edit.
func newBlockRun(t testing.TB, change func(*blocktable.Entry)) *bundletest.Run {
	t.Helper()
	p := bundletest.New(t)
	r := p.Run("run-1", blockOutputs())
	r.SetBlocks(p.Blocks(testBlock, blockOutputs(), change), testBlock)
	return r
}

// attest attests a run.
func attest(t testing.TB, r *bundletest.Run) (*verify.Attested, error) {
	t.Helper()
	g, err := verify.Attest(t.Context(), openRuns(t, r)[0], verify.Watch{})
	if err != nil {
		return nil, err
	}
	if b, ok := g.Bundle(); ok || b != nil {
		t.Fatal("it has a bundle")
	}
	a, ok := g.Attested()
	if !ok {
		t.Fatal("it has no attested bundle")
	}
	return a, nil
}

// TestBlocks: a correct table is accepted by both, and its attributes are those of the outputs
// whatever the sources have; a touch does not quarantine the candidate.
func TestBlocks(t *testing.T) {
	r := newBlockRun(t, func(e *blocktable.Entry) {
		if e.Path == "dist/a" {
			e.Perm, e.Sec, e.Nsec = 0o751, 1234, 56
		}
	})
	source := at(r, "dist/a")
	must(t, os.Chmod(source, 0o4600))
	must(t, os.Chmod(source, 0o600|fs.ModeSetuid))
	must(t, os.Chtimes(source, time.Time{}, time.Unix(99, 0)))
	must(t, os.Chmod(filepath.Dir(source), 0o700))
	for _, watch := range []verify.Watch{{}, {Reread: true}} {
		b, err := verify.Strict(t.Context(), openRuns(t, r)[0], watch)
		must(t, err)
		if table, err := b.Blocks(); table == nil || err != nil {
			t.Fatal(err)
		}
		for o := range b.Outputs() {
			if o.Path().String() == "dist/a" && (o.Perm() != 0o751 || o.IDBits() != fs.ModeSetuid || !o.ModTime().Equal(time.Unix(1234, 56))) {
				t.Error(o.Perm(), o.IDBits(), o.ModTime())
			}
		}
		if got := maps.Collect(b.Dirs()); !maps.Equal(got, map[string]fs.FileMode{"": 0o755, "dist": 0o755}) {
			t.Error(got)
		}
	}
	a, err := attest(t, r)
	must(t, err)
	if got := maps.Collect(a.Dirs()); !maps.Equal(got, map[string]fs.FileMode{"": 0o755, "dist": 0o755}) {
		t.Error(got)
	}
	b, err := strict(t, r)
	must(t, err)
	if a.Root() != b.Root() || a.RunID() != b.RunID() || a.ValidatorID() != b.ValidatorID() || a.TaskID() != b.TaskID() || !a.Completed().Equal(b.Completed()) || a.Len() != b.Len() {
		t.Error("an attested bundle is another one than the verified one")
	}
	for o := range a.Outputs() {
		content := blockOutputs()[o.Path().String()]
		signed, ok := o.Attributes()
		checked, can := o.Check(strings.NewReader(content))
		if !ok || !can || signed.Size != int64(len(content)) || o.Hash() != bundletest.Hash(content) {
			t.Fatalf("%s: %+v", o.Path(), signed)
		}
		got, err := io.ReadAll(io.NewSectionReader(checked, 0, checked.Size()))
		if err != nil || string(got) != content {
			t.Errorf("%s: %v", o.Path(), err)
		}
	}
}

// TestBlocksFaults: whatever is wrong with a table changes no verdict, and is the reason why it
// cannot be used. What only reading finds is not a fault of an attested bundle.
func TestBlocksFaults(t *testing.T) {
	edit := func(change func(claim map[string]any)) func(*bundletest.Run) {
		return func(r *bundletest.Run) {
			r.Edit(bundle.TaskSpec, func(fields map[string]any) {
				change(fields["constraints"].(map[string]any)[bundle.BlocksMember].(map[string]any))
			})
			r.Sign()
		}
	}
	table := func(block int64, outputs map[string]string, change func(*blocktable.Entry)) func(*bundletest.Run) {
		return func(r *bundletest.Run) { r.SetBlocks(r.Blocks(block, outputs, change), testBlock) }
	}
	only := func(path string, change func(*blocktable.Entry)) func(*blocktable.Entry) {
		return func(e *blocktable.Entry) {
			if e.Path == path {
				change(e)
			}
		}
	}
	others := blockOutputs()
	delete(others, "dist/empty")
	for name, c := range map[string]struct {
		spoil  func(*bundletest.Run)
		want   string
		byRead bool // only reading finds it
	}{
		"none":    {func(*bundletest.Run) {}, "", false},
		"missing": {func(r *bundletest.Run) { r.Remove(bundle.BlocksFile) }, "names the file BLOCKS, which is missing", false},
		"longer":  {func(r *bundletest.Run) { r.WriteRaw(bundle.BlocksFile, append(r.Read(bundle.BlocksFile), 0)) }, "BLOCKS: its SHA-256 is not", false},
		"a directory": {func(r *bundletest.Run) {
			r.Remove(bundle.BlocksFile)
			must(t, os.Mkdir(r.Path(bundle.BlocksFile), 0o755))
		}, "BLOCKS: ", false},
		"a link": {func(r *bundletest.Run) {
			r.Remove(bundle.BlocksFile)
			must(t, os.Symlink(bundle.Status, r.Path(bundle.BlocksFile)))
		}, "BLOCKS: ", false},
		"not named": {func(r *bundletest.Run) {
			r.Edit(bundle.TaskSpec, func(fields map[string]any) { fields["constraints"] = map[string]any{} })
			r.Sign()
		}, "constraints.blocks of TASK_SPEC.json does not name it", false},
		"named as true": {func(r *bundletest.Run) {
			r.Edit(bundle.TaskSpec, func(fields map[string]any) { fields["constraints"] = map[string]any{"blocks": true} })
			r.Sign()
		}, "constraints.blocks is not {", false},
		"form 2":           {edit(func(c map[string]any) { c["form"] = 2 }), "constraints.blocks is not {", false},
		"another member":   {edit(func(c map[string]any) { c["more"] = 1 }), "constraints.blocks is not {", false},
		"no proof":         {edit(func(c map[string]any) { delete(c, "proof") }), "constraints.blocks is not {", false},
		"a block of text":  {edit(func(c map[string]any) { c["block"] = "65536" }), "constraints.blocks.block is not a power of two", false},
		"a block of 65537": {edit(func(c map[string]any) { c["block"] = 65537 }), "constraints.blocks.block is not a power of two", false},
		"another block":    {edit(func(c map[string]any) { c["block"] = 2 * testBlock }), "its blocks have 65536 bytes, and constraints.blocks of TASK_SPEC.json names 131072", false},
		"upper case":       {edit(func(c map[string]any) { c["table"] = strings.ToUpper(c["table"].(string)) }), "constraints.blocks.table is not", false},
		"a short proof":    {edit(func(c map[string]any) { c["proof"] = "sha256:00" }), "constraints.blocks.proof is not", false},
		"another proof":    {func(r *bundletest.Run) { r.WriteRaw(bundle.Proof, append(r.Read(bundle.Proof), ' ')) }, "PROOF.json: its SHA-256 is not", false},
		"of other outputs": {table(testBlock, others, nil), `BLOCKS: it ends before "dist/empty"`, false},
		"of another run":   {table(testBlock, map[string]string{"dist/a": "", "dist/b": "", "dist/c": ""}, nil), `BLOCKS: it has "dist/c" where "dist/empty" belongs`, false},
		"a size too large": {table(testBlock, blockOutputs(), only("dist/a", func(e *blocktable.Entry) { e.Size = 4 })), `BLOCKS: it has 4 bytes for "dist/a", which has 3`, true},
		"a size too small": {table(testBlock, blockOutputs(), only("dist/b", func(e *blocktable.Entry) { e.Size-- })), `BLOCKS: it has 196614 bytes for "dist/b", which has 196615`, true},
		"a forged value":   {table(testBlock, blockOutputs(), only("dist/b", func(e *blocktable.Entry) { e.Values[40] ^= 1 })), `BLOCKS: the chaining values of "dist/b"`, true},
		"two, the first one": {table(testBlock, blockOutputs(), func(e *blocktable.Entry) {
			if e.Size > 0 {
				e.Size++
			}
		}), `BLOCKS: it has 4 bytes for "dist/a"`, true},
		"no bytes of a file": {table(testBlock, blockOutputs(), only("dist/a", func(e *blocktable.Entry) { e.Size = 0 })), `BLOCKS: it has no bytes for "dist/a"`, false},
		"no bytes of blocks": {table(testBlock, blockOutputs(), only("dist/b", func(e *blocktable.Entry) { e.Size, e.Values = 0, nil })), `BLOCKS: it has no bytes for "dist/b"`, false},
		"bytes of no file":   {table(testBlock, blockOutputs(), only("dist/empty", func(e *blocktable.Entry) { e.Size = 1 })), `BLOCKS: it has 1 bytes for "dist/empty"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBlockRun(t, nil)
			c.spoil(r)
			check := func(how string, table *blocktable.Table, fault error, want string) {
				t.Helper()
				if want == "" && (fault != nil || table == nil) || want != "" && (fault == nil || table != nil || !strings.Contains(fault.Error(), want)) {
					t.Errorf("%s: %v, want %q", how, fault, want)
				}
			}
			b, err := strict(t, r)
			must(t, err)
			found, fault := b.Blocks()
			check("strict", found, fault, c.want)
			for o := range b.Outputs() { // a wrong table signs nothing
				if signed := o.ModTime().Equal(time.Unix(5, 0)); signed != (c.want == "") {
					t.Errorf("%s: the time is the signed one: %v", o.Path(), signed)
				}
			}
			g, err := gate(t, r)
			must(t, err)
			gated, _ := g.Bundle()
			found, fault = gated.Blocks()
			check("gate", found, fault, c.want)
			a, err := attest(t, r)
			must(t, err)
			want := c.want
			if c.byRead {
				want = ""
			}
			found, fault = a.Blocks()
			check("attest", found, fault, want)
		})
	}
}

// TestBlocksEveryByte: no byte of BLOCKS can be changed, and it cannot be cut or doubled, without
// a fault in it; the verdict stays the same.
func TestBlocksEveryByte(t *testing.T) {
	r := newBlockRun(t, nil)
	good := r.Read(bundle.BlocksFile)
	spoiled := [][]byte{append(bytes.Clone(good), good...), {}}
	for i := range good {
		raw := bytes.Clone(good)
		raw[i] ^= 1 << (i % 8)
		spoiled = append(spoiled, raw, good[:i])
	}
	for i, raw := range sample.Pick(t, 40, spoiled) {
		r.WriteRaw(bundle.BlocksFile, raw)
		b, err := strict(t, r)
		must(t, err)
		if table, fault := b.Blocks(); table != nil || fault == nil {
			t.Errorf("case %d: a table of %d bytes that are not signed is used", i, len(raw))
		}
		a, err := attest(t, r)
		must(t, err)
		if table, fault := a.Blocks(); table != nil || fault == nil {
			t.Errorf("case %d, attested: a table of %d bytes that are not signed is used", i, len(raw))
		}
	}
}

// TestAttestedVerdicts: what phases 1 to 8 and 10 reject is rejected with the same code, and what
// only phase 9 finds is not.
func TestAttestedVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*bundletest.Run)
		lazy  bool // accepted without reading
	}{
		"a byte of an output":  {func(r *bundletest.Run) { must(t, os.WriteFile(at(r, "dist/a"), []byte("aab"), 0o644)) }, true},
		"a missing output":     {func(r *bundletest.Run) { must(t, os.Remove(at(r, "dist/a"))) }, true},
		"a changed status":     {func(r *bundletest.Run) { r.Edit(bundle.Status, set("status", "failure")) }, false},
		"a signed bad status":  {func(r *bundletest.Run) { r.Edit(bundle.Status, set("status", "failure")); r.Sign() }, false},
		"a forbidden artifact": {func(r *bundletest.Run) { must(t, os.Mkdir(r.Path("logs"), 0o755)) }, false},
		"a missing artifact":   {func(r *bundletest.Run) { r.Remove(bundle.Signature) }, false},
		"another signature": {func(r *bundletest.Run) {
			r.Edit(bundle.Signature, set("signature", strings.Repeat("0", 128)))
		}, false},
		"an ill-formed hash": {func(r *bundletest.Run) {
			r.Edit(bundle.OutputHashes, set("hashes", map[string]string{"dist/a": "sha256:00"}))
			r.Sign()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBlockRun(t, nil)
			c.spoil(r)
			_, want := gate(t, r)
			_, got := attest(t, r)
			var wanted, found *verify.Reject
			if !errors.As(want, &wanted) {
				t.Fatalf("the gate: %v", want)
			}
			if c.lazy {
				must(t, got)
			} else if !errors.As(got, &found) || found.Code != wanted.Code {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// TestAttestedWithoutTable: an output is read as a whole, or not at all.
func TestAttestedWithoutTable(t *testing.T) {
	r := newRun(t)
	a, err := attest(t, r)
	must(t, err)
	if table, err := a.Blocks(); table != nil || err != nil {
		t.Fatal("it has a table")
	}
	for o := range a.Outputs() {
		if _, ok := o.Attributes(); ok {
			t.Error("it has attributes")
		}
		if checked, ok := o.Check(strings.NewReader("")); ok || checked != nil {
			t.Error("it can be read block by block")
		}
		f, st, err := o.OpenSource()
		must(t, err)
		table, err := o.Whole(t.Context(), f, st.Size)
		must(t, err)
		must(t, f.Close())
		if table.Size() != 3 || blockhash.NewReader(strings.NewReader("ccc"), table).Check(t.Context()) == nil {
			t.Error("the table is of another file")
		}
		for _, content := range []string{"", "ccc", "aaab", "bbba"} {
			if table, err := o.Whole(context.Background(), strings.NewReader(content), int64(len(content))); err == nil || table != nil {
				t.Errorf("%s is %q", o.Path(), content)
			}
		}
	}
}

// TestAttestedChain: a chain of attested bundles has the root of the verified one.
func TestAttestedChain(t *testing.T) {
	runs := newChain(t, 3)
	verified, err := strictChain(t, runs...)
	must(t, err)
	c, err := verify.AttestChain(t.Context(), openRuns(t, runs...), verify.Watch{})
	must(t, err)
	if c.Root() != verified.Root() || c.Root() == "" {
		t.Errorf("%s, want %s", c.Root(), verified.Root())
	}
	if n := len(slices.Collect(c.Bundles())); n != 3 {
		t.Errorf("%d bundles", n)
	}
}

// TestAttestedElsewhere: a run whose contents are not beneath a project root, with a table and
// without one.
func TestAttestedElsewhere(t *testing.T) {
	for _, r := range []*bundletest.Run{newBlockRun(t, nil), newRun(t)} {
		dir, err := pathsafe.OpenRoot(r.Dir)
		must(t, err)
		run := verify.RunIn(nil, dir, "run-1")
		g, err := verify.Attest(t.Context(), run, verify.Watch{Reread: true})
		must(t, err)
		must(t, run.Close())
		a, ok := g.Attested()
		if !ok || len(slices.Collect(a.Artifacts())) != 7 {
			t.Fatal("it is not attested")
		}
		if got := maps.Collect(a.Dirs()); !maps.Equal(got, map[string]fs.FileMode{"": 0o755, "dist": 0o755}) {
			t.Error(got)
		}
		for o := range a.Outputs() {
			_, statErr := o.Lstat()
			_, _, openErr := o.OpenSource()
			if !errors.Is(statErr, fs.ErrNotExist) || !errors.Is(openErr, fs.ErrNotExist) {
				t.Errorf("%s: %v, %v", o.Path(), statErr, openErr)
			}
		}
	}
}
