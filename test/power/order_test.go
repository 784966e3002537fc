package power

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// redundant are the syncs that not every trace needs, and why they are there.
var redundant = map[string]string{
	"fsync S/savepoints/* after make of S/savepoints/*":                                     beforeNext,
	"fsync S/savepoints/*/prepared after make of S/savepoints/*/prepared":                   beforeNext,
	"fsync S/savepoints/*/prepared after move to S/savepoints/*/prepared/.dropped-000001-*": "what is half removed must not have the name of a savepoint",
	"fsync S/savepoints/* after make of S/savepoints/*/prepared":                            "the one after the directory beside it does it once more",
	"fsync S/savepoints/* after make of S/savepoints/*/chain":                               "where there are many files, the syncfs of a root on the same file system does it once more",
	"fsync R after move to R/run-002/RESTORE_REPORT.json":                                   upToRoot,
	"fsync R after move to R/run-003/RESTORE_REPORT.json":                                   upToRoot,
	"fsync R/.spectrum06_staging_* after nothing":                                           maybeSafe,
	"fsync R after move to R/.spectrum06_chain_*.json":                                      beforeSyncfs,
	"fsync S after nothing":                                                                 maybeNamed,
	"fsync S after link to S/previews/*.used":                                               maybeMade,
	"fsync S after write of S/attempts/*":                                                   maybeMade,
	"fsync S after remove of R/.spectrum06_staging_*":                                       maybeMade,
	"fsync S after remove of S/savepoints/*/prepared/.dropped-000001-*":                     maybeMade,
	"fsync S after write of R":                                                              maybeMade,
	"fsync R/out/deep after remove of R/.spectrum06_staging_*/old/4":                        beforeTimes,
	"fsync R/out after remove of R/.spectrum06_staging_*/old/4":                             beforeTimes,
	"fsync S/audit.log after write of S/attempts/*":                                         signedHead,
	"fsync S/audit.log after remove of S/snapshots/incoming/*":                              signedHead,
}

const maybeMade = "the directory may have been made by a process that was killed before it made its name durable"

const signedHead = "a snapshot, and then a savepoint, signs where the audit log stands, and an entry that it signs must not be lost, if another process wrote it and has yet to sync it; a root has no trace of that"

const beforeTimes = "a directory is synced again when an undo has given it its time back, which it does not do where another process has worked"

const beforeNext = "a directory is made durable when it is made, and again with the first name in it"

const maybeNamed = "an empty audit log may have been made by a process that had no time to sync its name"

const maybeSafe = "a recovery that finds everything placed cannot know that COMMITTED was durable by then"

const beforeSyncfs = "where there are many files, the syncfs that follows does it once more"

const upToRoot = "in a chain no artifact is directly in the root, which is synced with their directories all the same"

// TestSyncOrder holds the trace of a commit against the rules, and then takes
// each sync out of it: every one must be missed.
func TestSyncOrder(t *testing.T) {
	for _, c := range commits {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.project(t)
			site := p.Site(t, filepath.Join(t.TempDir(), "root"))
			d := discipline{root: site.Root, state: p.State}
			points := keeps(t, d, site, harness.After, harness.CommitArgs(site.Preview(t)))
			if has := slices.ContainsFunc(points, func(p syncPoint) bool { return strings.HasPrefix(p.name, "syncfs ") }); has != c.syncfs {
				t.Errorf("syncfs was called: %v", has)
			}
			if len(points) < 10 {
				t.Errorf("only %d syncs were tried", len(points))
			}
		})
	}
}

// TestSyncOrderOfRecovery does it to recoveries. A commit was killed before it
// could sync what it had done; the recovery cannot know, and must not build on
// it.
func TestSyncOrderOfRecovery(t *testing.T) {
	for _, c := range []struct {
		name   string
		last   string // what got its name last
		unsafe []string
		state  harness.State
	}{
		{"back", "top0", []string{"top0", "new", "out/f0-01", "out/deep/f0-03", "out/new"}, harness.Before},
		{"forward", committedName, []string{stagePrefix + "*/" + committedName}, harness.After},
		{"forward with artifacts", reportName, []string{manifestName, reportName}, harness.After},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := single.project(t)
			site := p.Site(t, filepath.Join(t.TempDir(), "root"))
			if r := site.Commit(t, beforeSync(c.last, sysfault.Plan{Kill: true})); !r.Killed() {
				t.Fatal(r)
			}
			d := discipline{root: site.Root, state: p.State, entered: records[:2], names: map[string]change{}}
			for _, name := range c.unsafe {
				d.names[theOnly(t, filepath.Join(site.Root, name))] = change{line: -1}
			}
			d.stage = filepath.Dir(theOnly(t, filepath.Join(site.Root, stagePrefix+"*", preparedName)))
			if c.state == harness.After {
				d.entered = records
			}
			keeps(t, d, site, c.state, []string{"recover", site.Root})
		})
	}
}

// theOnly is the path that a pattern means.
func theOnly(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	harness.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("%q: %q", pattern, found)
	}
	return found[0]
}

// keeps traces a command, compares it with the rules, and takes its syncs out
// one by one.
func keeps(t *testing.T, d discipline, site *harness.Site, state harness.State, args []string) []syncPoint {
	t.Helper()
	all := d.withoutLock(effects(t, strace(t, site.Project.Argv(args...)...)))
	if _, err := site.Check(state); err != nil {
		t.Fatal(err)
	}
	faults := d.check(all)
	for _, fault := range faults {
		t.Error(fault)
	}
	withoutRecords(t, d, all, len(faults))
	points := d.syncPoints(all)
	missed, spare := 0, 0
	for _, p := range points {
		without := d.check(p.without(all))
		switch reason := redundant[p.name]; {
		case len(without) > len(faults):
			missed++
			t.Logf("missed: %s", p.name)
		case reason != "":
			spare++
			t.Logf("redundant: %s: %s", p.name, reason)
		default:
			t.Errorf("without %q no rule is broken", p.name)
		}
	}
	t.Logf("%d calls, %d syncs: %d are missed when taken out, %d are redundant", len(all), len(points), missed, spare)
	return points
}

// withoutRecords takes the making of each record out of a trace in which so many
// faults are known.
func withoutRecords(t *testing.T, d discipline, all []effect, known int) {
	t.Helper()
	for i, e := range all {
		if e.kind != moving || !slices.Contains(records, filepath.Base(e.to)) {
			continue
		}
		if without := d.check(slices.Delete(slices.Clone(all), i, i+1)); len(without) <= known {
			t.Errorf("without the record %q no rule is broken", filepath.Base(e.to))
		}
	}
}
