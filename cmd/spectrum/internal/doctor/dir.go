package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/staging"
)

// This file has the checks of a directory and its file system.

// examineDir adds the checks of a directory. elsewhere is the hint for an unsuitable one.
func (d *Doctor) examineDir(ctx context.Context, path, elsewhere string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	dir := &directory{path: path, elsewhere: elsewhere, probe: machine.NewName(), patience: d.Patience}
	s := Section{Title: fmt.Sprintf("the file system of %q", path)}
	if !d.examine(ctx, s, dir.look) {
		stuck := &d.sections[len(d.sections)-1].Checks[0]
		stuck.Path = path
		stuck.Remedy += "; then remove " + words.Shell(filepath.Join(path, dir.probe)) + ", if it is there"
	}
	return ctx.Err()
}

// directory is one that is looked at.
type directory struct {
	path, elsewhere string
	probe           string // name of the directory in which features are tried
	patience        time.Duration
	checks          []Check
}

func (d *directory) add(c Check) { d.checks = append(d.checks, c) }

func (d *directory) look(ctx context.Context) []Check {
	dir, err := pathsafe.OpenRoot(d.path)
	if err != nil {
		d.add(d.cannotOpen(err))
		return d.checks
	}
	defer dir.Close()
	volume, err := machine.Describe(dir)
	if err != nil {
		d.add(fine("file-system", d.path, "%v", err).but(Fail, "no command can work here", "check the disk: \"dmesg\""))
		return d.checks
	}
	if d.elsewhere == rootElsewhere { // a separate check covers users that can move the state directory
		d.add(d.parents())
	}
	writable := dir.Writable()
	d.add(d.writable(writable, volume))
	d.add(d.fileSystem(volume))
	d.add(d.space(volume))
	d.add(d.names(volume))
	if writable != nil {
		d.add(d.untried("this user may not write here", d.elsewhere))
		return d.checks
	}
	if unfinished := d.unfinished(dir); unfinished.Status != OK {
		d.add(unfinished)
		d.add(d.untried("nothing is changed in a root in which something is unfinished", unfinished.Remedy))
		return d.checks
	}
	d.tried(machine.Probe(ctx, dir, d.probe))
	return d.checks
}

// parents looks at the names that lead to a restore root.
func (d *directory) parents() Check {
	way, err := pathsafe.WayTo(d.path)
	if err != nil {
		return fine("root-parents", d.path, "%v", err).but(Warn, "it is unknown whether another user can rename the restore root", "")
	}
	if len(way.Loose) == 0 {
		return fine("root-parents", d.path, "no other user can rename %q, or what leads to it", d.path)
	}
	return fine("root-parents", d.path, "%s", way.Loose[0]).but(Warn,
		"a preview shows a conflict that has to be acknowledged; rollback, recover and snapshot need the real path",
		fmt.Sprintf("choose another restore root; or inspect that directory, and add --foreign-root %s to those commands", words.Shell(way.Real)))
}

func (d *directory) cannotOpen(err error) Check {
	c := fine("directory", d.path, "%v", err)
	remedy := d.elsewhere
	var others *served.ForeignError
	switch {
	case errors.As(err, &others):
		remedy = words.Served(others)
	case errors.Is(err, fs.ErrNotExist):
		remedy = "mkdir -p " + words.Shell(d.path)
	case errors.Is(err, fs.ErrPermission):
		remedy = "run as a user who may read it, or " + d.elsewhere
	}
	return c.but(Fail, "no command can work here", remedy)
}

func (d *directory) writable(err error, v machine.Volume) Check {
	if err == nil {
		return fine("directory", d.path, "this user may write in %q", d.path)
	}
	c := fine("directory", d.path, "%v", err)
	remedy := "run as a user who may write there, or " + d.elsewhere
	if v.ReadOnly {
		c.Found = fmt.Sprintf("%q is mounted read-only", orUnknown(v.Mountpoint))
		remedy = "find out why (\"dmesg\"), then as root: mount -o remount,rw " + words.Shell(orUnknown(v.Mountpoint)) + "; or " + d.elsewhere
	}
	return c.but(Fail, "nothing can be written here: a restore is rejected with RESTORE_TARGET_NOT_WRITABLE", remedy)
}

// Names of file systems. A name that ends with "." covers all that begin with it.
var (
	triedThroughCuts = []string{"ext4", "xfs", "btrfs"}
	inMemory         = []string{"tmpfs", "ramfs"}
	networked        = []string{
		"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "lustre", "gfs2", "ocfs2", "glusterfs", "beegfs", "vboxsf",
		"fuse.sshfs", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs",
	}
	unordered = []string{"vfat", "msdos", "exfat", "hfs", "hfsplus"}
)

