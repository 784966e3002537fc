package restore_test

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// A fault is one thing that is wrong with a candidate or a restore root, and
// the code that the law has for it.
type fault struct {
	name  string
	code  restore.Code
	path  string // of the failure; rootPath for the restore root
	cause func(s *scene)
	modes string // "single" or "chain" when the fault is only there
	once  bool   // the fault changes the scene: it is good for one attempt
}

// rootPath stands for the path of the restore root, which each test has anew.
const rootPath = "the restore root"

// want is the failure that the law asks for.
func (f fault) want(s *scene) restore.Failure {
	w := restore.Failure{Code: f.code, Phase: phaseByLaw(s.t, f.code), Path: f.path}
	if f.path == rootPath {
		w.Path = s.root
		return w
	}
	if s.chain && f.code != restore.TargetMissing && len(s.runs) > 0 {
		w.RunID = s.lastID()
	}
	if f.path == lastRun {
		w.Path = s.lastID()
	}
	return w
}

// in reports whether the fault is one of this mode.
func (f fault) in(s *scene) bool {
	return f.modes == "" || (f.modes == "chain") == s.chain
}

// edit is a fault of one artifact of the last run, which is not signed again.
func edit(artifact string, change func(fields map[string]any)) func(*scene) {
	return func(s *scene) { s.last().Edit(artifact, change) }
}

func raw(artifact, text string) func(*scene) {
	return func(s *scene) { s.last().WriteRaw(artifact, []byte(text)) }
}

func gone(artifact string) func(*scene) {
	return func(s *scene) { s.last().Remove(artifact) }
}

// instead puts something that is not a regular file in the place of an artifact.
func instead(artifact string, with func(name string) error) func(*scene) {
	return func(s *scene) {
		s.last().Remove(artifact)
		must(s.t, with(s.last().Path(artifact)))
	}
}

func set(field string, value any) func(map[string]any) {
	return func(fields map[string]any) { fields[field] = value }
}

func unset(field string) func(map[string]any) {
	return func(fields map[string]any) { delete(fields, field) }
}

// verified makes PROOF.json of a restoration_result.
func verified(result any) func(*scene) {
	return edit(bundle.Proof, set("restoration_result", result))
}

// signedPath signs an output path that has no source of its own.
func signedPath(path string) func(*scene) {
	return func(s *scene) {
		s.last().EditHashes(func(h map[string]any) { h[path] = bundletest.Hash("x") })
	}
}

// strictFaults are order 1 of section 8.4.3. The last one is the last thing
// that a strict verifier looks at.
var strictFaults = []fault{
	{name: "run directory missing", cause: func(s *scene) { s.dirs[len(s.dirs)-1] += "-none" }},
	{name: "artifact missing", cause: gone(bundle.Signature)},
	{name: "artifact malformed", cause: raw(bundle.Status, "{")},
	{name: "key invalid", cause: edit(bundle.Identity, set("public_key", "00"))},
	{name: "artifact changed after signing", cause: edit(bundle.TaskSpec, set("task_id", "other"))},
	{name: "payload changed", cause: edit(bundle.SignedPayload, set("decision", "REJECT"))},
	{name: "signature of another payload", cause: edit(bundle.Signature, set("signature", zeros(128)))},
	{name: "forbidden artifact", cause: func(s *scene) { must(s.t, harness.Directory(s.last().Path("logs"))) }},
	{name: "output changed", path: "out/b.txt", cause: func(s *scene) { s.Write("out/b.txt", "BETA\n") }},
	{name: "output missing", path: "out/a.txt", cause: func(s *scene) { must(s.t, os.Remove(s.inProject("out/a.txt"))) }},
	{name: "output a FIFO", path: "top.txt", cause: func(s *scene) { s.replace("top.txt", harness.FIFO) }},
	{name: "a hash null", path: "null", cause: func(s *scene) {
		s.last().EditHashes(func(h map[string]any) { h["null"] = nil })
	}},
	{name: "status not success", cause: func(s *scene) {
		s.last().Edit(bundle.Status, set("cmp01", "fail"))
		s.last().Sign()
	}},
}

