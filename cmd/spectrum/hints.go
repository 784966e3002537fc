package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/restore/standing"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"golang.org/x/sys/unix"
)

// hintsOf names the next step after an error.
func hintsOf(err error) []string {
	var use *usageError
	var refusal *refusedError
	var halted *haltedError
	var halt *staging.HaltError
	var busy *staging.BusyError
	var damage *audit.DamageError
	var coded *codedError
	var unfit *unfitError
	var foreign *action.ForeignError
	var mounted *fusemount.MountpointError
	var owned *fusemount.NotOwnError
	var others *served.ForeignError
	var unfinished *action.UnfinishedError
	var linked *pathsafe.LinkError
	var other *action.OtherRootError
	switch {
	case statusOf(err) == statusInterrupted: // who interrupts knows how to go on
		return nil
	case errors.As(err, &mounted) && errors.As(err, &owned):
		return []string{notOwnHint(mounted.Path, owned.UserID)}
	case errors.As(err, &others):
		return []string{servedHint(others)}
	case statusOf(err) == statusMachine && errors.As(err, &unfinished):
		return slices.Concat(machineHints(err), []string{"then \"spectrum recover RESTORE_ROOT\" goes on where this had to stop, and so does the next command there; nothing is halted"})
	case statusOf(err) == statusMachine:
		return slices.Concat(machineHints(err), lackHints(err))
	case errors.As(err, &unfit):
		return known(unfit.failed[0].remedy)
	case errors.As(err, &coded):
		return known(coded.hint)
	case errors.As(err, &foreign):
		return []string{foreignHint(foreign)}
	case errors.As(err, &other):
		return []string{fmt.Sprintf("nothing was changed; leave out --foreign-root, or name %s with it if that is what is meant", shellQuote(other.Real))}
	case errors.As(err, &linked):
		return []string{fmt.Sprintf("links of other users are not followed; if %s is what is meant, name that path", shellQuote(linked.Real))}
	case errors.As(err, &halted):
		return halted.hints()
	case errors.As(err, &halt):
		return haltHints("RESTORE_ROOT")
	case errors.Is(err, staging.ErrStagingReplaced):
		return []string{stageRivalHint}
	case errors.Is(err, errTampered):
		return []string{".spectrum/status.json in the view names what does not match; get those files again from where they were sealed, then mount again"}
	case errors.Is(err, errRevoked):
		return []string{"mount again to look at it; \"rolled_back\" in its .spectrum/status.json goes on to say so"}
	case errors.As(err, &busy) && !errors.Is(err, pathsafe.ErrLocked):
		return []string{fmt.Sprintf("\"ls -l\" shows whose %q in the restore root is; move it away", staging.LockName)}
	case errors.As(err, &busy):
		return []string{"wait for it with --lock-timeout 5m"}
	case errors.As(err, &damage):
		return []string{"\"spectrum audit show\" prints the events before that; the last of them may be the one that was changed. Look into who may write the state directory, and keep the log as it is"}
	case errors.As(err, &use):
		return use.hints()
	case errors.As(err, &refusal):
		return []string{refusal.hint}
	case errors.Is(err, fusemount.ErrAllowOther):
		return []string{"root must put a line \"user_allow_other\" into /etc/fuse.conf; or mount without --allow-other", asksDoctor}
	case errors.Is(err, fusemount.ErrUnavailable):
		return []string{
			"install the fuse3 package, and run where /dev/fuse may be opened", asksDoctor,
			"without a view, \"spectrum ls\", \"spectrum cat\" and \"spectrum diff\" look into a candidate; every other command works as ever",
		}
	}
	return candidateHints(err)
}

