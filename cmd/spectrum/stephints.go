package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/dropin"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"github.com/spectrumfs/spectrum/verify/store"
)

// This file is the part of the table for hints that depend on what the command was doing: a
// function for each step, which is given what the hint names. A function that returns "" has no
// hint of its own, so the other rows of the table count.

// stateDirHint is for a state directory that cannot be opened.
func stateDirHint(path string, err error) string {
	return cmp.Or(doctor.StateRemedy(path, err), stateHint)
}

// configHint is for a config file that cannot be read.
func configHint(file string, err error) string {
	switch {
	case errors.Is(err, pathsafe.ErrSymlink):
		return "replace the symbolic link by the file itself"
	case errors.Is(err, dropin.ErrWritable):
		return fmt.Sprintf("chmod go-w %s %s", shellQuote(filepath.Dir(file)), shellQuote(file))
	case errors.Is(err, fs.ErrNotExist):
		return "name an existing file in " + configVariable + ", or unset it"
	}
	return "it and the directories above it must belong to root or to you, and other users must not be able to write to them: check with \"ls -ld\", then run chmod go-w"
}

// placeHint is the way out where a file or directory of the operator does not count, with
// what that means until then.
func placeHint(err error, until string) string {
	bad, is := errors.AsType[*dropin.Error](err)
	switch {
	case !is:
		return "fix the problem above and retry; until then " + until
	case errors.Is(err, dropin.ErrWritable):
		return fmt.Sprintf("check whether another user has changed it, then run chmod go-w %s; until then %s", shellQuote(bad.Path), until)
	case errors.Is(err, dropin.ErrOwner):
		return fmt.Sprintf("check its content; then, as root, run chown %d %s, or remove it; until then %s", os.Geteuid(), shellQuote(bad.Path), until)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("make %s readable for this user; until then %s", shellQuote(bad.Path), until)
	}
	return fmt.Sprintf("correct that file, or remove it: rm %s; until then %s", shellQuote(bad.Path), until)
}

// trustChangeHint is for a validator that could not be pinned, unpinned or revoked.
func trustChangeHint(err error) string {
	if errors.Is(err, trust.ErrKnown) {
		return "no command is needed; \"spectrum trust list\" lists the pinned and revoked validators"
	}
	return namesValidator
}

