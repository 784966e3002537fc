package staging

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Every sync, move and removal of a journal record, in order; and those of the
// rollback when the last artifact cannot be placed, where a rename moves
// something aside. What differs only in its number is shown once.
func TestEverySync(t *testing.T) {
	for _, c := range commitCases {
		for _, fails := range []bool{false, true} {
			name := c.name
			if fails {
				name += " rollback"
			}
			if got := syncTrace(t, c.make(t, t.TempDir()), fails); got != everySync[name] {
				t.Errorf("%s:\n%s", name, got)
			}
		}
	}
}

func syncTrace(t *testing.T, sc *commitFixture, fails bool) string {
	t.Helper()
	placed := 0
	var got []string
	err := sc.run(func(op, path string, f func() error) error {
		line := op + " " + path
		if strings.HasPrefix(op, "sync") || op == "rename" && !strings.HasPrefix(path, LockName) || op == "unlink" && ofJournal(path) {
			line = numbers.ReplaceAllString(uuids.ReplaceAllString(strings.ReplaceAll(line, sc.root, "ROOT"), "UUID"), "N")
			line = strings.ReplaceAll(line, "ROOT/"+stagePrefix+"UUID", "STAGE")
			if len(got) == 0 || got[len(got)-1] != line {
				got = append(got, line)
			}
		}
		if place.MatchString(op + " " + path) {
			placed++
		}
		if fails && placed == len(sc.spec.artifacts) {
			placed, got = -1, nil
			return unix.EIO
		}
		return f()
	})
	if (err != nil) != fails {
		t.Error(err)
	}
	return strings.Join(got, "\n")
}

// TestSyncOfMoves: new files go into directories that are there, and between them, in
// path order, into the root. However many directories there are, those in staging
// that files have left are synced, and before those that they have entered.
func TestSyncOfMoves(t *testing.T) {
	base := scratch(t)
	for n := range few + 3 {
		var things, files, dirs []string
		for i := range n {
			dir := fmt.Sprintf("p%02d", i)
			dirs, things = append(dirs, dir), append(things, dir+"/keep")
			files = append(files, dir+"/f", dir+"-top")
		}
		sc := newCommitFixture(t, fmt.Sprintf("%s/root%d", base, n), append(things, foreignThings...), append(files, "a"), nil)
		want := []string{"sync file system ROOT", "sync ROOT"}
		if n+1 <= few { // with the root
			want = nil
			for where := range 2 { // in staging, then in the root
				for _, dir := range dirs {
					want = append(want, "sync "+dir)
				}
				want = append(want, "sync "+[]string{"STAGE/new", "ROOT"}[where])
			}
		}
		if got := sc.syncsOfMoves(len(files) + 1); !slices.Equal(got, want) {
			t.Errorf("%d directories: %q, want %q", n, got, want)
		}
	}
}

// syncsOfMoves runs the spec and returns the syncs that come after so many moves, and
// before anything of the next step.
func (s *commitFixture) syncsOfMoves(moves int) (got []string) {
	s.t.Helper()
	must(s.t, s.run(func(op, path string, f func() error) error {
		switch {
		case op == "rename" && !ofJournal(path) && !strings.HasPrefix(path, LockName):
			moves--
		case moves == 0 && strings.HasPrefix(op, "sync"):
			line := strings.ReplaceAll(op+" "+path, s.root, "ROOT")
			got = append(got, strings.ReplaceAll(uuids.ReplaceAllString(line, "UUID"), "ROOT/"+stagePrefix+"UUID", "STAGE"))
		case op == "open":
			moves = -1
		}
		return f()
	}))
	return got
}

var (
	uuids   = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
	numbers = regexp.MustCompile(`\b(r?\d\d|\d+)\b`)
)