// proofFaults are order 2 of section 8.4.3.
var proofFaults = []fault{
	{name: "missing", code: restore.ProofMissing, cause: gone(bundle.Proof)},
	{name: "not JSON", code: restore.ProofMalformed, cause: raw(bundle.Proof, "not json")},
	{name: "empty file", code: restore.ProofMalformed, cause: raw(bundle.Proof, "")},
	{name: "an array", code: restore.ProofMalformed, cause: raw(bundle.Proof, "[]")},
	{name: "doubled key", code: restore.ProofMalformed, cause: raw(bundle.Proof, `{"restoration_result":{"verified":false,"verified":true}}`)},
	{name: "a directory", code: restore.ProofMalformed, cause: instead(bundle.Proof, harness.Directory)},
	{name: "a FIFO", code: restore.ProofMalformed, cause: instead(bundle.Proof, harness.FIFO)},
	{name: "a dangling link", code: restore.ProofMalformed, cause: instead(bundle.Proof, harness.LinkTo("nowhere"))},
	{name: "wrong proof_hash", code: restore.ProofMalformed, cause: edit(bundle.Proof, set("proof_hash", zeros(64)))},
	{name: "wrong proof_hash, result missing", code: restore.ProofMalformed, cause: raw(bundle.Proof, `{"proof_hash":"`+zeros(64)+`"}`)},
	{name: "wrong proof_hash, not verified", code: restore.ProofMalformed, cause: raw(bundle.Proof, `{"proof_hash":"`+zeros(64)+`","restoration_result":{"verified":false}}`)},
	{name: "result missing", code: restore.ProofRestorationResultMissing, cause: raw(bundle.Proof, "{}")},
	{name: "result null", code: restore.ProofRestorationResultMissing, cause: verified(nil)},
	{name: "result true", code: restore.ProofRestorationResultMissing, cause: verified(true)},
	{name: "result an array", code: restore.ProofRestorationResultMissing, cause: verified([]any{map[string]any{"verified": true}})},
	{name: "verified missing", code: restore.ProofNotVerified, cause: verified(map[string]any{})},
	{name: "verified false", code: restore.ProofNotVerified, cause: verified(map[string]any{"verified": false})},
	{name: "verified null", code: restore.ProofNotVerified, cause: verified(map[string]any{"verified": nil})},
	{name: "verified 1", code: restore.ProofNotVerified, cause: verified(map[string]any{"verified": 1})},
	{name: "verified a string", code: restore.ProofNotVerified, cause: verified(map[string]any{"verified": "true"})},
	{name: "Verified", code: restore.ProofNotVerified, cause: verified(map[string]any{"Verified": true})},
}

// hashesFaults are order 3 of section 8.4.3.
var hashesFaults = []fault{
	{name: "missing", code: restore.OutputHashesMissing, cause: gone(bundle.OutputHashes)},
	{name: "not JSON", code: restore.OutputHashesMalformed, cause: raw(bundle.OutputHashes, "{")},
	{name: "null", code: restore.OutputHashesMalformed, cause: raw(bundle.OutputHashes, "null")},
	{name: "doubled key", code: restore.OutputHashesMalformed, cause: raw(bundle.OutputHashes, `{"hashes":{},"hashes":{}}`)},
	{name: "a device", code: restore.OutputHashesMalformed, cause: instead(bundle.OutputHashes, harness.Device(unix.S_IFCHR, 1, 5))},
	{name: "a socket", code: restore.OutputHashesMalformed, cause: instead(bundle.OutputHashes, harness.Socket)},
	{name: "hashes missing", code: restore.OutputHashesHashesMissing, cause: edit(bundle.OutputHashes, unset("hashes"))},
	{name: "hashes null", code: restore.OutputHashesHashesMissing, cause: edit(bundle.OutputHashes, set("hashes", nil))},
	{name: "hashes a list", code: restore.OutputHashesHashesMissing, cause: edit(bundle.OutputHashes, set("hashes", []any{}))},
	{name: "hashes a number", code: restore.OutputHashesHashesMissing, cause: edit(bundle.OutputHashes, set("hashes", 7))},
	{name: "hashes empty", code: restore.OutputHashesHashesEmpty, cause: func(s *scene) {
		s.last().EditHashes(func(h map[string]any) { clear(h) })
	}},
}