// keyHint is for a signing key that cannot be loaded.
func keyHint(path string, err error) string {
	switch {
	case errors.Is(err, bundle.ErrKeyMode):
		return "run chmod 600 " + shellQuote(path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("run chmod 600 %s as its owner, or name another key with --key FILE", shellQuote(path))
	case errors.Is(err, fs.ErrNotExist):
		return "\"spectrum keygen\" makes a key"
	}
	return "name another key with --key FILE; \"spectrum keygen --out FILE\" makes one"
}

// sealHint is for outputs that cannot be sealed.
func sealHint(err error) string {
	_, isSize := errors.AsType[*bundle.SizeError](err)
	special, isSpecial := errors.AsType[*bundle.SpecialError](err)
	_, isInDoubt := errors.AsType[*bundle.DoubtError](err)
	_, isForm := errors.AsType[*bundle.FormError](err)
	switch {
	case errors.Is(err, bundle.ErrHoles):
		return "" // operator policy
	case isSize:
		return "seal the outputs as several bundles; together they can be verified and restored as a chain"
	case isSpecial:
		return specialHint(special)
	case isInDoubt:
		return "leave that path out with --exclude PATTERN, or name a checkout of the base with --base DIR"
	case backslashIn(err) != "":
		return "rename it, or leave it out: --exclude " + shellQuote(patternOf(backslashIn(err)))
	case isForm:
		return "seal the whole project without --base, or leave that path out with --exclude PATTERN"
	case errors.Is(err, ignore.ErrPattern):
		return "fix that pattern, then seal again; \"man gitignore\" has the syntax"
	case errors.Is(err, bundle.ErrNothingCarried):
		return "add a file to the project, such as a note that says why the others are gone, then seal again"
	case errors.Is(err, bundle.ErrUnchanged):
		return "there is nothing to seal; if there should be, name another base, or the outputs that have changed"
	case errors.Is(err, fs.ErrExist):
		return "name a --run-dir that does not exist yet, or leave that out"
	case errors.Is(err, fs.ErrPermission):
		return "make that file or directory readable for this user, or leave it out with --exclude PATTERN, then seal again"
	}
	return "fix the problem above, or leave that file out with --exclude PATTERN, then seal again"
}

// specialHint is for what cannot be sealed.
func specialHint(e *bundle.SpecialError) string {
	if len(e.Found) == 1 && len(e.Found[0].Paths) == 1 {
		return "leave it out with --skip-special, or with --exclude PATTERN, then seal again"
	}
	return "leave them out with --skip-special, or some with --exclude PATTERN, then seal again"
}

// backslashIn returns the path that cannot be sealed because of a backslash in a name; "" for none.
func backslashIn(err error) string {
	if form, is := errors.AsType[*pathsafe.FormError](err); is && form.HasBackslash() {
		return form.Path
	}
	return ""
}

// ignoreHint is for a .spectrumignore that cannot be read, of which where returns the path; "" for other errors.
func ignoreHint(err error, where func(rel string) string, then string) string {
	file, is := errors.AsType[*ignore.FileError](err)
	if !is {
		return ""
	}
	return fmt.Sprintf("make %s a regular file with one pattern a line, or remove it, %s", shellQuote(where(file.Path)), then)
}

// gitHint is for the git repository of a project, root, that cannot be the base of a seal.
func gitHint(root string, err error) string {
	const instead = "name a copy of the project as it was with --base DIR"
	revision, isRevision := errors.AsType[*gitbase.RevisionError](err)
	missing, isMissing := errors.AsType[*gitbase.MissingError](err)
	_, waits := errors.AsType[*gitbase.WaitError](err)
	switch {
	case errors.Is(err, gitbase.ErrNoGit):
		return ""
	case errors.Is(err, gitbase.ErrOldGit):
		return "install a newer git, or " + instead
	case errors.Is(err, gitbase.ErrNoRepository):
		return "name the project with --project-root DIR, or " + instead
	case errors.Is(err, gitbase.ErrNotOwned):
		return "if you trust its owner: git config --global --add safe.directory " + shellQuote(root)
	case errors.Is(err, gitbase.ErrTemporary):
		return "set TMPDIR to a directory that this user can write to and that has room"
	case waits:
		return "remove it, or " + instead
	case isRevision && revision.IsShallow:
		return "the clone is shallow; fetch more of its history with git fetch --unshallow"
	case isRevision:
		return "name a commit, branch or tag: --base-git=REV"
	case isMissing:
		return fmt.Sprintf("sealing does not fetch; let git fetch it: git cat-file -e %s", missing.Object)
	}
	return instead
}

// hints are what to do about a command that was not started, or about what is kept of it.
func (e *runError) hints() []string {
	var hints []string
	_, isSpecial := errors.AsType[*bundle.SpecialError](e.err)
	_, isForm := errors.AsType[*bundle.FormError](e.err)
	isForm = isForm || backslashIn(e.err) != ""
	if refused, is := errors.AsType[*refusedError](e.err); is && !isSpecial && !isForm {
		hints = append(hints, refused.hint)
	}
	if e.layer == "" {
		return append(hints, "check the name of the command, and PATH; a name with a slash is a path")
	}
	seal := "to seal it: "
	if isSpecial || isForm {
		seal = "to seal it without that: "
	}
	hints = append(hints, "nothing is lost: what the command changed is in "+shellQuote(e.layer), seal+e.retry)
	if lower, is := errors.AsType[*bundle.LowerError](e.err); is {
		hints = append(hints, "with \"--exclude "+shellQuote(patternOf(lower.Paths[0]))+"\" and so on for each of these files they are left out")
	}
	return hints
}

// rejectedRunHint is for run directories that were rejected for what is not in the bundle: a
// directory that does not exist, which missing returns, or something that this user may not read.
func rejectedRunHint(err error, missing func() string) string {
	reject, is := errors.AsType[*verify.Reject](err)
	if !is {
		return ""
	}
	isUnread := reject.Code == verify.ArtifactMissing || reject.Code == verify.ArtifactMalformed || reject.Code == verify.OutputMissing
	if isUnread && strings.Contains(reject.Error(), fs.ErrPermission.Error()) {
		return "make that file or directory readable for this user, or run this as its owner"
	}
	if reject.Code != verify.ArtifactMissing {
		return ""
	}
	if dir := missing(); dir != "" {
		return fmt.Sprintf("run directory %s does not exist: name an existing one, or create one with \"spectrum seal\"", shellQuote(dir))
	}
	return ""
}

// removedHint is for a preview whose candidate, or the project of it, no longer exists; "" if it does, or if
// the error has another cause. A void preview can be made again only from its candidate.
func removedHint(err error, isVoid bool, origin preview.Origin) string {
	reject, isReject := errors.AsType[*verify.Reject](err)
	isMissing := isVoid || isReject && reject.Code == verify.ArtifactMissing || errors.Is(err, fs.ErrNotExist)
	if missing := missingOf(origin); isMissing && missing != "" {
		return fmt.Sprintf("the candidate of this preview was removed: %s does not exist; put it back, or make another candidate and a preview of that", shellQuote(missing))
	}
	return ""
}

// missingOf returns the run directory, or the project, of a preview that no longer exists; "" for none.
func missingOf(origin preview.Origin) string {
	if origin.View != nil || len(origin.RunDirs) > 0 && store.IsAddress(origin.RunDirs[0]) {
		return ""
	}
	for _, dir := range append([]string{origin.ProjectRoot}, origin.RunDirs...) {
		if way, err := pathsafe.WayTo(dir); err == nil && way.Missing {
			return dir
		}
	}
	return ""
}

// savepointSourceHint is for a candidate that is a savepoint of this host, by its id, and whose files are
// in root.
func savepointSourceHint(err error, id, root string) string {
	failed, is := errors.AsType[*restore.Failure](err)
	if is && strings.HasPrefix(string(failed.Code), "RESTORE_TARGET_") {
		return "" // it is about the restore root
	}
	return fmt.Sprintf("the files of a savepoint are those in its restore root: \"spectrum savepoint verify %s\" names those that have changed since; \"spectrum snapshot list %s\" lists what keeps earlier contents",
		id[:shortest], shellQuote(root))
}

// unpinnedHint is for a savepoint that is rejected for the signer of its files.
func unpinnedHint(by preview.Signed) string {
	if by.ValidatorID == "" {
		return ""
	}
	return fmt.Sprintf("validator %[1]s, which signed run %[2]q, from which the savepoint was restored, is not pinned: if you trust it, run \"spectrum trust add %[1]s\", then this again", by.ValidatorID, by.RunID)
}

// divergedHint is for an approval of a preview with conflicts with files that have diverged. Again returns
// the command that decides the first of them.
func divergedHint(err error, again func() string) string {
	diverged, is := errors.AsType[*preview.DivergedError](err)
	if !is {
		return ""
	}
	hint := "to restore them anyway: "
	if len(diverged.Conflicts) > maxDecided {
		hint = fmt.Sprintf("to restore the first %d anyway: ", maxDecided)
	}
	return hint + again() + "; with =keep instead of =replace a file stays as it is"
}

// noTargetHint is for a commit without a restore root. Sealed returns the directory that the candidate was
// sealed over, and the command that restores there; "" where there is none.
func noTargetHint(err error, sealed func() (over, command string)) string {
	failure, is := errors.AsType[*restore.Failure](err)
	if !is || failure.Code != restore.TargetMissing {
		return ""
	}
	over, command := sealed()
	if over == "" {
		return ""
	}
	return "the candidate was sealed over " + shellQuote(over) + "; to restore there: " + command
}

// blockedHint is for the failure of a restore that replaces and removes and cannot take a target away. The
// rest is the statement that approves all else; "" for none.
func blockedHint(err error, rest string) string {
	failure, is := errors.AsType[*restore.Failure](err)
	if !is || failure.Code != restore.TargetPathExists {
		return ""
	}
	hint := "what is named above can be neither replaced nor removed: move it away, then preview again"
	if rest != "" {
		hint += fmt.Sprintf("; or preview again and approve the rest: %q", rest)
	}
	return hint
}

// readHint is for a file of a candidate or of a restore root that cannot be read: hint, unless it is
// this machine that failed, a store, or a limit.
func readHint(err error, hint string) string {
	if verify.IsMachineFault(err) || isOfStore(err) || errors.Is(err, existing.ErrHoles) || errors.Is(err, verify.ErrHoles) {
		return ""
	}
	return hint
}

// isOfStore reports whether an error is one of reading a store, which has a code and hints of its own.
func isOfStore(err error) bool {
	_, isWrong := errors.AsType[*store.WrongError](err)
	_, isFault := errors.AsType[*store.FaultError](err)
	return isWrong || isFault
}

// mountpointHint is for a directory on which no view can be mounted.
func mountpointHint(err error, path string) string {
	switch {
	case errors.Is(err, fusemount.ErrDeadMount):
		return deadViewHint
	case errors.Is(err, fusemount.ErrAlreadyMounted):
		return "\"spectrum umount MOUNTPOINT\" unmounts a view"
	case errors.Is(err, fs.ErrNotExist):
		return "mkdir -p " + shellQuote(path)
	}
	return "make an empty directory and mount on that"
}

// viewHint is for a directory that was named as a view, and is none that can be used.
func viewHint(err error) string {
	if errors.Is(err, fusemount.ErrDeadMount) {
		return deadViewHint
	}
	return "name the mount point of a view"
}

// deadViewHint is for a view whose server has died.
const deadViewHint = "\"spectrum umount MOUNTPOINT\" clears it; then mount again"

// unmountHint is for a view that cannot be unmounted. If isHere, the working directory, which is that of
// the shell too, is in it.
func unmountHint(err error, isHere bool) string {
	busy, isBusy := errors.AsType[*fusemount.BusyError](err)
	switch {
	case errors.Is(err, fusemount.ErrNotOwn), errors.Is(err, fusemount.ErrUnavailable) && !isBusy:
		return ""
	case isBusy && isHere:
		return fmt.Sprintf("your shell is in it: leave it with \"cd /\", then run \"spectrum umount %s\"", shellQuote(busy.Path))
	case isBusy:
		return "end the processes that use it, then run umount again"
	}
	return nameView
}

// lostLogRemedy is for a damaged audit log, at, where recover looks at what is kept of a restore root.
func lostLogRemedy(at, root string) string {
	return fmt.Sprintf("\"spectrum audit verify\" shows details; rollbacks still work, and are logged after the damage; if no backup has the log, move it away, so that a new one begins: mv %s %s; then \"spectrum recover --acknowledge %s\" accepts the loss",
		shellQuote(at), shellQuote(at+".bad"), shellQuote(root))
}

// journalKeyHint is for a journal key that cannot be used.
func journalKeyHint(state *statedir.Dir) string {
	return statecheck.PlaceRemedy(&statedir.PartError{Path: filepath.Join(state.Path(), statedir.JournalKeyName), Name: statedir.JournalKeyName})
}

// A rootName is a restore root as a command has it.
type rootName struct {
	state    *statedir.Dir
	path     string
	isRecord bool // found in the records, not named by the operator
}

// hint is for a restore root that cannot be entered: for a known root that was deleted, how to restore it.
func (r rootName) hint(err error) string {
	quoted := shellQuote(r.path)
	switch {
	case errors.Is(err, action.ErrUnended):
		return fmt.Sprintf("\"spectrum recover %s%s\" ends it, and so does the command without --dry-run", foreignOption(r.path), quoted)
	case !errors.Is(err, action.ErrNoRoot):
		return ""
	case r.isRecord && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("if it was moved, \"spectrum recover NEW_PATH\" finds its history again; if it was deleted, mkdir %s, then run this again", quoted)
	}
	if way, unknown := pathsafe.WayTo(r.path); errors.Is(err, fs.ErrPermission) && unknown == nil && !way.Missing {
		if int(way.End.UID) == os.Geteuid() {
			return fmt.Sprintf("chmod u+rwx %s, then run this again", shellQuote(way.Real))
		}
		return fmt.Sprintf("it belongs to %s: run this as that user, or as root", machine.UserText(int(way.End.UID)))
	}
	if path := r.state.MovedRoot(action.RootPath(r.path)); path != "" {
		return fmt.Sprintf("that is the name of the records of %[1]s, where the root was found last: run this again with %[1]s", shellQuote(path))
	}
	if !isGone(r.state, r.path, err) {
		return missingHint(r.state, r.path)
	}
	return fmt.Sprintf("if it was moved, \"spectrum recover NEW_PATH\" finds its history again; if it was deleted, mkdir %s, then \"spectrum rollback --emergency %s\", or \"spectrum snapshot restore ID\" with an ID of \"spectrum snapshot list %s\"",
		quoted, foreignOption(r.path)+quoted, quoted)
}

// isGone reports whether it is the error of a known restore root at whose path nothing is.
func isGone(state *statedir.Dir, root string, err error) bool {
	paths, unknown := state.RootPaths()
	return errors.Is(err, action.ErrNoRoot) && errors.Is(err, fs.ErrNotExist) && unknown == nil && slices.Contains(paths, action.RootPath(root))
}

// noRootHint is for a restore root that cannot be opened.
const noRootHint = "name an existing directory; " + listsRoots

// missingHint is for a restore root that cannot be opened, and is not known.
func missingHint(state *statedir.Dir, root string) string {
	if way, err := pathsafe.WayTo(action.RootPath(root)); err != nil || !way.Missing {
		return noRootHint
	}
	if meant := meantRoot(state, action.RootPath(root)); meant != "" {
		return fmt.Sprintf("did you mean %s; %s", shellQuote(meant), listsRoots)
	}
	return noRootHint
}

// notInSnapshotHint is for paths that a snapshot does not have.
func notInSnapshotHint(err error, id string) string {
	if errors.Is(err, action.ErrNothingThere) || errors.Is(err, snapshot.ErrNotCovered) {
		return fmt.Sprintf("\"spectrum snapshot show %s\" lists what is in it; \"spectrum snapshot list\" lists other snapshots", id[:shortest])
	}
	return ""
}

// unnamedHint is for a savepoint that cannot be read, and of which it is not known what commit it is of.
func unnamedHint(state *statedir.Dir, damage *savepoint.DamageError) string {
	if hint := statecheck.Mend(state.Path(), damage); hint != "" {
		return hint
	}
	return statecheck.Aside(state, damage.RunDir)
}