func (d *directory) fileSystem(v machine.Volume) Check {
	c := fine("file-system", d.path, "%s on %q", orUnknown(v.Type), orUnknown(v.Mountpoint))
	if v.Type == "" {
		return c.but(Warn, "its behaviour in a power cut is unknown", d.elsewhere)
	}
	const tears = "after a power cut a part of a commit may remain, and recovery cannot detect it"
	switch {
	case v.NoJournal:
		c.Found += ", without a journal"
		return c.but(Warn, tears, "as root, while it is not mounted: tune2fs -O has_journal "+words.Shell(v.Source))
	case slices.Contains(unordered, v.Type):
		return c.but(Warn, tears, d.elsewhere)
	case v.Has("nobarrier") || v.Has("barrier=0"):
		c.Found += ", mounted without barriers"
		return c.but(Warn, tears, "as root: mount -o remount,barrier "+words.Shell(v.Mountpoint))
	case v.Has("volatile") || v.Has("fsync=volatile"):
		c.Found += ", mounted volatile"
		return c.but(Warn, tears, d.elsewhere+": a volume of the container")
	case v.Type == "overlay":
		return c.but(Warn, "files here are lost with their container; a directory that a rollback or snapshot restore removes and has to put back becomes a new inode", d.elsewhere+": a volume of the container")
	case slices.Contains(inMemory, v.Type):
		return c.but(Warn, "files here are lost at a restart", d.elsewhere)
	case slices.Contains(networked, v.Type):
		return c.but(Warn, "locks do not work across hosts: no other host may use the root at the same time; power cuts were not tested", d.elsewhere)
	case !slices.Contains(triedThroughCuts, v.Type):
		return c.but(Warn, "all-or-nothing after a power cut was not tested here", d.elsewhere)
	}
	return c
}

// What is little space, in bytes, in inodes, and as a part of the whole.
const (
	fewBytes  = 64 << 20
	fewInodes = 1000
	littleOf  = 100
)

// spaceID is the check of the space that is free.
const spaceID = "space"

func (d *directory) space(v machine.Volume) Check {
	if v.Bytes.Total == 0 {
		return fine(spaceID, d.path, "the file system does not count it")
	}
	c := fine(spaceID, d.path, "%s of %s free", words.Bytes(int64(v.Bytes.Free)), words.Bytes(int64(v.Bytes.Total)))
	if v.Inodes.Total > 0 {
		c.Found += fmt.Sprintf(", %d of %d inodes", v.Inodes.Free, v.Inodes.Total)
	}
	short := v.Bytes.Free < fewBytes || v.Bytes.Free < v.Bytes.Total/littleOf
	if i := v.Inodes; i.Total > 0 {
		short = short || i.Free < fewInodes || i.Free < i.Total/littleOf
	}
	if short {
		return c.but(Warn, "a commit that does not fit is rolled back: nothing of it is left", "\"df -h\" and \"df -i\" show what is used; \"spectrum snapshot prune\" removes old snapshots")
	}
	return c
}

// longName is the longest name that file systems of Linux take, in bytes.
const longName = 255

func (d *directory) names(v machine.Volume) Check {
	c := fine("name-length", d.path, "names of %d bytes", v.NameMax)
	if v.NameMax > 0 && v.NameMax < longName {
		return c.but(Warn, "a restore with a longer name is rolled back", d.elsewhere)
	}
	return c
}

// unfinished looks for what was killed, or is at work, without the lock.
func (d *directory) unfinished(dir *pathsafe.Dir) Check {
	c := fine("unfinished", d.path, "nothing is unfinished")
	found, err := staging.Leftovers(dir)
	if err != nil {
		c.Found = err.Error()
		return c.but(Fail, "no command can work here", "check the disk: \"dmesg\"")
	}
	if len(found) > 0 {
		c.Found = fmt.Sprintf("%q is running, or was killed", found[0])
		return c.but(Warn, "the next command on this root recovers it first", "spectrum recover "+words.Shell(d.path))
	}
	return c
}

// untried replaces all checks that were not made.
func (d *directory) untried(why, remedy string) Check {
	return fine("features", d.path, "not tried: %s", why).but(Skipped, "the features of the file system are unknown", remedy)
}

