package hostile

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// A place is a project with a run, everything that a command is given, and
// nothing else in one directory. It begins good: each entry of the table makes
// it hostile.
type place struct {
	*testing.T
	top, project, root, mountpoint, state, key, outside string

	runs    []signedRun
	dirs    []string // the run directories on the command line
	chain   bool     // with --chain
	rootArg string   // the restore root as it is given
	apart   bool     // with --project-root

	withRoot  bool // mount is given the restore root too
	emptyRoot bool // the restore root is given as the empty string

	sealArgs []string // the outputs that seal is given, in the project
	sealDir  string   // and the run directory

	user     uint32                              // who runs the commands
	binary   string                              // the program, where it is not the usual one
	under    []string                            // what runs them, such as prlimit
	faults   func(command string) *sysfault.Plan // what befalls a command
	before   func(command string) (after func()) // around each command
	check    func(command string, r reply)       // looks at each answer
	inView   func(view string)                   // looks at the view
	closed   []string                            // files that must not be opened for reading
	started  chan *os.Process                    // receives the process of a command
	staged   bool                                // a commit that is rejected has been at work in the root
	restless map[string]bool                     // what changes by itself, by path below top
	seen     *picture                            // after the last command, if nothing has changed since
}

// A signedRun is a run as it was signed.
type signedRun struct {
	forge.Run
	id, dir string
	outputs forge.Outputs
}

const content = "gamma\n"

// newPlace makes a good project: one output, one run, an empty restore root.
func newPlace(t *testing.T) *place {
	t.Helper()
	top := t.TempDir()
	at := func(name string) string { return filepath.Join(top, name) }
	p := &place{
		T: t, top: top, project: at("project"), root: at("root"), mountpoint: at("view"), state: at("state"),
		key: at("state/key.pem"), outside: at("outside"),
	}
	for _, dir := range []string{p.project, p.root, p.mountpoint, p.outside, at("fresh")} {
		harness.Must(t, os.Mkdir(dir, 0o755))
	}
	harness.Must(t, os.Mkdir(p.state, 0o700))
	harness.Must(t, os.WriteFile(p.key, privateKey(), 0o600))
	p.rootArg = p.root
	p.sealDir, p.sealArgs = p.runDir("sealed"), []string{"gen/c.txt"}
	p.add("run-1", forge.Outputs{"gen/c.txt": content})
	return p
}

// privateKey is a key that is public, as a file.
func privateKey() []byte {
	der, err := x509.MarshalPKCS8PrivateKey(forge.Key(3))
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (p *place) runDir(id string) string { return p.project + "/CONTRACTS/_runs/" + id }

// at is a path in the project.
func (p *place) at(name string) string { return p.project + "/" + name }

// add makes one more run with its outputs.
func (p *place) add(id string, outputs forge.Outputs) {
	p.Helper()
	harness.Must(p, outputs.Write(p.project))
	p.addSigned(id, outputs)
}

// addSigned makes a run over outputs whose sources are made elsewhere.
func (p *place) addSigned(id string, outputs forge.Outputs) {
	p.Helper()
	r := signedRun{forge.New(outputs), id, p.runDir(id), outputs}
	harness.Must(p, r.Write(r.dir))
	p.runs, p.dirs = append(p.runs, r), append(p.dirs, r.dir)
}

// only makes the run one over these outputs, and no others.
func (p *place) only(outputs forge.Outputs) {
	p.Helper()
	for _, r := range p.runs {
		harness.Must(p, os.RemoveAll(r.dir))
	}
	p.runs, p.dirs = nil, nil
	p.addSigned("run-1", outputs)
}

// last is the run that was made last.
func (p *place) last() *signedRun { return &p.runs[len(p.runs)-1] }

// edit changes the last run, and writes it again.
func (p *place) edit(do func(r forge.Run)) {
	p.Helper()
	r := p.last()
	do(r.Run)
	harness.Must(p, r.Write(r.dir))
}

// replace puts something else where a file was, or where nothing was.
func (p *place) replace(path string, with func(path string) error) {
	p.Helper()
	harness.Must(p, os.RemoveAll(path))
	harness.Must(p, os.MkdirAll(filepath.Dir(path), 0o755))
	harness.Must(p, with(path))
}

// isChain reports whether the commands see a chain.
func (p *place) isChain() bool { return p.chain || len(p.dirs) > 1 }

// wanted is what a view shows and a restore makes: content by path.
func (p *place) wanted() map[string]string {
	var ids, roots []string
	for _, r := range p.runs {
		ids, roots = append(ids, r.id), append(roots, r.Root())
	}
	files := map[string]string{}
	for i, r := range p.runs {
		prefix, chainRoot := "", any(nil)
		if p.isChain() {
			prefix, chainRoot = r.id+"/", forge.ChainRoot(ids, roots)
		}
		entries, size := []any{}, 0
		for _, path := range sorted(r.outputs) {
			files[prefix+path] = r.outputs[path]
			size += len(r.outputs[path])
			entries = append(entries, forge.Fields{"bytes": len(r.outputs[path]), "relative_path": path, "sha256": forge.Hash(r.outputs[path])})
		}
		files[prefix+"RESTORE_MANIFEST.json"] = string(forge.Canonical(forge.Fields{"entries": entries}))
		files[prefix+"RESTORE_REPORT.json"] = string(forge.Canonical(forge.Fields{
			"ok": true, "restored_files_count": len(entries), "restored_bytes": size, "bundle_roots": []string{roots[i]}, "chain_root": chainRoot,
		}))
	}
	return files
}

// Things to put somewhere.

func emptyFile(path string) error { return os.WriteFile(path, nil, 0o644) }

func file(content string) func(string) error {
	return func(path string) error { return os.WriteFile(path, []byte(content), 0o644) }
}

// deep makes a file at a path that may be too long for one call.
func (p *place) deep(path, content string) {
	p.Helper()
	fd, err := unix.Open(p.project, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	harness.Must(p, err)
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil && err != unix.EEXIST {
			p.Fatal(err)
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		harness.Must(p, err)
		unix.Close(fd)
		fd = next
	}
	out, err := unix.Openat(fd, names[len(names)-1], unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o644)
	harness.Must(p, err)
	unix.Close(fd)
	f := os.NewFile(uintptr(out), path)
	defer f.Close()
	_, err = f.WriteString(content)
	harness.Must(p, err)
}

// program is the binary that a place runs.
func (p *place) program() string {
	if p.binary != "" {
		return p.binary
	}
	return harness.Binary()
}