// rootFaults are section 8.4.4.
var rootFaults = []fault{
	{name: "no root", code: restore.TargetMissing, cause: func(s *scene) { s.root = "" }},
	{name: "relative root", code: restore.TargetNotAbsolute, path: rootPath, cause: func(s *scene) { s.root = "." }},
	{name: "root missing", code: restore.TargetNotExist, path: rootPath, cause: func(s *scene) { s.root += "-none" }},
	{name: "root a dangling link", code: restore.TargetNotExist, path: rootPath, cause: insteadOfRoot(harness.LinkTo("nowhere"))},
	{name: "root a loop", code: restore.TargetNotExist, path: rootPath, cause: insteadOfRoot(harness.LinkTo("root"))},
	{name: "root below a file", code: restore.TargetNotExist, path: rootPath, cause: func(s *scene) {
		s.put("file")
		s.root = s.inRoot("file/root")
	}},
	{name: "root with a NUL", code: restore.TargetNotExist, path: rootPath, cause: func(s *scene) { s.root += "\x00" }},
	{name: "root too long", code: restore.TargetNotExist, path: rootPath, cause: func(s *scene) { s.root += "/" + zeros(256) }},
	{name: "root a file", code: restore.TargetNotDirectory, path: rootPath, cause: insteadOfRoot(writeFile)},
	{name: "root a FIFO", code: restore.TargetNotDirectory, path: rootPath, cause: insteadOfRoot(harness.FIFO)},
	{name: "root a device", code: restore.TargetNotDirectory, path: rootPath, cause: insteadOfRoot(harness.Device(unix.S_IFCHR, 1, 3))},
	{name: "root a link to a file", code: restore.TargetNotDirectory, path: rootPath, cause: func(s *scene) {
		s.put("file")
		s.link("file", "link")
		s.root = s.inRoot("link")
	}},
	{name: "root on a read-only mount", code: restore.TargetNotWritable, path: rootPath, cause: func(s *scene) {
		harness.Mount(s.t, "ro", s.root, "tmpfs", unix.MS_RDONLY, "")
	}},
	{name: "root on a dead mount", code: restore.TargetNotWritable, path: rootPath, cause: func(s *scene) {
		harness.DeadMount(s.t, s.root)
		s.arena = s.t.TempDir() // it cannot be examined
	}},
}

func insteadOfRoot(with func(string) error) func(*scene) {
	return func(s *scene) {
		must(s.t, os.RemoveAll(s.root))
		must(s.t, with(s.root))
	}
}

func writeFile(name string) error { return os.WriteFile(name, []byte("x"), 0o600) }

// pathFaults are section 8.4.5.
var pathFaults = []fault{
	{name: "traversal", code: restore.PathTraversalDetected, path: "../x", cause: signedPath("../x")},
	{name: "NUL", code: restore.PathNullByteDetected, path: "a\x00b", cause: signedPath("a\x00b")},
	{name: "both: traversal is first", code: restore.PathTraversalDetected, path: "../\x00", cause: signedPath("../\x00")},
	{name: "parent a link out", code: restore.SymlinkEscapeDetected, path: "out/a.txt", modes: "single", cause: func(s *scene) { s.link("..", "out") }},
	{name: "parent an absolute link in", code: restore.SymlinkEscapeDetected, path: "out/a.txt", modes: "single", cause: func(s *scene) {
		must(s.t, harness.Directory(s.inRoot("in")))
		s.link(s.inRoot("in"), "out")
	}},
	{name: "target a link out", code: restore.SymlinkEscapeDetected, path: "top.txt", modes: "single", cause: func(s *scene) { s.link("/etc/passwd", "top.txt") }},
	{name: "target a dangling link out", code: restore.SymlinkEscapeDetected, path: "top.txt", modes: "single", cause: func(s *scene) { s.link("../none", "top.txt") }},
	{name: "parent a link out and back", code: restore.SymlinkEscapeDetected, path: "out/a.txt", modes: "single", cause: func(s *scene) {
		must(s.t, harness.Directory(s.inRoot("in")))
		s.link("../root/in", "out")
	}},
	{name: "parent a loop", code: restore.SymlinkEscapeDetected, path: "out/a.txt", modes: "single", cause: func(s *scene) {
		s.link("loop", "out")
		s.link("out", "loop")
	}},
	{name: "parent out by a second link", code: restore.SymlinkEscapeDetected, path: "out/a.txt", modes: "single", cause: func(s *scene) {
		s.link("hop", "out")
		s.link("/tmp", "hop")
	}},
}

