package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/store"
	"golang.org/x/sys/unix"
)

// changedHint is for what another process has changed meanwhile.
const changedHint = "another process changed what is named above; stop it, then retry"

// machineFaults are faults of the machine, each with what to do about it. The first that
// fits counts.
var machineFaults = []struct {
	err  error
	hint string
}{
	{fusemount.ErrNotOwn, "the view of another user is not queried: name the run directory that the view shows, or run this as that user"},
	{unix.ENOSPC, "free space (or inodes: \"df -i\") in the file system named above, then retry"},
	{unix.EDQUOT, "free space or raise the quota of this user in the file system named above, then retry"},
	{unix.EFBIG, "raise the limit of the size of files (\"ulimit -f\"), or use a file system that takes larger ones"},
	{unix.EMFILE, "raise the limit of open files of this process (\"ulimit -n\"), then retry"},
	{unix.ENFILE, "the machine has reached its limit of open files: end processes that have many, or raise fs.file-max, then retry"},
	{unix.ENOMEM, "free memory, or raise the limit of this process, then retry"},
	{unix.EROFS, "remount the file system read-write, or name a directory elsewhere"},
	{unix.ENAMETOOLONG, "use a shorter path: a name has at most 255 bytes in most file systems, a path 4,095"},
	{pathsafe.ErrTooLong, "use a shorter path: a name has at most 255 bytes, a path 4,095"},
	{unix.EXDEV, "the file system cannot rename this, as an overlay cannot rename directories of its lower layers; use another one for the restore root"},
	{unix.EIO, "look for errors of the device in the kernel's log (\"dmesg\"), and check the device before you retry"},
	{unix.ENOTCONN, "the server of a FUSE file system on the path has died: unmount that file system, then retry"},
	{fusemount.ErrHidden, "unmount what is mounted on it or above it (\"findmnt\" shows the mounts as a tree), then run \"spectrum umount MOUNTPOINT\""},
	{fusemount.ErrMoved, "make sure that no other process moves a directory above the mount point, or mount below directories that only you can write to, then retry"},
	{pathsafe.ErrNoProc, doctor.NoProcRemedy},
	{fs.ErrPermission, "this user may not do that: run as the owner of what is named above, or name a file or directory of your own"},
	{fs.ErrNotExist, changedHint},
	{fs.ErrExist, changedHint},
}

func machineHints(err error) []string {
	if at, is := errors.AsType[*pathsafe.MountError](err); is {
		return []string{mountHint(at, "retry")}
	}
	if machine.HasNoPlace(err) {
		return []string{"the working directory no longer exists: change to another one, or use absolute paths"}
	}
	for _, fault := range machineFaults {
		if errors.Is(err, fault.err) {
			return []string{fault.hint}
		}
	}
	if machine.IsDisturbed(err) {
		return []string{changedHint}
	}
	return []string{"fix the problem above and retry; " + asksDoctor}
}

// partHints are the hints that make a part of the state directory usable again, and, where
// rollbacks work without it, that they do.
func partHints(e *statedir.PartError) []string {
	aside := statecheck.PutAside(e.Path)
	fix := aside
	if errors.Is(e, fs.ErrPermission) {
		fix = cmp.Or(statecheck.Unlock(e.Path), aside)
	}
	hints := []string{fix}
	if isPlain := strings.Contains(e.Name, "/"); fix != aside && e.Name != "snapshots" && !isPlain { // a rollback requires it, and a preview requires a count
		hints = append(hints, "or, since rollbacks are possible without it: "+aside)
	}
	return append(hints, thenAgain)
}

// lockHint is for an entry at the name of the lock that cannot be locked.
const lockHint = "\"ls -l\" shows the owner of \"" + staging.LockName + "\" in the restore root; while that user runs a command there, wait"

const thenAgain = "then run this again"

// fixHints are those of an error, with the command first that repairs the part of the state directory
// that it is about.
func (a *app) fixHints(err error, v *verdict) []string {
	part, isPart := errors.AsType[*statedir.PartError](err)
	if isPart && v.isRejected() && errors.Is(part, fs.ErrPermission) {
		return partHints(part)
	}
	state, unknown := a.statePath()
	if isPart || unknown != nil || !v.isFixable() {
		return v.hints
	}
	abs, unknown := filepath.Abs(state)
	if unknown != nil {
		return v.hints
	}
	fix := statecheck.Mend(abs, err)
	if fix == "" {
		return v.hints
	}
	hints := []string{fix}
	if _, unfinished := errors.AsType[*action.UnfinishedError](err); !unfinished {
		hints = append(hints, thenAgain)
	}
	known := slices.Concat(machineHints(err), []string{snapshotHint})
	if _, isLock := errors.AsType[*staging.BusyError](err); isLock {
		hints = append(hints, lockHint)
	}
	return append(hints, slices.DeleteFunc(slices.Clone(v.hints), func(hint string) bool { return slices.Contains(hints, hint) || slices.Contains(known, hint) })...)
}

// asksDoctor is the next step after an error that is about the machine.
const asksDoctor = "\"spectrum doctor\" shows what this machine supports, and what is missing"

// lackHints are for a commit that failed because the file system cannot do something.
func lackHints(err error) []string {
	if !errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return []string{"\"spectrum doctor RESTORE_ROOT\" shows what its file system lacks"}
}