// candidateHints returns the next steps for an error about a candidate, or about what is to
// be done with it.
func candidateHints(err error) []string {
	var reject *verify.Reject
	var failure *restore.Failure
	var held *quarantine.HeldError
	var strange *quarantine.RecordError
	var untrusted *preview.UntrustedError
	var signer *notTrustedError
	switch {
	case errors.As(err, &signer):
		return signer.hints()
	case errors.Is(err, verify.ErrHoles):
		return []string{"seal files without such holes, or leave them out; the limit is this program's and no verdict of a law"}
	case errors.Is(err, standing.ErrHoles), errors.Is(err, snapshot.ErrHoles):
		return []string{"fill or shorten that file, or move it away, then retry; the limit is this program's"}
	case errors.Is(err, preview.ErrRevoked):
		return []string{"find out who signed it and why; \"spectrum trust list\" says where he is revoked"}
	case errors.Is(err, preview.ErrQuarantined):
		id := "VALIDATOR_ID"
		if errors.As(err, &untrusted) {
			id = untrusted.ValidatorID
		}
		return []string{fmt.Sprintf("if you trust this validator, run \"spectrum trust add %s\", then this again; \"spectrum trust list\" says whom you trust", id)}
	case errors.As(err, &held):
		return heldHints(held.Source)
	case errors.As(err, &strange):
		return []string{"mend or remove what is named; who removes it frees the candidate, and \"spectrum audit show\" says what held it"}
	case isApproval(err):
		return approvalHints(err)
	case errors.As(err, &reject):
		return known(rejectHints[reject.Code])
	case errors.As(err, &failure) && failure.Code == restore.FinalizeFailed && errors.Is(err, pathsafe.ErrCrossesMount):
		return slices.Concat(attemptHints(err), []string{crossingHint}, lackHints(err))
	case errors.As(err, &failure):
		return slices.Concat(attemptHints(err), known(failureHints[failure.Code]), lackHints(err))
	}
	return []string{"mend what is named, and try again; if nothing is named, it is a fault of this program: report it with what \"spectrum version\" prints"}
}

// changedHint is for what another process has changed meanwhile.
const changedHint = "another process has changed what is named; see that no other one works there, then retry"

// machineFaults are faults of the machine, each with what to do about it. The first that
// fits counts.
var machineFaults = []struct {
	err  error
	hint string
}{
	{fusemount.ErrNotOwn, "the server of another user is asked nothing: name the run directory that the view shows, or run this as that user"},
	{unix.ENOSPC, "free space (or inodes: \"df -i\") in the file system that is named, then retry"},
	{unix.EDQUOT, "free space or raise the quota of this user in the file system that is named, then retry"},
	{unix.EFBIG, "raise the limit of the size of files (\"ulimit -f\"), or use a file system that takes larger ones"},
	{unix.EMFILE, "raise the limit of open files of this process (\"ulimit -n\"), then retry"},
	{unix.ENFILE, "the machine has no more open files: end what holds them, or raise fs.file-max, then retry"},
	{unix.ENOMEM, "free memory, or raise the limit of this process, then retry"},
	{unix.EROFS, "remount the file system read-write, or name a directory elsewhere"},
	{unix.ENAMETOOLONG, "use a shorter path: a name has at most 255 bytes in most file systems, a path 4,095"},
	{pathsafe.ErrTooLong, "use a shorter path: a name has at most 255 bytes, a path 4,095"},
	{unix.EXDEV, "the file system cannot rename this, as an overlay cannot rename directories of its lower layers; use another one for the restore root"},
	{unix.EIO, "look into the kernel's log (\"dmesg\") for the device, and check it before you retry"},
	{unix.ENOTCONN, "the server of a FUSE file system on the way has ended: unmount that, then retry"},
	{fusemount.ErrHidden, "unmount what is mounted on it or above it (\"findmnt\" shows the mounts as a tree), then run \"spectrum umount MOUNTPOINT\""},
	{fusemount.ErrMoved, "see that no other process moves what leads to the mount point, or mount where only you can, then retry"},
	{pathsafe.ErrNoProc, "run as root: mount -t proc proc /proc; in a container or a chroot, have its /proc mounted"},
	{fs.ErrPermission, "this user may not do that: run as the owner of what is named, or name something of your own"},
	{fs.ErrNotExist, changedHint},
	{fs.ErrExist, changedHint},
}