// tried adds what trying everything has led to. A disk that is full fails once.
func (d *directory) tried(findings []machine.Finding, err error) {
	var full []string
	findings = slices.DeleteFunc(findings, func(f machine.Finding) bool {
		if machine.IsFull(f.Err) {
			full = append(full, string(f.Feature))
		}
		return machine.IsFull(f.Err)
	})
	if machine.IsFull(err) {
		full = []string{strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	if len(full) > 0 {
		d.full(full)
	}
	switch {
	case machine.IsFull(err):
	case errors.Is(err, context.DeadlineExceeded):
		slow := fine("features", d.path, "the checks take more than %v", d.patience)
		d.add(slow.but(Warn, "a commit waits as long at each of its syncs", "see who writes there: \"iostat\"; then run it again"))
	case err != nil:
		c := fine("features", d.path, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		d.add(c.but(Fail, "a commit would fail here too", "look into why; remove "+words.Shell(filepath.Join(d.path, d.probe))+", if it is there"))
	}
	for _, f := range findings {
		d.add(d.feature(f))
	}
}

// full reports that there is no space, in place of earlier findings and of checks that could not be
// made.
func (d *directory) full(untried []string) {
	const remedy = "free space or inodes there: \"df -h\" and \"df -i\" show what is used; \"spectrum snapshot prune\" removes old snapshots"
	for i, c := range d.checks {
		if c.ID == spaceID {
			d.checks[i] = c.but(Fail, "nothing can be written here: a commit would fail", remedy)
		}
	}
	d.add(d.untried("there is no space: "+strings.Join(untried, ", "), remedy))
}

func (d *directory) feature(f machine.Finding) Check {
	about := features[f.Feature]
	c := fine(string(f.Feature), d.path, "%s", about.what)
	switch {
	case f.Err == nil:
		c.IsFeature = true
		return c
	case !machine.IsLacking(f.Err):
		c.Found = f.Err.Error()
		return c.but(Fail, "a commit would fail here too", "check the disk: \"df -h\", \"df -i\", \"dmesg\"")
	}
	c.Found = fmt.Sprintf("no: %v", f.Err)
	remedy := d.elsewhere
	if about.without == OK {
		remedy = ""
	}
	return c.but(about.without, about.consequence, remedy)
}

// features has the purpose of each feature, and the effect of its absence. A feature that only
// saves time or space counts as well without it.
var features = map[machine.Feature]struct {
	what        string
	without     Health
	consequence string
}{
	machine.Lock:          {"a lock excludes other processes on this host", Fail, "concurrent commits cannot be excluded: every commit is rejected"},
	machine.MountID:       {"mounts can be distinguished", Warn, "bind mounts beneath the root are not detected, and files may be written into them"},
	machine.BirthTime:     {"files have a birth time", Warn, "after a crash, a file that reuses the inode number of a staged file is distinguished from it only by size and SHA-256"},
	machine.Mode:          {"permission bits are kept", Fail, "restored files cannot get their mode: every commit is rolled back"},
	machine.Time:          {"times are kept to the nanosecond", Warn, "restored files do not have the times that the view shows"},
	machine.NoReplace:     {"a rename that replaces nothing", Fail, "a restore cannot be kept from overwriting: every commit fails before anything is copied"},
	machine.Exchange:      {"two names can be exchanged atomically", Warn, "while a snapshot is restored, some names are missing for a moment"},
	machine.FileSync:      {"a file is made durable", Fail, "files may be lost in a power cut: every commit is rolled back"},
	machine.DirSync:       {"names are made durable", Fail, "files may be lost in a power cut: every commit is rolled back"},
	machine.SyncFS:        {"all is made durable at once", Fail, "a commit of more than 16 files is rolled back"},
	machine.CaseSensitive: {"names that differ in case are two", Warn, "a restore that has two such names is rolled back"},
	machine.Symlinks:      {"symbolic links", Warn, "a snapshot that has some cannot be restored"},
	machine.HardLinks:     {"hard links", Warn, "a snapshot that has some cannot be restored"},
	machine.UserXattrs:    {"extended attributes", Warn, "a snapshot that has some cannot be restored"},
	machine.UnnamedFiles:  {"files appear whole", OK, "records are written under another name first; a kill can leave a \".spectrum-...\" file"},
	machine.FindHoles:     {"holes in files are found", OK, "sparse files take their full size in snapshots"},
	machine.ShareBlocks:   {"copies share their blocks", OK, "each copy takes its own space, and the time to write it"},
}