// mountHint returns how to remove a mount that is in the way, and the next step.
func mountHint(at *pathsafe.MountError, next string) string {
	whose := ""
	if at.UserID >= 0 {
		whose = fmt.Sprintf(" (%s serves it)", machine.UserText(at.UserID))
	}
	return fmt.Sprintf("unmount what is in the way%s: \"umount %s\"; then %s", whose, shellQuote(at.Mountpoint), next)
}

// notOwnHint returns which user can unmount a view, and how.
func notOwnHint(path string, uid int) string {
	unmount := "spectrum umount " + shellQuote(path)
	if uid <= 0 {
		return fmt.Sprintf("only root can unmount it: sudo %s", unmount)
	}
	return fmt.Sprintf("ask %s to run \"%s\"; or, as root: sudo %s", machine.UserText(uid), unmount, unmount)
}

func known(hint string) []string {
	if hint == "" {
		return nil
	}
	return []string{hint}
}

func vagueHints(e *action.VagueError) []string {
	return []string{
		"the candidate is in quarantine now",
		heldHints(e.Source)[1],
		fmt.Sprintf("after the release, \"spectrum commit --preview %s\" names the statement that approves it", e.Preview[:shortest]),
	}
}

// hints have what was typed, and the accepted statement, where that is known.
func (e *slipOfForm) hints() []string {
	typed := oneLine(fmt.Sprintf("you typed %q: nothing was approved", e.typed))
	if e.held != "" {
		return append([]string{typed + "; the candidate is in quarantine, so no statement approves it before its release"}, heldHints(e.held)...)
	}
	hints := []string{typed + ", and the preview is still valid"}
	if e.command != "" {
		hints = append(hints, "if that is what you approve: "+e.command)
	}
	return hints
}

// hints name the statement that the preview recommends.
func (e *approvalRequired) hints() []string {
	if e.recommended == "" {
		return append(e.next, "the preview recommends no file; section 10 of its report has the reasons, and \"spectrum review\" lets you choose files that may hold secrets")
	}
	if e.next != nil {
		return e.next
	}
	return []string{e.command}
}

// listsHeld is the next step for an operator who named no candidate that is in quarantine.
const listsHeld = "\"spectrum quarantine list --all\" lists the candidates, and what holds them"

// heldHints are the next steps for a candidate in quarantine.
func heldHints(source string) []string {
	return []string{
		fmt.Sprintf("\"spectrum quarantine show %s\" shows why", source),
		fmt.Sprintf("\"spectrum quarantine release %s --reason TEXT\" once its findings are resolved", source),
	}
}

// hints are the next steps for a root in which a rollback could not be carried out.
func (b *barMark) hints(path string) []string {
	root := foreignOption(path) + shellQuote(path)
	if stays, is := errors.AsType[*statedir.BarError](b.Err); is {
		return []string{oneLine(b.what()), "the root is as it was, and rollbacks still work", statecheck.BarRemedy(stays)}
	}
	return []string{
		oneLine(b.what()),
		acknowledgeHint(root),
		fmt.Sprintf("\"spectrum recover %s\" ends it too, where nothing is damaged", root),
		fmt.Sprintf("the root is as it was, and rollbacks still work, such as \"spectrum rollback --emergency %s\"; the first that succeeds ends the halt", root),
	}
}

// endsHalt is the next step for a root that a commit halts which could be neither completed nor undone.
func endsHalt(path string) string {
	return fmt.Sprintf("\"spectrum recover %s%s\" names what is in the way, and ends the halt once that is gone", foreignOption(path), shellQuote(path))
}

// haltHints are the next steps for a root in which an attempt cannot be ended, and its journal
// not be read.
func haltHints(root string) []string {
	return []string{
		fmt.Sprintf("fix what is named above, then run \"spectrum recover %s\", which tries again", root),
		"if another state directory was used, pass it with --state-dir DIR",
	}
}

func acknowledgeHint(root string) string {
	return fmt.Sprintf("\"spectrum recover --acknowledge %s\" shows what is inconsistent, and releases the root after a typed statement: changes that cannot be undone stay", root)
}

// slowHint is for commands with that flag only.
const slowHint = "a slow server needs --" + patienceFlag + " with a longer time"

// storeHints are the next steps after a request to a store that failed.
func storeHints(e *store.FaultError) []string {
	switch {
	case errors.Is(e, store.ErrMissing):
		return []string{"push the run again from where it was sealed; \"spectrum store check STORE\" names all that is missing"}
	case errors.Is(e, store.ErrUnlisted):
		return []string{"name a run of it as STORE@BUNDLE_ROOT, as \"spectrum push\" printed it; or name the store as file:// or s3:// where you can"}
	case errors.Is(e, unix.EISDIR):
		return []string{"move that directory away: nothing of a store has its name; then retry"}
	case strings.HasPrefix(e.Store, "file:") && machine.IsOrdinary(e.Err):
		return machineHints(e)
	}
	return []string{
		"check the address, the network, and what you may do there (AWS_PROFILE, AWS_ACCESS_KEY_ID); then retry: a push and a pull can be repeated",
		slowHint,
	}
}
