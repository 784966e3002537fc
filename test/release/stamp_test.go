package release

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStamp: the version of a commit, by its tags, and of what is other than in it.
func TestStamp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "project")
	stamp := filepath.Join(dir, "scripts", "stamp.sh")
	env := append(empty(t), "GIT_AUTHOR_DATE=2026-02-03T23:30:00-0400", "GIT_COMMITTER_DATE=2026-02-03T23:30:00-0400")
	does := func(command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-c", command, stamp, dir)
		cmd.Env = env
		out, err := run(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	const commit = `git -C "$1" -c user.name=Ada -c user.email=ada@example.org commit -q --allow-empty -m x`
	does(`mkdir -p "$1/scripts" && cp ` + repository + `/scripts/stamp.sh "$0" && git init -q "$1" && git -C "$1" add . && ` + commit)
	head := func() string { return "g" + does(`git -C "$1" rev-parse --short=12 HEAD`) }
	for _, step := range []struct{ command, want string }{
		{"true", "0.0.0+20260204." + head()}, // the day in UTC
		{`git -C "$1" tag v1.2.0-rc.1`, "1.2.0-rc.1"},
		{`git -C "$1" tag other`, "1.2.0-rc.1"},
		{commit, "1.2.0-rc.1+1.HEAD"},
		{`git -C "$1" tag v1.2.0`, "1.2.0"},
		{`touch "$1/new"`, "1.2.0.dirty"},
	} {
		does(step.command)
		want := strings.ReplaceAll(step.want, "HEAD", head())
		if got := does(`"$0" version`); got != want {
			t.Errorf("after %s: %q, not %q", step.command, got, want)
		}
	}
	if got := does(`"$0" epoch`); got != "1770175800" {
		t.Errorf("the time is %s", got)
	}
	if got := does(`VERSION=7 "$0" version`) + " " + does(`SOURCE_DATE_EPOCH=8 "$0" epoch`); got != "7 8" {
		t.Errorf("it is told 7 and 8, and says %s", got)
	}
}
