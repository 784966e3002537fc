package restore_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// unsignedChanges are changes of what no signature covers (the list with the
// reasons is in package verify's tests, beside the proof that it is whole).
var unsignedChanges = map[string]func(s *scene){
	"generated_at":       edit(bundle.OutputHashes, set("generated_at", "1999-01-01T00:00:00Z")),
	"validator_semver":   edit(bundle.OutputHashes, set("validator_semver", "0.0.0")),
	"validator_build_id": edit(bundle.OutputHashes, set("validator_build_id", nil)),
	"no validator":       edit(bundle.OutputHashes, unset("validator_semver")),
	"more beside hashes": edit(bundle.OutputHashes, set("completed_at", "1999-01-01T00:00:00Z")),
	"signed_at":          edit(bundle.Signature, set("signed_at", "1999-01-01T00:00:00Z")),
	"signed_at an array": edit(bundle.Signature, set("signed_at", []any{1})),
	"another proof":      raw(bundle.Proof, `{"restoration_result":{"verified":true,"bundle_root":"`+zeros(64)+`"},"run_id":"other","completed_at":"1999-01-01T00:00:00Z"}`),
	"names beside": func(s *scene) {
		for _, name := range []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "PROOF2.json", ".spectrum06_x"} {
			s.last().WriteRaw(name, []byte("{}"))
		}
	},
	"white space": func(s *scene) {
		for _, name := range []string{bundle.Status, bundle.OutputHashes, bundle.Proof, bundle.Identity, bundle.SignedPayload, bundle.Signature} {
			s.last().WriteRaw(name, append([]byte("\r\n\t "), s.last().Read(name)...))
		}
	},
	"attributes": func(s *scene) {
		for _, name := range []string{"", bundle.TaskSpec, bundle.OutputHashes, bundle.Proof, bundle.Signature} {
			must(s.t, os.Chtimes(s.last().Path(name), time.Unix(1, 0), time.Unix(2, 0)))
			must(s.t, os.Chmod(s.last().Path(name), 0o700))
			must(s.t, unix.Setxattr(s.last().Path(name), "user.note", []byte("x"), 0))
		}
	},
	"attributes of a source that are not restored": func(s *scene) {
		must(s.t, unix.Setxattr(s.inProject("top.txt"), "user.note", []byte("x"), 0))
		must(s.t, os.Chown(s.inProject("top.txt"), 12, 34))
		must(s.t, os.Chtimes(s.inProject("top.txt"), time.Unix(1, 0), time.Time{}))
	},
}

// TestUnsignedNeverReachesThePlan: neither what would be put where, nor a byte
// of the result artifacts, nor what a view shows.
func TestUnsignedNeverReachesThePlan(t *testing.T) {
	for _, mode := range []int{0, 2} {
		s := modes[mode].make(t)
		view := func() string { return described(viewOf(t, s)) }
		first, seen := answer(t, s.candidate(), s.root), view()
		for name, change := range unsignedChanges {
			change(s)
			if now := answer(t, s.candidate(), s.root); now != first {
				t.Errorf("%s, %s:\n%s\nbefore\n%s", modes[mode].name, name, now, first)
			}
			if now := view(); now != seen {
				t.Errorf("%s, %s: the view is another one:\n%s", modes[mode].name, name, now)
			}
		}
	}
}

// TestSignedReachesThePlan is the other direction: a plan of other signed
// content is another plan, down to its report.
func TestSignedReachesThePlan(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(s *scene){
		"nothing":      func(*scene) {},
		"task":         edit(bundle.TaskSpec, set("task_id", "other")),
		"bytes":        func(s *scene) { s.last().WriteRaw(bundle.TaskSpec, append(s.last().Read(bundle.TaskSpec), '\n')) },
		"completed_at": edit(bundle.Status, set("completed_at", "1999-01-01T00:00:00Z")),
		"another key":  func(s *scene) { s.last().Seed[0] ^= 1 },
		"one output": edit(bundle.OutputHashes, func(f map[string]any) {
			delete(f["hashes"].(map[string]any), "top.txt")
		}),
	} {
		s := newScene(t, false, oneRun)
		for path := range oneRun {
			must(t, os.Chtimes(s.inProject(path), time.Time{}, time.Unix(1, 0)))
		}
		change(s)
		s.last().Sign()
		said := described(s.mustPlan().Plan())
		if before, ok := seen[said]; ok {
			t.Errorf("%s gives the plan of %s", name, before)
		}
		seen[said] = name
	}
}

// TestVerdictsOfUnsigned: what is rejected is rejected with the same words,
// whatever the unsigned parts say.
func TestVerdictsOfUnsigned(t *testing.T) {
	s := newScene(t, false, oneRun)
	s.put("top.txt")
	s.Write(restore.ReportName, "x")
	signedIn(s, 0, restore.ReportName)
	first := answer(t, s.candidate(), s.root)
	for name, change := range unsignedChanges {
		change(s)
		if now := answer(t, s.candidate(), s.root); now != first {
			t.Errorf("%s: %s\nbefore\n%s", name, now, first)
		}
	}
	if _, err := restore.ForRoot(context.Background(), s.candidate(), s.root); fmt.Sprint(restoretest.FailureOf(t, err).Code) != string(restore.TargetPathExists) {
		t.Errorf("%v", err)
	}
}
