package manpage

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var about = About{
	Section: 1,
	Date:    time.Date(2026, 3, 1, 23, 59, 0, 0, time.FixedZone("elsewhere", -3600)),
	Version: "lamp 1.0",
	Manual:  "lamp manual",
}

// lamp is a program with everything that a page can have.
func lamp() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	lamp := &cobra.Command{Use: "lamp", Short: "light and dark", Run: run}
	lamp.PersistentFlags().Bool("json", false, "print JSON")
	on := &cobra.Command{Use: "on [--dim N] LAMP...", Short: "light a lamp", Run: run, Long: `on lights a lamp.
.TH is no request, 'nor is this; a\b is no escape.

    lamp on --dim 3 'the hall'
	.hidden

It stays on.`}
	on.Example = "  lamp on --dim 3\n  lamp on 'the hall'"
	on.Flags().IntP("dim", "d", 5, "how `bright`")
	on.Flags().Bool("secret", false, "not shown")
	_ = on.Flags().MarkHidden("secret")
	lamp.AddCommand(on, &cobra.Command{Use: "off", Short: "darken it", Run: run}, &cobra.Command{Use: "burn", Hidden: true, Run: run})
	return lamp
}

const pageOfOn = Made + `
.TH "LAMP\-ON" 1 2026-03-02 "lamp 1.0" "lamp manual"
.SH "NAME"
lamp\-on \- light a lamp
.SH "SYNOPSIS"
\fBlamp on\fP [\fB\-\-dim\fP \fIN\fP] \fILAMP\fP\&...
.SH "DESCRIPTION"
on lights a lamp.
\&.TH is no request, \(aqnor is this; a\eb is no escape.
.PP
.nf
.RS 4
lamp on \-\-dim 3 \(aqthe hall\(aq
    .hidden
.RE
.fi
.PP
It stays on.
.SH "OPTIONS"
.TP
\fB\-d\fP, \fB\-\-dim\fP \fIbright\fP
how bright (default 5)
.TP
\fB\-h\fP, \fB\-\-help\fP
help for on
.SH "COMMON OPTIONS"
.TP
\fB\-\-json\fP
print JSON
.SH "EXIT STATUS"
.TP
\fB0\fP
light
.SH "EXAMPLES"
.nf
.RS 4
lamp on \-\-dim 3
lamp on \(aqthe hall\(aq
.RE
.fi
.SH "SEE ALSO"
\fBlamp\fP(1),
\fBlamp\-off\fP(1)
`

func TestPages(t *testing.T) {
	pages := Pages(lamp(), about, Part{Title: "FILES", Rows: []Row{{"~/.lamp", "where it is"}}}, Part{Title: "EXIT STATUS", Rows: []Row{{"0", "light"}}, Every: true, Own: map[string][]Row{"lamp off": {{"1", "no bulb"}}}})
	var names []string
	for _, page := range pages {
		names = append(names, page.Name)
	}
	if diff := cmp.Diff([]string{"lamp.1", "lamp-off.1", "lamp-on.1"}, names); diff != "" {
		t.Errorf("pages: %s", diff)
	}
	if diff := cmp.Diff(pageOfOn, pages[2].Text); diff != "" {
		t.Errorf("lamp-on.1: %s", diff)
	}
	for _, part := range []string{"\\fBlamp\\fP [\\fICOMMAND\\fP]\n", "\\fBlamp\\-off\\fP(1)\ndarken it\n", ".SH \"FILES\"\n.TP\n\\fB\\(ti/.lamp\\fP\nwhere it is\n"} {
		if !strings.Contains(pages[0].Text, part) {
			t.Errorf("lamp.1 has no %q:\n%s", part, pages[0].Text)
		}
	}
	if !strings.Contains(pages[1].Text, "\nDarken it.\n") || strings.Contains(pages[1].Text, "FILES") || !strings.Contains(pages[1].Text, "no bulb") || strings.Contains(pages[1].Text, "light\n") {
		t.Errorf("lamp-off.1:\n%s", pages[1].Text)
	}
}

// TestPlainText: a reader sees exactly the text of the help.
func TestPlainText(t *testing.T) {
	var printable strings.Builder
	for c := ' '; c <= '~'; c++ {
		printable.WriteRune(c)
	}
	hostile := []string{
		printable.String(), "..", ". x", "'x", `\`, `\fBx\fP`, `\n(.g`, `\"`, `.\" x`, `a "quoted" word`, "-", "--flag=x", `.so /etc/passwd`, `\*x`, "x\\", "%% $1 \\$1",
	}
	for _, text := range hostile {
		cmd := &cobra.Command{Use: "x", Short: text, Long: text + "\n" + text + "\n\n    " + text, Run: func(*cobra.Command, []string) {}}
		cmd.Flags().String("flag", "", text)
		got := rendered(t, Pages(cmd, about, Part{Title: text, Rows: []Row{{text, text}}})[0])
		if n := strings.Count(got, squeezed(text)); n < 8 {
			t.Errorf("%q is there %d times:\n%s", text, n, got)
		}
	}
}

// rendered is what a reader sees of a page, with one space for all white space.
func rendered(t *testing.T, page Page) string {
	t.Helper()
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	file := filepath.Join(t.TempDir(), page.Name)
	if err := os.WriteFile(file, []byte(page.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), mandoc, "-T", "ascii", "-O", "width=500", "-W", "warning", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	return squeezed(string(out))
}

// struck is how a bold or an underlined letter is sent to a terminal.
var struck = regexp.MustCompile(".\b")

func squeezed(text string) string {
	return strings.Join(strings.Fields(struck.ReplaceAllString(text, "")), " ")
}
