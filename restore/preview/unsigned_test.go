package preview_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// tabled is a bundle with this block table, or this reason why it cannot be used.
type tabled struct {
	table *blocktable.Table
	err   error
}

func (b tabled) Blocks() (*blocktable.Table, error) { return b.table, b.err }

// TestUnsigned: only a block table that can be used signs PROOF.json, and in a chain each run needs
// one.
func TestUnsigned(t *testing.T) {
	good, none, wrong := tabled{table: new(blocktable.Table)}, tabled{}, tabled{err: errors.New("wrong")}
	for _, c := range []struct {
		bundles []tabled
		want    []string
	}{
		{[]tabled{good}, []string{}}, {[]tabled{good, good}, []string{}},
		{[]tabled{none}, []string{"PROOF.json"}}, {[]tabled{wrong}, []string{"PROOF.json"}},
		{[]tabled{good, none}, []string{"PROOF.json"}}, {[]tabled{wrong, good}, []string{"PROOF.json"}},
	} {
		if got := preview.Unsigned(slices.Values(c.bundles)); got == nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.bundles, got, c.want)
		}
	}
}

// TestIdentityIgnoresUnsigned: what no signature covers reaches neither the
// preview nor its report; so an approval outlives it. PROOF.json is named as
// unsigned, and nothing that it says is shown.
func TestIdentityIgnoresUnsigned(t *testing.T) {
	s := newScene(t)
	first := s.Preview()
	json, report := jsonOf(t, first), reportOf(t, first)
	if !bytes.Contains(json, []byte(`"unsigned_artifacts":["PROOF.json"]`)) {
		t.Errorf("it does not say what is unsigned: %s", json)
	}
	const stamp = "1999-12-31T23:59:59Z"
	set := func(field string, value any) func(map[string]any) {
		return func(f map[string]any) { f[field] = value }
	}
	r := s.Runs[0]
	for name, change := range map[string]func(){
		"generated_at": func() { r.Edit(bundle.OutputHashes, set("generated_at", stamp)) },
		"validator":    func() { r.Edit(bundle.OutputHashes, set("validator_build_id", "git:"+stamp)) },
		"completed_at": func() { r.Edit(bundle.OutputHashes, set("completed_at", stamp)) }, // not that of STATUS.json
		"signed_at":    func() { r.Edit(bundle.Signature, set("signed_at", stamp)) },
		"proof": func() {
			r.WriteRaw(bundle.Proof, []byte(`{"restoration_result":{"verified":true},"bundle_root":"other","completed_at":"`+stamp+`"}`))
		},
		"names beside": func() { r.WriteRaw(stamp, []byte(stamp)) },
		"white space":  func() { r.WriteRaw(bundle.Status, append([]byte("\n"), r.Read(bundle.Status)...)) },
		"attributes": func() {
			must(t, os.Chtimes(r.Path(bundle.Status), time.Unix(1, 0), time.Unix(2, 0)))
			must(t, os.Chmod(r.Dir, 0o700))
			must(t, unix.Setxattr(filepath.Join(s.Root, "out/a.txt"), "user.note", []byte("x"), 0))
		},
	} {
		change()
		again := s.Preview()
		if again.ID() != first.ID() || !bytes.Equal(jsonOf(t, again), json) || reportOf(t, again) != report {
			t.Errorf("%s: another preview:\n%s\nbefore\n%s", name, jsonOf(t, again), json)
		}
	}
	if shown := string(json) + report; bytes.Contains([]byte(shown), []byte("1999")) {
		t.Errorf("an unsigned word is shown: %s", shown)
	}
}
