package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
)

// This file has the checks of the state directory, which they never make, and of the clock, which
// they compare with its records.

// rootElsewhere and stateElsewhere are where to go from a file system that will not
// do.
const (
	rootElsewhere  = "choose a restore root on ext4, xfs or btrfs"
	stateElsewhere = "name a state directory on ext4, xfs or btrfs with --state-dir DIR"
)

// examineState adds what is found in the state directory, and of the file system
// that it is on, or would be made on.
func (d *Doctor) examineState(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := d.StatePath()
	if err != nil {
		d.sections = append(d.sections, Section{Title: "the state directory", Checks: []Check{
			fine("state-dir", "", "%v", err).but(Fail, "keys, previews and the log cannot be kept: nothing can be restored", "name a state directory with --state-dir DIR"),
			clockCheck(time.Now(), audit.Attempts{}),
		}})
		return nil
	}
	var base string
	answered := d.examine(ctx, Section{Title: "the state directory"}, func(ctx context.Context) []Check {
		var checks []Check
		base, checks = stateChecks(ctx, path)
		return checks
	})
	if !answered || base == "" { // a slow check may write base later
		return ctx.Err()
	}
	return d.examineDir(ctx, base, stateElsewhere)
}

// stateChecks also returns the directory whose file system matters, "" if there is none.
func stateChecks(ctx context.Context, path string) (base string, checks []Check) {
	base, err := statedir.Nearest(path)
	if err != nil {
		return "", []Check{stateRefused(path, err), clockCheck(time.Now(), audit.Attempts{})}
	}
	if abs, _ := filepath.Abs(path); base != abs {
		return base, []Check{stateMissing(abs, base), parentsCheck(abs), clockCheck(time.Now(), audit.Attempts{})}
	}
	state, err := statedir.Find(path)
	var parents *statedir.ParentsError
	if errors.As(err, &parents) {
		return base, []Check{parentsCheck(base), clockCheck(time.Now(), audit.Attempts{})}
	}
	if err != nil {
		return "", []Check{stateRefused(path, err), parentsCheck(base), clockCheck(time.Now(), audit.Attempts{})}
	}
	defer state.Close()
	checks = []Check{
		fine("state-dir", base, "only this user has access to %q", base),
		filesCheck(state), parentsCheck(base),
	}
	for _, f := range statecheck.Misplaced(state) {
		checks = append(checks, fine("state-parts", f.Path, "%s", f.What).but(Fail, "every command that needs it fails: nothing can be restored or rolled back", f.Remedy))
	}
	log, logged := logCheck(state)
	checks = append(checks, log)
	checks = append(checks, layerChecks(state)...)
	checks = append(checks, keptChecks(ctx, state)...)
	checks = append(checks, haltChecks(state, logged)...)
	return base, append(checks, clockCheck(time.Now(), logged))
}

// stateMissing: the first command makes it, if it may.
func stateMissing(path, base string) Check {
	c := fine("state-dir", path, "%q does not exist yet; the first command that needs it creates it", path)
	dir, err := pathsafe.OpenRoot(base)
	if err == nil {
		defer dir.Close()
		err = dir.Writable()
	}
	if err != nil {
		c.Found = fmt.Sprintf("%q does not exist and cannot be created: %v", path, err)
		return c.but(Fail, noState, "mkdir -p -m 700 "+words.Shell(path)+" as a user who has access, or use --state-dir DIR")
	}
	return c
}

const noState = "every command that writes state fails: nothing can be previewed or restored"

// stateRefused is a directory that no command takes.
func stateRefused(path string, err error) Check {
	remedy := cmp.Or(StateRemedy(path, err), "name another state directory with --state-dir DIR")
	if others, is := errors.AsType[*served.ForeignError](err); is {
		remedy += "; " + words.Served(others)
	}
	return fine("state-dir", path, "%v", err).but(Fail, noState, remedy)
}

// StateRemedy is what to do about a state directory that no command takes, as far as the error shows it; ""
// otherwise.
func StateRemedy(path string, err error) string {
	parents, isLoose := errors.AsType[*statedir.ParentsError](err)
	_, isOpen := errors.AsType[*statedir.ModeError](err)
	switch {
	case isLoose:
		return parentsRemedy(parents.Loose[0])
	case isOpen:
		return "chmod 700 " + words.Shell(path)
	case errors.Is(err, statedir.ErrForeign):
		return fmt.Sprintf("as root: chown %d %s; or name another one with --state-dir DIR", os.Geteuid(), words.Shell(path))
	}
	return ""
}

