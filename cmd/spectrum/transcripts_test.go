package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/terminal"
)

// writeTranscripts has TestTranscripts write the page instead of comparing with it: make transcripts.
var writeTranscripts = flag.Bool("write-transcripts", false, "write docs/transcripts.md")

const transcriptsPage = repository + "/docs/transcripts.md"

// A shownSize is a candidate of a number of files, in a directory of its own.
type shownSize struct {
	files int
	title string
	seal  string
	flags string
	make  func(put func(path, content string))
}

var shownSizes = []shownSize{
	{3, "3 files: a change set", "spectrum seal -q --base ../site", "", func(put func(path, content string)) {
		put("work/report/summary.md", "# Week 12\nAll berths are open.\n")
		put("site/report/summary.md", "# Week 11\nBerth 3 is closed.\n")
		put("work/report/notes.md", "The crane is repaired.\n")
		put("site/report/draft.md", "to be written\n")
		put("site/index.md", "# Harbour\n")
		put("work/index.md", "# Harbour\n")
	}},
	{2003, "2,003 files: 2,000 are there already", "spectrum seal -q .", " --replace", func(put func(path, content string)) {
		for n := range 2000 {
			for _, dir := range []string{"work", "site"} {
				put(fmt.Sprintf("%s/data/%02d/station-%04d.csv", dir, n%20, n), fmt.Sprintf("station,%d\n", n))
			}
		}
		for _, name := range []string{"data/07/station-2001.csv", "report/summary.md", "report/notes.md"} {
			put("work/"+name, "new\n")
		}
	}},
	{20000, "20,000 files: 12 names are taken", "spectrum seal -q .", "", func(put func(path, content string)) {
		for n := range 20000 {
			path := fmt.Sprintf("data/%02d/%02d/station-%05d.csv", n%20, n/20%50, n)
			put("work/"+path, fmt.Sprintf("station,%d\n", n))
			if n%1700 == 0 {
				put("site/"+path, "mine\n")
			}
		}
	}},
}

// shownWidths are the widths of the terminals.
var shownWidths = []int{80, 60}

// TestTranscripts: docs/transcripts.md shows what preview and commit print on a terminal. The largest
// candidate, and the second one at the second width, are compared in the sweep only, and not with the
// race detector.
func TestTranscripts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the paths of the page need a mount namespace of root")
	}
	page, err := os.ReadFile(transcriptsPage)
	if err != nil && !*writeTranscripts {
		t.Fatal(err)
	}
	var all strings.Builder
	all.WriteString(transcriptsHead)
	for _, size := range shownSizes {
		fmt.Fprintf(&all, "\n## %s\n", size.title)
		for _, columns := range shownWidths {
			if (size.files > 10000 || size.files > 1000 && columns < 80) && !*writeTranscripts && (tier.Now() < tier.Sweep || raceDetector) {
				continue
			}
			t.Run(fmt.Sprintf("%d files, %d columns", size.files, columns), func(t *testing.T) {
				shown := fmt.Sprintf("\n### %d columns\n\n```console\n%s```\n", columns, size.transcript(t, columns))
				all.WriteString(shown)
				if !*writeTranscripts && !strings.Contains(string(page), shown) {
					t.Errorf("docs/transcripts.md does not show this: run make transcripts\n%s", shown)
				}
			})
		}
	}
	if *writeTranscripts && !t.Failed() {
		if err := os.WriteFile(transcriptsPage, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// transcriptsHead is the beginning of the page.
const transcriptsHead = `# Transcripts

What ` + "`preview` and `commit`" + ` print on a terminal, for three candidates at two widths; ` + "`make transcripts`" + ` writes this page, and a test holds the program to it. IDs are replaced by others that follow from their order, and times and free space by fixed ones.
`

// transcript plays a preview and a commit on a terminal, and returns the commands with what is on the
// screen afterwards.
func (s *shownSize) transcript(t *testing.T, columns int) string {
	t.Helper()
	trees := filepath.Join(t.TempDir(), "trees.tar")
	f, err := os.Create(trees)
	check(t, err)
	archive := tar.NewWriter(f)
	s.make(func(path, content string) {
		check(t, archive.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(1, 0)}))
		_, err := archive.Write([]byte(content))
		check(t, err)
	})
	check(t, errors.Join(archive.Close(), f.Close()))
	seat := terminal.Sit(t, columns, 400)
	seat.Resize(t, columns) // 24 lines for the program; the screen keeps what scrolls away
	previewLine, commitLine := "spectrum preview --restore-root /mnt/site"+s.flags+" latest", "spectrum commit --restore-root /mnt/site"+s.flags+" latest"
	script := `mount -t tmpfs -o size=1g,mode=755 tmpfs /mnt
tar -x -C /mnt --no-same-owner -f "$1"
cd /mnt/work
` + s.seal + ` >/dev/null 2>&1
echo '$ ` + previewLine + `'
` + previewLine + `
echo '$ ` + commitLine + `'
exec ` + commitLine
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script, "sh", trees)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME=/mnt/state", "NO_COLOR=1", "SPECTRUM_PAGER=cat", "TERM=xterm", "LC_ALL=C", "LOGNAME=ada", "USER=ada")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = seat.Program, seat.Program, seat.Program
	check(t, cmd.Start())
	seat.Await(t, "statement:")
	recommended := regexp.MustCompile(`preview recommends: (.*)\r\n`).FindStringSubmatch(seat.Raw())
	if recommended == nil {
		t.Fatalf("no statement is recommended:\n%s", seat.Raw())
	}
	seat.Type(t, recommended[1]+"\r")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v:\n%s", err, seat.Text())
	}
	var same sameNames
	screen := vt.NewEmulator(columns, 400)
	_, err = screen.WriteString(same.of(seat.Hang(t))) // before it is broken into lines
	check(t, err)
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(screen.String(), " \n"), "\n") {
		lines = append(lines, strings.TrimRight(line, " \r"))
	}
	return strings.Join(lines, "\n") + "\n"
}

// sameNames replaces what differs each time by what is always the same, and as long.
type sameNames struct{ ids []string } // each as long as it was seen

var (
	shownID   = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{8,64}\b`)
	shownRun  = regexp.MustCompile(`\b\d{8}T\d{6}\.\d{3}Z`)
	shownFree = regexp.MustCompile(`\d+(\.\d)? [KMGT]iB free`)
	shownTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d(\s+)\d\d:\d\d((:\d\d)?\s+UTC)`)
)

func (s *sameNames) of(text string) string {
	text = shownRun.ReplaceAllString(text, "20260101T000000.000Z")
	text = shownTime.ReplaceAllString(text, "2026-01-01${1}00:00${2}")
	text = regexp.MustCompile(`00:00:\d\d`).ReplaceAllString(text, "00:00:00")
	text = shownFree.ReplaceAllString(text, "1.0 GiB free")
	return shownID.ReplaceAllStringFunc(text, s.id)
}

// id returns the ID that replaces another one, or the beginning of it.
func (s *sameNames) id(real string) string {
	n := slices.IndexFunc(s.ids, func(known string) bool { return strings.HasPrefix(known, real) || strings.HasPrefix(real, known) })
	if n < 0 {
		n, s.ids = len(s.ids), append(s.ids, real)
	} else if len(real) > len(s.ids[n]) {
		s.ids[n] = real
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "id %d", n))
	digits := []byte(hex.EncodeToString(sum[:])[:len(real)])
	for at, c := range []byte(real) {
		if c == '-' {
			digits[at] = '-'
		}
	}
	return string(digits)
}
