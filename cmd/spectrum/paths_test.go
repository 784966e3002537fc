package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// resolvers are the functions that resolve a path, by the package that has them. pathsafe has
// all others: they take a handle and one name.
var resolvers = map[string][]string{
	"os": {
		"Chdir", "Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Lchown", "Link", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp",
		"Open", "OpenFile", "OpenInRoot", "OpenRoot", "ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate", "WriteFile",
	},
	"path/filepath":             {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"io/ioutil":                 {"ReadDir", "ReadFile", "TempDir", "TempFile", "WriteFile"},
	"syscall":                   systemCalls,
	"golang.org/x/sys/unix":     systemCalls,
	module + "pathsafe":         {"OpenRoot", "OpenOwn", "OpenFile"},
	module + "verify":           {"OpenRun"},
	module + "restore/snapshot": {"Open"}, module + "restore/savepoint": {"Open"}, module + "restore/quarantine": {"Open"},
}

var systemCalls = []string{
	"Access", "Acct", "Chdir", "Chmod", "Chown", "Chroot", "Creat", "Faccessat", "Fchmodat", "Fchownat", "FanotifyMark", "Getxattr", "InotifyAddWatch", "Lchown", "Lgetxattr", "Link", "Linkat", "Listxattr", "Llistxattr",
	"Lremovexattr", "Lsetxattr", "Lstat", "Mkdir", "Mkdirat", "Mkfifo", "Mkfifoat", "Mknod", "Mknodat", "Mount", "MountSetattr", "MoveMount", "NameToHandleAt", "Open", "OpenTree", "Openat", "Openat2", "PivotRoot",
	"Readlink", "Readlinkat", "Removexattr", "Rename", "Renameat", "Renameat2", "Rmdir", "Setxattr", "Stat", "Statfs", "Symlink", "Symlinkat", "Truncate", "Unlink", "Unlinkat", "Unmount", "Utime", "Utimes", "UtimesNano", "UtimesNanoAt",
}

// pathUses are the functions outside of pathsafe that resolve a path all the same, each
// with what they call and why that is safe. "given" is a path of the command line, of the
// environment or of a caller of the library, when it is resolved for the first time.
var pathUses = map[string]string{
	"cmd/spectrum.app.sealUpper: pathsafe.OpenRoot":             "given: the lower layer, from then on a handle",
	"cmd/spectrum.readLayerRecord: os.ReadFile":                 "given: the file beside a layer, of the user who names the layer",
	"cmd/spectrum.running.open: pathsafe.OpenRoot":              "given: the directory to run over, from then on a handle; the overlay has to be of the same, by its identity",
	"cmd/spectrum.running.checkPlace: pathsafe.OpenRoot":        "held against the handle of the layer, by its identity",
	"cmd/spectrum.running.remove: os.Remove":                    "the empty directory of a layer in the state directory, after checkPlace",
	"verify/bundle.Layer.isOrigin: unix.NameToHandleAt":         "of a handle, with no path",
	"cmd/spectrum.removeAll: os.RemoveAll":                      "a layer in the state directory, in which no other user can write",
	"cmd/spectrum.removeAll: filepath.WalkDir":                  "a layer in the state directory, in which no other user can write",
	"cmd/spectrum.removeAll: os.Chmod":                          "a layer in the state directory, in which no other user can write",
	"internal/overlay.job.mount: unix.Mount":                    "the root of the new namespace",
	"internal/overlay.job.mount: unix.Open":                     "in the new namespace, where no handle of another one can be mounted on: the directory has to be the same, by its identity; the layers are in the state directory",
	"internal/overlay.job.mount: unix.MoveMount":                "handles",
	"internal/overlay.keeper.start: os.Chdir":                   "the working directory, in the new namespace",
	"internal/overlay.find: os.Stat":                            "given: the command, looked up as a shell does",
	"internal/overlay.find: unix.Access":                        "given: the command, looked up as a shell does",
	"internal/overlay.children: os.ReadFile":                    "/proc",
	"internal/overlay.setting: os.ReadFile":                     "/proc/sys",
	"internal/overlay.watch.add: unix.InotifyAddWatch":          "a layer in the state directory; what is reported is only read, through handles",
	"internal/overlay.watch.found: os.ReadDir":                  "a layer in the state directory; what is reported is only read, through handles",
	"cmd/spectrum.app.fetchCandidate: verify.OpenRun":           "in a private directory of the state directory, just fetched",
	"verify/store.files.root: pathsafe.OpenRoot":                "given: the directory of a store, of which nothing is trusted; from then on a handle",
	"verify/store.files.at: pathsafe.OpenOwn":                   "given: the directory of a store, through no link of another user; from then on a handle",
	"cmd/spectrum.candidate.open: verify.OpenRun":               "given: opened when a law looks into it, and another directory of that path is not entered again",
	"cmd/spectrum.changes.patch: pathsafe.OpenRoot":             "the real path of the restore root; it has to be the one of the mount, by its identity",
	"cmd/spectrum.Unlock: unix.Lstat":                           "a path of the state directory: only the words of a hint follow",
	"cmd/spectrum.mendLock: unix.Lstat":                         "the lock of a restore root: only the words of a hint follow",
	"cmd/spectrum.aside: os.Lstat":                              "a free name in the state directory: only the words of a hint follow",
	"cmd/spectrum.Broken.lost: pathsafe.OpenRoot":               "record: the restore root of a snapshot; only the words of a hint follow",
	"internal/statedir.Dir.FindRoot: pathsafe.OpenRoot":         "given: a restore root; only which records are of it follows",
	"restore/action.HaltsOfOverlapping: pathsafe.OpenRoot":      "given: a restore root; only whether another one that shares directories with it is halted follows",
	"restore/action.identitiesOf: pathsafe.OpenRoot":            "the directories above a restore root that is open: only what they are is asked",
	"internal/machine.readIDMap: os.ReadFile":                   "/proc/self/uid_map and gid_map",
	"cmd/spectrum.directory.look: pathsafe.OpenRoot":            "given: the argument of doctor",
	"cmd/spectrum.openNamespace: unix.Open":                     "/proc/self/fd of a handle",
	"cmd/spectrum.openNamespace: unix.Openat":                   "one name beneath a handle; only a link of procfs to a namespace is followed",
	"cmd/spectrum.openNamespace: unix.Readlinkat":               "a handle itself",
	"cmd/spectrum.grantedAbove: pathsafe.OpenRoot":              "what the directory of a run directory grants now",
	"cmd/spectrum.haltedError.inspect: pathsafe.OpenRoot":       "record: the restore root of a halt; only words of a hint follow",
	"restore/action.HaltsAt: pathsafe.OpenRoot":                 "the recorded path of the restore root; only marks are looked for, and with one nothing is done",
	"cmd/spectrum.leave: os.OpenFile":                           "/dev/null",
	"cmd/spectrum.newBox: pathsafe.OpenOwn":                     "given: the directory of an export or a demo, from then on a handle",
	"cmd/spectrum.openProject: pathsafe.OpenRoot":               "given: the project root, from then on a handle",
	"cmd/spectrum.openBaseDir: pathsafe.OpenRoot":               "given: the directory that a change set started from, from then on a handle",
	"cmd/spectrum.signedBy: verify.OpenRun":                     "given: the run that a change set started from; only its signed artifacts are read",
	"cmd/spectrum.open: os.Lstat":                               "what git has answered: whether the top of the work tree has a .git; only whether it is read follows",
	"cmd/spectrum.isPlain: os.Stat":                             "a setting of git: only whether git is told of it follows",
	"cmd/spectrum.private.remove: os.RemoveAll":                 "a directory of mode 0700 that was made here, in TMPDIR, where no other user may replace it",
	"cmd/spectrum.repository.newPrivate: os.MkdirTemp":          "given: TMPDIR, in which a directory of mode 0700 is made",
	"cmd/spectrum.repository.newPrivate: os.RemoveAll":          "the directory that was made here",
	"cmd/spectrum.repository.newPrivate: os.MkdirAll":           "in the directory that was made here",
	"cmd/spectrum.repository.newPrivate: os.WriteFile":          "in the directory that was made here",
	"cmd/spectrum.repository.newPrivate: filepath.Glob":         "what git has answered: names in the git directory, whose content is the producer's",
	"cmd/spectrum.copyPlain: os.OpenFile":                       "what git has answered: a file of the git directory, whose content is the producer's; and its copy in the directory that was made here",
	"cmd/spectrum.waits.checkAbove: os.Lstat":                   "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.waits.checkTree: filepath.WalkDir":            "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.waits.checkGit: filepath.EvalSymlinks":        "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.waits.checkGit: filepath.WalkDir":             "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.checkFile: os.Stat":                           "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.firstLine: os.OpenFile":                       "what git opens by its path after this look, from which only an error follows",
	"cmd/spectrum.private.writeAttributes: os.OpenRoot":         "in the directory that was made here, from then on a handle",
	"cmd/spectrum.openNew: pathsafe.OpenOwn":                    "given: the directory of the page or the report, from then on a handle",
	"cmd/spectrum.openMaking: pathsafe.OpenOwn":                 "given: the nearest directory above a demo, from then on handles",
	"cmd/spectrum.runsIn: pathsafe.OpenRoot":                    "the words of a hint",
	"cmd/spectrum.nearPath: pathsafe.OpenRoot":                  "the words of a hint",
	"verify/bundle.CheckSealed: pathsafe.OpenRoot":              "record: a candidate that is named; only whether it is still the one that was sealed, and it is verified by another handle afterwards",
	"cmd/spectrum.app.printDiff: pathsafe.OpenRoot":             "given: the restore root, from then on a handle",
	"cmd/spectrum.runKeygen: pathsafe.OpenOwn":                  "given: the directory of the key, from then on a handle",
	"cmd/spectrum.Runs.openRuns: pathsafe.OpenRoot":             "given: the runs directory, from then on a handle",
	"cmd/spectrum.freeRunDir: pathsafe.OpenRoot":                "given: the runs directory of a project; only a free name in it follows, which is made exclusively",
	"restore/action.LeftoversAt: pathsafe.OpenRoot":             "record: the restore root of a preview that was used, or of a commit; its content only decides between two rejections, or reports",
	"cmd/spectrum.rootStatus.open: pathsafe.OpenRoot":           "given or record: a restore root; only its content is reported",
	"cmd/spectrum.savepointCommand.compare: pathsafe.OpenRoot":  "record: the root of a savepoint; only drift is reported",
	"cmd/spectrum.sealSample: os.CopyFS":                        "through the handle of a box",
	"cmd/spectrum.snapshotCommand.lookAt: pathsafe.OpenRoot":    "given, or record: the restore root; only what differs is reported",
	"cmd/spectrum.stateMissing: pathsafe.OpenRoot":              "doctor: a look, from which nothing follows",
	"cmd/spectrum.tamperedCopy: os.CopyFS":                      "through the handle of a box",
	"cmd/spectrum.tamperedCopy: os.DirFS":                       "through the handle of a box",
	"cmd/spectrum.tamperedCopy: os.ReadFile":                    "through the handle of a box",
	"cmd/spectrum.tamperedCopy: os.WriteFile":                   "through the handle of a box",
	"cmd/spectrum.writeManualPage: os.MkdirAll":                 "the build: pages are written when the program is packaged",
	"cmd/spectrum.writeManualPage: os.WriteFile":                "the build: pages are written when the program is packaged",
	"internal/machine.LeaseText: os.ReadFile":                   "/proc",
	"internal/machine.LeaseText: os.Stat":                       "/proc",
	"fusefs/fusemount.abortConnection: os.OpenFile":             "/sys",
	"fusefs/fusemount.abortConnection: unix.Statfs":             "/sys",
	"fusefs/fusemount.openDevice: unix.Open":                    "/dev/fuse",
	"fusefs/fusemount.checkShared: os.Open":                     "/etc/fuse.conf",
	"fusefs/fusemount.connectionOf: os.ReadFile":                "/proc",
	"fusefs/fusemount.holdsOf: os.ReadDir":                      "/proc",
	"fusefs/fusemount.holdsOf: os.ReadFile":                     "/proc",
	"fusefs/fusemount.mapped: os.Open":                          "/proc",
	"internal/served.MountID: os.ReadFile":                      "/proc/self",
	"fusefs/fusemount.openControl: unix.Openat":                 "one name beneath a handle",
	"fusefs/fusemount.heldDir.checkEmpty: unix.Openat":          "one name beneath a handle",
	"fusefs/fusemount.heldDir.openTop: os.Readlink":             "/proc/self/fd of a handle",
	"fusefs/fusemount.heldDir.openTop: unix.Openat":             "one name beneath a handle",
	"fusefs/fusemount.heldDir.unmount: unix.Unmount":            "/proc/self/fd of a handle",
	"fusefs/fusemount.heldDirOf: os.Readlink":                   "/proc/self/fd of a handle",
	"fusefs/fusemount.raiseReadAhead: os.WriteFile":             "/sys",
	"internal/served.readlinkAt: unix.Readlinkat":               "one name beneath a handle",
	"fusefs/fusemount.system.checkHelper: unix.Getxattr":        "a look at fusermount3, of root",
	"fusefs/fusemount.system.checkHelper: unix.Stat":            "a look at fusermount3, of root",
	"fusefs/fusemount.system.checkHelper: unix.Statfs":          "a look at fusermount3, of root",
	"fusefs/fusemount.system.mountDirect: unix.Mount":           "/proc/self/fd of a handle",
	"fusefs/fusemount.target: os.Readlink":                      "/proc",
	"internal/served.walk.enter: unix.Openat":                   "one name beneath a handle",
	"cmd/spectrum.snapshotCommand.repair: pathsafe.OpenRoot":    "the recorded path of the restore root; what is taken from it has to hash to the name of an object",
	"internal/statedir.leadsTo: pathsafe.OpenRoot":              "the recorded path of a restore root that was found elsewhere: only whether it is the same one is asked",
	"restore/action.Retention.unfinishedIn: pathsafe.OpenRoot":  "the recorded path of the restore root; only names are looked at, and a snapshot more stays",
	"internal/dropin.open: pathsafe.OpenRoot":                   "given: a directory of /etc, or of the state directory, whose owner and mode are checked by the handle",
	"internal/machine.hasNoJournal: os.ReadFile":                "/sys",
	"internal/machine.hasNoJournal: os.Readlink":                "/sys",
	"internal/statedir.makeAll: os.Mkdir":                       "given: what is missing of the state directory, which is then opened once",
	"internal/statedir.makeAll: pathsafe.OpenRoot":              "given: what is missing of the state directory, which is then opened once",
	"internal/statedir.openBy: pathsafe.OpenRoot":               "given: the state directory, from then on a handle",
	"internal/statedir.openToAppend: unix.Openat":               "one name beneath a handle",
	"restore.openRoot: pathsafe.OpenRoot":                       "given: the restore root; it has to be the one that was entered, by its identity",
	"restore/action.enteredOnce: pathsafe.OpenRoot":             "given: the restore root, from then on a handle",
	"restore/action.entering.stays: pathsafe.OpenRoot":          "whether the path still leads to the handle, by its identity",
	"restore/quarantine.openPrivate: pathsafe.OpenRoot":         "given: of the library; the command has a handle",
	"restore/savepoint.Open: pathsafe.OpenRoot":                 "given: of the library; the command has a handle",
	"restore/savepoint.Savepoint.readReport: pathsafe.OpenRoot": "what is read has to be what was signed",
	"restore/snapshot.Peek: pathsafe.OpenRoot":                  "given: the store of snapshots; what is read has to hash to the name of an object",
	"restore/snapshot.open: pathsafe.OpenRoot":                  "given: of the library; the command has a handle",
	"restore/trust.openDir: pathsafe.OpenRoot":                  "given: a directory of /etc, or of the state directory",
	"staging.busy: os.ReadFile":                                 "/proc",
	"staging.sysHook.setModTime: unix.UtimesNanoAt":             "a handle, or /proc/self/fd of it",
	"verify.location.open: pathsafe.OpenRoot":                   "given: the run directory; the second time it has to be the same, by its identity",
	"verify/bundle.Key.Save: pathsafe.OpenOwn":                  "given: the directory of the key, from then on a handle",
	"verify/bundle.makeDirs: pathsafe.OpenOwn":                  "given: the nearest directory above a run directory, from then on handles",
	"verify/bundle.readKeyFile: pathsafe.OpenFile":              "given: the key; what it is is looked at by the descriptor",
	"verify/bundle.runDir.openParent: pathsafe.OpenOwn":         "given: a look before work begins; that the name is free is decided by the rename",
}

// TestPathsAreResolvedOnce: outside of pathsafe nothing is looked up by a path, which
// another user may have exchanged since it was resolved, but for what is listed with its
// reason.
func TestPathsAreResolvedOnce(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range sourceDirs(t) {
		rel, above := strings.CutPrefix(dir, "../../")
		if !above {
			rel = "cmd/spectrum"
		}
		if rel == "pathsafe" {
			continue
		}
		set, files := parsed(t, dir)
		for _, file := range files {
			names := importNames(file)
			for _, decl := range file.Decls {
				for _, call := range pathCalls(decl, names) {
					use := fmt.Sprintf("%s.%s: %s", rel, declName(decl), call.name)
					found[use] = true
					if pathUses[use] == "" {
						t.Errorf("%v: %s resolves a path; use a handle of pathsafe", set.Position(call.node.Pos()), use)
					}
				}
			}
		}
	}
	for _, use := range slices.Sorted(maps.Keys(pathUses)) {
		if !found[use] {
			t.Errorf("%q is listed, and is not there any more", use)
		}
	}
	if len(found) < 60 {
		t.Errorf("found %d uses: this test no longer finds them", len(found))
	}
}

// importNames are the packages of a file, by the names that they have in it.
func importNames(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = path
	}
	return names
}