// filesCheck: a closed directory protects these files, but a copy keeps their modes, and a readable
// key is rejected.
func filesCheck(state *statedir.Dir) Check {
	const id = "state-files"
	exposed, err := state.Exposed()
	if err != nil {
		return fine(id, state.Path(), "%v", err).but(Warn, "it is unknown whether the keys and logs are private", "")
	}
	if len(exposed) == 0 {
		return fine(id, state.Path(), "keys and logs are private")
	}
	e := exposed[0]
	c := fine(id, e.Path, "%q has mode %04o, user %d", e.Path, e.Perm, e.UID)
	if n := len(exposed); n > 1 {
		c.Found += fmt.Sprintf(", and %d more", n-1)
	}
	remedy := "chmod 600 " + words.Shell(e.Path)
	if int(e.UID) != os.Geteuid() {
		remedy = fmt.Sprintf("find out which process created it; as root: chown %d %s", os.Geteuid(), words.Shell(e.Path))
	}
	if e.Odd {
		c.Found = fmt.Sprintf("%q is not a regular file", e.Path)
		return c.but(Warn, "no command takes it: what needs it ends with an error", "find out which process created it; then "+statecheck.PutAside(e.Path))
	}
	return c.but(Warn, "a key that others may read is rejected; a log that others may write proves nothing", remedy)
}

// parentsCheck looks at the directories above the state directory, whether that is there
// or not.
func parentsCheck(path string) Check {
	const id = "state-parents"
	const consequence = "every command that writes state fails: another directory would have no pins, savepoints or halts"
	loose, err := statedir.Parents(path)
	if err != nil {
		return fine(id, path, "%v", err).but(Fail, consequence, stateElsewhere)
	}
	if len(loose) == 0 {
		return fine(id, path, "no other user can move it")
	}
	return fine(id, loose[0].In, "%s", loose[0]).but(Fail, consequence, parentsRemedy(loose[0]))
}

// parentsRemedy is what to do about a directory in which others can rename the state
// directory, or what leads to it.
func parentsRemedy(l pathsafe.Loose) string {
	const elsewhere = "name a state directory in a place of your own with --state-dir DIR"
	switch isSticky := l.Perm&0o1000 != 0; {
	case !isSticky && int(l.Owner) == os.Geteuid():
		return "chmod go-w " + words.Shell(l.In) + "; or " + elsewhere
	case !isSticky && l.Owner == 0:
		return "as root: chmod go-w " + words.Shell(l.In) + "; or " + elsewhere
	}
	return elsewhere
}

// logCheck reads the audit log. The check "history" compares it with what savepoints and snapshots sign.
func logCheck(state *statedir.Dir) (Check, audit.Attempts) {
	const id = "audit-log"
	var said audit.Attempts
	path := filepath.Join(state.Path(), "audit.log")
	f, err := state.ReadAuditLog()
	if errors.Is(err, fs.ErrNotExist) {
		return fine(id, path, "there is none yet"), said
	}
	if err != nil {
		return fine(id, path, "%v", err).but(Fail, "actions that cannot be logged are not started: nothing can be restored", "check which users can write "+words.Shell(state.Path())), said
	}
	log := audit.New(f)
	defer log.Close()
	head, err := log.Read(func(e audit.Entry) error {
		said.See(&e)
		return nil
	})
	if err != nil {
		return fine(id, path, "%v", err).but(Fail, "earlier actions are no longer proven, and nothing can be logged after it", statecheck.LogRemedy), said
	}
	return fine(id, path, "entries: %d; each follows from the one before", head.Sequence), said
}

// layerChecks are the layers of runs that are left over.
func layerChecks(state *statedir.Dir) []Check {
	const id = "layers"
	left, err := state.LeftLayers()
	if err != nil {
		return []Check{fine(id, state.Path(), "%v", err).but(Warn, "whether a \"spectrum run\" was killed is not known", "")}
	}
	checks := make([]Check, 0, len(left))
	for _, layer := range left {
		remedy := "to remove it: " + words.RemoveLayer(layer.Path)
		if layer.Over != "" {
			remedy = "to seal it: " + words.SealLayer(layer.Path, layer.Over) + "; " + remedy
		}
		checks = append(checks, fine(id, layer.Path, "a \"spectrum run\" was killed, or not sealed: %q", layer.Path).but(Warn, "the changes of its command are in no candidate", remedy))
	}
	return checks
}

