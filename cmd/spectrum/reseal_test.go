package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// constraintsOf are those of the TASK_SPEC.json of a run directory, and its bytes.
func constraintsOf(t *testing.T, runDir string) (canonjson.Object, string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(runDir, bundle.TaskSpec))
	if err != nil {
		t.Fatal(err)
	}
	value, err := canonjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	spec, _ := value.Object()
	member, _ := spec.Get("constraints")
	constraints, is := member.Object()
	if !is {
		t.Fatalf("%s", raw)
	}
	return constraints, string(raw)
}

// TestResealed: a change set, an output that is a link, a bundle that is derived itself, and several runs
// at once keep what was signed when they are sealed again. The signature is that of the pusher.
func TestResealed(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.pem")
	must(t, "keygen", "--out", key)
	store := "file://" + t.TempDir()
	project := bundletest.New(t)
	first := project.Run("set", map[string]string{"dir/out": "new\n", "new": "text\n"})
	first.SetChanges(`{"base":{"dir/gone":"` + bundletest.Hash("bye") + `","dir/out":"` + bundletest.Hash("old") + `","new":null},"executable":["new"],"form":1,"removes":["dir/gone"]}`)
	second := project.Run("links", map[string]string{"a": "alpha\n", "link": "alpha\n"})
	if err := os.Remove(filepath.Join(project.Root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", filepath.Join(project.Root, "link")); err != nil {
		t.Fatal(err)
	}
	third := project.Run("derived", map[string]string{"c": "gamma\n"})
	third.Edit(bundle.TaskSpec, func(fields map[string]any) {
		fields["constraints"] = map[string]any{"agent_id": "a-7", "derived_from": map[string]any{"bundle_root": anyRoot}}
	})
	third.Sign()
	runs := []*bundletest.Run{first, second, third}

	addresses := strings.Fields(must(t, "push", "--reseal", "--key", key, first.Dir, second.Dir, third.Dir, store))
	if len(addresses) != len(runs) {
		t.Fatalf("%q", addresses)
	}
	for i, run := range runs {
		pulled := strings.TrimSpace(must(t, "pull", addresses[i], filepath.Join(t.TempDir(), "new")))
		name := filepath.Base(run.Dir)
		must(t, "verify", pulled)
		constraints, spec := constraintsOf(t, pulled)
		from, _ := constraints.Get("derived_from")
		object, _ := from.Object()
		root, _ := object.Get("bundle_root")
		if text, _ := root.Text(); text != run.BundleRoot() {
			t.Errorf("%s: %s", name, spec)
		}
		for _, artifact := range []string{bundle.Identity, bundle.Signature} {
			raw, err := os.ReadFile(filepath.Join(pulled, artifact))
			if err != nil || bytes.Equal(raw, run.Read(artifact)) {
				t.Errorf("%s: %s is that of the first signer, %v", name, artifact, err)
			}
		}
		tree := strings.TrimSuffix(pulled, "/CONTRACTS/_runs/"+name)
		switch run {
		case first:
			raw, err := os.ReadFile(filepath.Join(pulled, bundle.ChangesFile))
			if err != nil || !bytes.Equal(raw, run.Read(bundle.ChangesFile)) {
				t.Errorf("%s, %v", raw, err)
			}
			if st, err := os.Stat(filepath.Join(tree, "new")); err != nil || st.Mode()&0o100 == 0 {
				t.Errorf("an executable file: %v, %v", st, err)
			}
		case second:
			if raw, err := os.ReadFile(filepath.Join(tree, "link")); string(raw) != "alpha\n" {
				t.Errorf("%q, %v", raw, err)
			}
			if st, err := os.Lstat(filepath.Join(tree, "link")); err != nil || !st.Mode().IsRegular() {
				t.Errorf("a link is fetched as one: %v, %v", st, err)
			}
		case third:
			if before, _ := object.Get("derived_from"); string(before.Append(nil)) != `{"bundle_root":"`+anyRoot+`"}` || !strings.Contains(spec, `"agent_id":"a-7"`) {
				t.Errorf("%s", spec)
			}
		}
		if out := must(t, "ls", "--lazy", addresses[i]); !strings.Contains(out, "\n") {
			t.Errorf("%q", out)
		}
	}
	if again := must(t, "push", "--reseal", "--key", key, first.Dir, second.Dir, third.Dir, store); again != strings.Join(addresses, "\n")+"\n" {
		t.Errorf("%q, want %q", again, addresses)
	}
}