type pathCall struct {
	name string
	node ast.Node
}

// pathCalls are the functions of resolvers that a declaration names, called or not. A call
// for a file of the system, named in the source, is not one of them.
func pathCalls(decl ast.Decl, names map[string]string) (calls []pathCall) {
	system := map[ast.Node]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 && isOfSystem(call.Args[0]) {
			system[call.Fun] = true
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || system[n] {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if ok && slices.Contains(resolvers[names[pkg.Name]], sel.Sel.Name) {
			calls = append(calls, pathCall{pkg.Name + "." + sel.Sel.Name, n})
		}
		return true
	})
	return calls
}

// isOfSystem reports whether an argument is a path that only root can exchange.
func isOfSystem(arg ast.Expr) bool {
	literal, ok := arg.(*ast.BasicLit)
	if !ok {
		return false
	}
	path, _ := strconv.Unquote(literal.Value)
	return path == "/" || slices.ContainsFunc([]string{"/proc", "/sys", "/dev", "/etc"}, func(dir string) bool {
		return path == dir || strings.HasPrefix(path, dir+"/") && filepath.Clean(path) == path
	})
}

// declName is the name of a function, with its receiver; of another declaration "-".
func declName(decl ast.Decl) string {
	f, ok := decl.(*ast.FuncDecl)
	if !ok {
		return "-"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