// haltChecks are the roots that wait for a person, by the marks of the state
// directory and by the log.
func haltChecks(state *statedir.Dir, log audit.Attempts) []Check {
	const id = "halts"
	halted, err := state.Halts()
	if err != nil {
		return []Check{fine(id, state.Path(), "%v", err).but(Warn, "it is unknown whether a restore root is halted", "")}
	}
	for _, attempt := range log.Halted {
		if !slices.Contains(halted, attempt) {
			halted = append(halted, attempt)
		}
	}
	checks := make([]Check, 0, len(halted))
	for _, attempt := range halted {
		root := log.Roots[attempt]
		if path, err := state.RootPath(audit.RootOf(root)); err == nil && root != "" {
			root = path
		}
		c := fine(id, root, "%q is halted: attempt %s could not be ended", root, attempt)
		where := words.Shell(root)
		if root == "" {
			c.Found, where = fmt.Sprintf("attempt %s could not be ended; the audit log has no entry of its root", attempt), "RESTORE_ROOT"
		}
		checks = append(checks, c.but(Warn, "every command on that root ends with exit status 3", fmt.Sprintf("\"spectrum recover %[1]s\" tries again; \"spectrum recover --acknowledge %[1]s\" shows what is in the way", where)))
	}
	bars, err := state.Bars()
	if err != nil {
		checks = append(checks, fine(id, state.Path(), "%v", err).but(Warn, "it is unknown whether a restore root is halted", statecheck.BarRemedy(err)))
	}
	for _, bar := range bars {
		checks = append(checks, barCheck(state, bar))
	}
	if len(checks) == 0 {
		return []Check{fine(id, state.Path(), "no restore root is known to be halted")}
	}
	return checks
}

// barCheck is a restore root in which a rollback could not be carried out.
func barCheck(state *statedir.Dir, bar statedir.BarMark) Check {
	root, err := state.RootPath(bar.Root)
	if err != nil || root == "" {
		root = cmp.Or(bar.Root, "RESTORE_ROOT")
	}
	c := fine("halts", root, "%q is halted: the %s rollback of %s could not be carried out: %s", root, bar.Kind, bar.Time.Format(time.RFC3339), bar.Reason)
	if bar.Err != nil {
		c.Found = fmt.Sprintf("%q is halted: a rollback could not be carried out: %v", root, bar.Err)
	}
	return c.but(Warn, "preview, commit and \"snapshot prune\" on that root exit with status 3; rollbacks and snapshot restores work", cmp.Or(statecheck.BarRemedy(bar.Err),
		fmt.Sprintf("\"spectrum rollback --emergency %[1]s\" or another rollback; or \"spectrum recover --acknowledge %[1]s\"", words.Shell(root))))
}

// oldest is a time before which there was no spectrum.
var oldest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// clockCheck requires the clock to be later than the records.
func clockCheck(now time.Time, log audit.Attempts) Check {
	c := fine("clock", "", "%s", now.UTC().Format(time.RFC3339))
	const consequence = "runs and log entries get a wrong time: chains are out of order (CHAIN_ORDER_VIOLATION), and \"snapshot prune --keep-within\" keeps the damaged ones"
	const remedy = "as root: timedatectl set-ntp true; or set it with date -s"
	const slack = time.Second // a correct clock is set back a little at times
	switch built := builtAt(); {
	case now.Before(built):
		c.Found += ", which is before this program was made, " + built.UTC().Format(time.RFC3339)
	case now.Add(slack).Before(log.Newest):
		c.Found += fmt.Sprintf(", which is before entry %d of the audit log, %s", log.Entry, log.Newest.UTC().Format(time.RFC3339))
	default:
		return c
	}
	return c.but(Warn, consequence, remedy)
}

// builtAt is the time of the commit that the program was built from, as far as it
// is known.
func builtAt() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if built, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return built
			}
		}
	}
	return oldest
}
