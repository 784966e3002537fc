package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// story is the script whose commands are drawn.
const story = "examples/agent-review/story.sh"

// A shot is a command and what it printed.
type shot struct {
	command string
	lines   []string
}

// A scene is a command of the story that is drawn. Of its output only the lines from the first
// one that begins with from are shown, and of these the ones that begin with a word of keep; all
// lines where both are empty.
type scene struct {
	command string // the beginning of it
	from    string
	keep    []string
}

// scenes are what is drawn.
var scenes = []scene{
	{command: "spectrum run", keep: []string{"agent one", "a change set"}},
	{command: "git status"},
	{command: "spectrum diff", from: "diff --git a/total.sh", keep: []string{"@@", " ", "-", "+"}},
	{command: "id=$(spectrum preview", keep: []string{"READY", "  files", "  signed by", "  remove", "  replace", "  create"}},
	{command: "spectrum commit", keep: []string{"restored", `"spectrum rollback`, "OK"}},
	{command: "./test.sh"},
	{command: "two=$(", keep: []string{"a change set"}},
	{command: "spectrum preview", keep: []string{"IN PART", "  diverged", "  replace"}},
	{command: "spectrum rollback", keep: []string{"to undo", "OK"}},
	{command: "git diff"},
}

// play runs the story with a program, and returns what is drawn of it.
func play(ctx context.Context, program, repository, dir string) ([]shot, error) {
	cmd := exec.CommandContext(ctx, "bash", filepath.Join(repository, story), program)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if os.Geteuid() == 0 { // a rollback by root looks at all views that it can see: let there be no other
		cmd.Args = []string{"bash", "-c", `findmnt -rno TARGET -t fuse.spectrum | xargs -r umount -l; exec bash "$@"`, "bash", cmd.Args[1], program}
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	var printed, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", story, err, &printed, &complaints)
	}
	return shotsOf(&printed, scenes)
}

// shotsOf reads what the story has printed. Each scene must be in it, in their order.
func shotsOf(printed *bytes.Buffer, scenes []scene) (shots []shot, err error) {
	var names names
	var played []shot
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		line := lines.Text()
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			played = append(played, shot{command: command})
		} else if len(played) > 0 {
			last := &played[len(played)-1]
			last.lines = append(last.lines, line)
		}
	}
	for _, s := range scenes {
		n := slices.IndexFunc(played, func(p shot) bool { return strings.HasPrefix(p.command, s.command) })
		if n < 0 {
			return nil, errors.New("the story has no command after the ones before that begins with " + s.command)
		}
		cut := shot{command: played[n].command, lines: s.cut(played[n].lines)}
		for i := range cut.lines {
			cut.lines[i] = names.of(cut.lines[i])
		}
		shots, played = append(shots, cut), played[n+1:]
	}
	return shots, nil
}

// cut keeps the lines of a scene, and puts "…" where others were.
func (s *scene) cut(lines []string) []string {
	for end := range max(0, len(lines)-1) {
		if next := lines[end+1]; lines[end] == "" && (strings.HasPrefix(next, "# ") || strings.HasPrefix(next, "story: ")) {
			lines = lines[:end] // that is not an output of the command
			break
		}
	}
	shows := s.from == ""
	var kept []string
	for _, line := range lines {
		begins := func(word string) bool { return strings.HasPrefix(line, word) }
		shows = shows || begins(s.from)
		switch {
		case shows && (len(s.keep) == 0 || slices.ContainsFunc(s.keep, begins)):
			kept = append(kept, line)
		case len(kept) == 0 || kept[len(kept)-1] != "…":
			kept = append(kept, "…")
		}
	}
	return kept
}