// planFaults are section 5.3, step 2.3.
var planFaults = []fault{
	{name: "source a link that stays inside", code: restore.SourceNotRegularFile, path: "out/b.txt", cause: func(s *scene) {
		s.Write("real", oneRun["out/b.txt"])
		s.replace("out/b.txt", harness.LinkTo("../real"))
	}},
	{name: "parent of a source a link that stays inside", code: restore.SourceNotRegularFile, path: "out/a.txt", cause: func(s *scene) {
		must(s.t, os.Rename(s.inProject("out"), s.inProject("real")))
		must(s.t, os.Symlink("real", s.inProject("out")))
	}},
	afterwards("source removed", restore.SourceMissing, func(name string) error { return nil }),
	afterwards("source became a directory", restore.SourceNotRegularFile, harness.Directory),
	afterwards("source became a FIFO", restore.SourceNotRegularFile, harness.FIFO),
	afterwards("source became a socket", restore.SourceNotRegularFile, harness.Socket),
	afterwards("source became a device", restore.SourceNotRegularFile, harness.Device(unix.S_IFBLK, 7, 0)),
	afterwards("source became a link", restore.SourceNotRegularFile, harness.LinkTo("a.txt")),
	afterwards("source became a dangling link", restore.SourceNotRegularFile, harness.LinkTo("none")),
	{name: "parent of a source became a file", code: restore.SourceMissing, path: "out/a.txt", once: true, cause: func(s *scene) {
		s.afterHashing(func() { s.replace("out", writeFile) })
	}},
}

// afterwards is a fault that happens to a source between its verification and
// the phase PLAN.
func afterwards(name string, code restore.Code, with func(string) error) fault {
	return fault{name: name, code: code, path: "out/b.txt", once: true, cause: func(s *scene) {
		s.afterHashing(func() { s.replace("out/b.txt", with) })
	}}
}

// chainFaults are the faults of chains, sections 3.3 and 6.3.
var chainFaults = []fault{
	{name: "empty chain", code: restore.VerifyStrictFailed, modes: "chain", cause: func(s *scene) { s.runs, s.dirs = nil, nil }},
	{name: "the same run twice", code: restore.ChainRunIDDuplicate, modes: "chain", cause: func(s *scene) {
		s.dirs = append(s.dirs, s.last().Dir)
	}},
	{name: "run directory exists", code: restore.ChainTargetDirExists, modes: "chain", path: lastRun, cause: func(s *scene) {
		must(s.t, harness.Directory(s.inRoot(s.lastID())))
	}},
	{name: "a file in its place", code: restore.ChainTargetDirExists, modes: "chain", path: lastRun, cause: func(s *scene) { s.put(s.lastID()) }},
	{name: "a link out in its place", code: restore.ChainTargetDirExists, modes: "chain", path: lastRun, cause: func(s *scene) { s.link("/tmp", s.lastID()) }},
	{name: "a dangling link in its place", code: restore.ChainTargetDirExists, modes: "chain", path: lastRun, cause: func(s *scene) { s.link("none", s.lastID()) }},
	{name: "a mount in its place", code: restore.ChainTargetDirExists, modes: "chain", path: lastRun, cause: func(s *scene) {
		harness.Mount(s.t, "t", s.inRoot(s.lastID()), "tmpfs", 0, "")
	}},
}

// lastRun stands for the id of the last run of a scene.
const lastRun = "the last run"

// faults are all of them; a group's code goes to those without one.
func faults() []fault {
	var all []fault
	for _, f := range strictFaults {
		f.code = restore.VerifyStrictFailed
		all = append(all, f)
	}
	for _, group := range [][]fault{proofFaults, hashesFaults, rootFaults, pathFaults, planFaults, chainFaults} {
		all = append(all, group...)
	}
	return all
}

// eachFault makes a scene with each fault that is tried, in each mode where it can be.
func eachFault(t *testing.T, tried sample.Stride, do func(t *testing.T, f fault, make func(testing.TB) *scene)) {
	n := 0
	for _, f := range faults() {
		for _, mode := range modes {
			if !f.in(&scene{chain: mode.name != "single"}) {
				continue
			}
			if n++; !tried.Has(n) {
				continue
			}
			t.Run(string(f.code)+"/"+f.name+"/"+mode.name, func(t *testing.T) {
				do(t, f, func(t testing.TB) *scene {
					s := mode.make(t)
					f.cause(s)
					return s
				})
			})
		}
	}
}