func machineHints(err error) []string {
	if machine.HasNoPlace(err) {
		return []string{"the working directory is there no more: change to another one, or name absolute paths"}
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

// asksDoctor is the next step after an error that is about the machine.
const asksDoctor = "\"spectrum doctor\" says what this machine can do, and what is missing"

// lackHints are for a commit that failed because the file system cannot do something.
func lackHints(err error) []string {
	if !errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return []string{"\"spectrum doctor RESTORE_ROOT\" says what its file system lacks"}
}

// notOwnHint says who can unmount a view, and how.
func notOwnHint(path string, uid int) string {
	unmount := "spectrum umount " + shellQuote(path)
	if uid <= 0 {
		return fmt.Sprintf("only root can unmount it: sudo %s", unmount)
	}
	return fmt.Sprintf("ask %s to run \"%s\"; or, as root: sudo %s", machine.UserText(uid), unmount, unmount)
}

// servedHint is the next step where another user serves what was named, or the way to it.
func servedHint(e *served.ForeignError) string {
	user := "that user"
	if e.UserID >= 0 {
		user = machine.UserText(e.UserID)
	}
	return fmt.Sprintf("the server of another user is asked nothing (\"findmnt -T PATH\" says what it serves): copy the files elsewhere as %s and name the copy, or run this as %s", user, user)
}

// attemptHints name the attempt whose rollback has just failed.
func attemptHints(err error) []string {
	var failed *staging.Error
	if !errors.As(err, &failed) || failed.Rollback == nil || failed.Attempt == "" {
		return nil
	}
	return []string{fmt.Sprintf("attempt %s stands in %q; \"spectrum audit show\" has it as a halt", failed.Attempt, stagingPrefix+failed.Attempt)}
}

func known(hint string) []string {
	if hint == "" {
		return nil
	}
	return []string{hint}
}

func approvalHints(err error) []string {
	again := "make a new preview with \"spectrum preview --restore-root DIR RUN_DIR...\""
	var shown *approvalRequired
	var vague *action.VagueError
	var unsaid *unsaidError
	var renewed *againError
	switch {
	case errors.As(err, &renewed):
		return []string{"make a new preview: " + renewed.command}
	case errors.As(err, &unsaid):
		return unsaid.hints()
	case errors.As(err, &shown):
		return shown.hints()
	case errors.As(err, &vague):
		return vagueHints(vague)
	case errors.Is(err, preview.ErrUnfit), errors.Is(err, preview.ErrUndecided):
		return []string{"look at the preview again, and approve what it shows; it was not used up"}
	case errors.Is(err, errApprovalRequired):
		return []string{again, "then \"spectrum commit --preview ID --approve STATEMENT\"; the preview recommends a statement"}
	default:
		return []string{again}
	}
}

func vagueHints(e *action.VagueError) []string {
	hints := append([]string{"the candidate is in quarantine now"}, heldHints(e.Source)[1:]...)
	if e.Recommended != "" {
		hints = append(hints, "the preview recommends: "+e.Recommended)
	}
	return hints
}

// hints name the statement that the preview recommends.
func (e *approvalRequired) hints() []string {
	if e.recommended == "" {
		return []string{"nothing of this candidate can be restored as it is; section 10 of the preview says why"}
	}
	return []string{e.command}
}

// heldHints are the next steps for a candidate in quarantine.
func heldHints(source string) []string {
	return []string{
		fmt.Sprintf("\"spectrum quarantine show %s\" says why", source),
		fmt.Sprintf("\"spectrum quarantine release %s --reason TEXT\" when it is clarified", source),
	}
}

// haltHints are the next steps for a root in which an attempt cannot be ended.
func haltHints(root string) []string {
	return []string{
		fmt.Sprintf("look at what is named, then \"spectrum recover %s\" tries again", root),
		"was the commit made with another state directory; name it with --state-dir DIR",
		fmt.Sprintf("\"spectrum recover --acknowledge %s\" shows what is inconsistent, and releases the root against a statement: what cannot be undone stays", root),
	}
}