var everySync = map[string]string{
	"replace": `sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync STAGE
sync ROOT
sync keep
sync new
sync f1
sync fresh0
sync other
sync file
sync STAGE/old
sync STAGE/.spectrum06_artifacts
sync fresh/deep
sync existing
sync fresh
sync inlink
sync theirs
sync STAGE/new
sync STAGE
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync STAGE
rename RESTORE_REPORT.json
sync STAGE/new
sync ROOT
sync STAGE/old
rename new
rename fresh
sync existing
sync STAGE/new
sync existing
sync ROOT
rename keep
rename fresh0
rename other
rename file
rename goes
sync existing
sync inlink
sync theirs
sync STAGE/new
sync existing
sync inlink
sync theirs
sync ROOT
sync STAGE/old
sync N
sync STAGE/.spectrum06_artifacts
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync STAGE
rename N
sync STAGE/.spectrum06_artifacts
sync ROOT
unlink .spectrum06_prepared
sync STAGE
unlink .spectrum06_intent
sync STAGE
unlink .spectrum06_committed
sync ROOT`,
	"replace rollback": `rename .spectrum06_committed
sync STAGE
rename RESTORE_MANIFEST.json
rename N
rename fresh
rename new
rename N
sync STAGE/old
sync existing
sync inlink
sync theirs
sync ROOT
sync STAGE/new
sync existing
sync inlink
sync theirs
sync ROOT
sync existing
sync theirs
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
sync STAGE
unlink .spectrum06_intent
sync ROOT`,
	"single": `sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync STAGE
sync ROOT
sync a.txt
sync x
sync new
sync f1
sync f2
sync g
sync via
sync zero
sync STAGE/old
sync STAGE/.spectrum06_artifacts
sync existing/empty
sync fresh/deep
sync existing
sync fresh
sync inlink
sync STAGE/new
sync STAGE
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync STAGE
rename a.txt
rename x
rename new
rename fresh
rename via
rename zero
sync existing/empty
sync existing
sync inlink
sync STAGE/new
sync existing/empty
sync existing
sync inlink
sync ROOT
sync N
sync STAGE/.spectrum06_artifacts
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync STAGE
rename N
sync STAGE/.spectrum06_artifacts
sync ROOT
unlink .spectrum06_prepared
sync STAGE
unlink .spectrum06_intent
sync STAGE
unlink .spectrum06_committed
sync ROOT`,
	"single rollback": `rename .spectrum06_committed
sync STAGE
rename RESTORE_MANIFEST.json
rename zero
rename via
rename fresh
rename new
rename x
rename a.txt
sync existing/empty
sync existing
sync inlink
sync ROOT
sync existing/empty
sync existing
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
sync STAGE
unlink .spectrum06_intent
sync ROOT`,
	"chain": `sync .spectrum06_manifest
sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync STAGE
sync ROOT
rename .spectrum06_manifest
sync STAGE
sync ROOT
sync c
sync a
sync b
sync a
sync STAGE/old
sync STAGE/.spectrum06_artifacts
sync run1/out
sync run1
sync run2
sync STAGE/new
sync STAGE
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync STAGE
rename run1
rename run2
sync STAGE/new
sync ROOT
sync N
sync STAGE/.spectrum06_artifacts
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync STAGE
rename N
sync STAGE/.spectrum06_artifacts
sync run1
sync run2
sync ROOT
rename .spectrum06_chain_UUID.json
sync ROOT
unlink .spectrum06_prepared
sync STAGE
unlink .spectrum06_intent
sync STAGE
unlink .spectrum06_committed
sync ROOT`,
	"chain rollback": `rename .spectrum06_committed
sync STAGE
rename RESTORE_MANIFEST.json
rename RESTORE_REPORT.json
rename RESTORE_MANIFEST.json
rename run2
rename run1
rename .spectrum06_chain_UUID.json
sync ROOT
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
sync STAGE
unlink .spectrum06_intent
sync ROOT`,
	"many": `sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync STAGE
sync ROOT
sync file system ROOT
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync STAGE
rename N
sync STAGE/new
sync ROOT
sync file system ROOT
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync STAGE
rename N
sync STAGE/.spectrum06_artifacts
sync file system ROOT
sync ROOT
unlink .spectrum06_prepared
sync STAGE
unlink .spectrum06_intent
sync STAGE
unlink .spectrum06_committed
sync ROOT`,
	"many rollback": `rename .spectrum06_committed
sync STAGE
rename REPORT.json
rename N
sync file system ROOT
sync ROOT
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
sync STAGE
unlink .spectrum06_intent
sync ROOT`,
}
