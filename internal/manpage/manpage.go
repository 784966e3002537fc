package manpage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// About is the text about the program on every page.
type About struct {
	Section int       // of the manual: 1 for commands of users, 8 for those of root
	Date    time.Time // that the pages are of
	Version string    // name and version of the program
	Manual  string    // title of the manual
}

// A Part is a part of a page that is in no help text.
type Part struct {
	Title string
	Rows  []Row
	Every bool // it is in the pages of the commands below, too

	Own map[string][]Row // by the path of a command: the rows of its page, instead of Rows
}

// A Row is a term of a part and its explanation.
type Row struct{ Term, Text string }

// A Page is one manual page.
type Page struct {
	Name string // of the file: spectrum-verify.1
	Text string
}

// Made is the first line of every page.
const Made = `.\" Made by the program from its help texts; do not edit.`

// Pages returns the pages of a command and of all commands below it except help, hidden and
// deprecated ones. The parts are in the page of the command itself, and in all pages if they are
// marked so.
func Pages(cmd *cobra.Command, about About, parts ...Part) []Page {
	cmd.InitDefaultHelpFlag()
	pages := []Page{{
		Name: fmt.Sprintf("%s.%d", nameOf(cmd), about.Section),
		Text: textOf(cmd, about, parts),
	}}
	every := slices.DeleteFunc(slices.Clone(parts), func(part Part) bool { return !part.Every })
	for _, sub := range shownOf(cmd) {
		pages = append(pages, Pages(sub, about, every...)...)
	}
	return pages
}

func nameOf(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// shownOf are the commands below one that have a page.
func shownOf(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() || sub.Name() == "help"
	})
}

func textOf(cmd *cobra.Command, about About, parts []Part) string {
	var p page
	name := nameOf(cmd)
	p.line(Made)
	p.line(fmt.Sprintf(".TH %s %d %s %s %s", quoted(strings.ToUpper(name)), about.Section,
		about.Date.UTC().Format(time.DateOnly), quoted(about.Version), quoted(about.Manual)))
	p.heading("NAME")
	p.line(escape(name) + ` \- ` + escape(cmd.Short))
	p.heading("SYNOPSIS")
	p.line(synopsisOf(cmd))
	p.heading("DESCRIPTION")
	p.prose(descriptionOf(cmd))
	p.commands(cmd, about.Section)
	p.options("OPTIONS", cmd.NonInheritedFlags())
	p.options("COMMON OPTIONS", cmd.InheritedFlags())
	for _, part := range parts {
		if own, is := part.Own[cmd.CommandPath()]; is {
			part.Rows = own
		}
		p.part(part)
	}
	if cmd.Example != "" {
		p.heading("EXAMPLES")
		p.prose(cmd.Example)
	}
	p.seeAlso(cmd, about.Section)
	return p.String()
}

// synopsisOf is how a command is called.
func synopsisOf(cmd *cobra.Command) string {
	path := cmd.CommandPath()
	rest := strings.TrimPrefix(strings.TrimSuffix(cmd.UseLine(), " [flags]"), path)
	if cmd.HasAvailableSubCommands() {
		rest = " [COMMAND]" + rest
	}
	return `\fB` + escape(path) + `\fP` + markUp(rest)
}

// descriptionOf is the long help text, or the short one as a sentence.
func descriptionOf(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return strings.ToUpper(cmd.Short[:1]) + cmd.Short[1:] + "."
}

func (p *page) commands(cmd *cobra.Command, section int) {
	subs := shownOf(cmd)
	if len(subs) == 0 {
		return
	}
	p.heading("COMMANDS")
	for _, sub := range subs {
		p.row(reference(nameOf(sub), section), sub.Short)
	}
}

func (p *page) options(title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	p.heading(title)
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Deprecated == "" {
			p.option(f)
		}
	})
}

// option writes a flag, with the name of its value in the help.
func (p *page) option(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	term := `\fB` + escape("--"+f.Name) + `\fP`
	if f.Shorthand != "" {
		term = `\fB` + escape("-"+f.Shorthand) + `\fP, ` + term
	}
	if value != "" {
		term += ` \fI` + escape(value) + `\fP`
	}
	if !slices.Contains(noDefaults, f.DefValue) && f.NoOptDefVal == "" {
		usage += " (default " + f.DefValue + ")"
	}
	p.row(term, usage)
}

// noDefaults are the defaults of flags that have none.
var noDefaults = []string{"", "0", "0s", "[]", "-1", "false"}

func (p *page) part(part Part) {
	p.heading(part.Title)
	for _, row := range part.Rows {
		p.row(`\fB`+escape(row.Term)+`\fP`, row.Text)
	}
}

// seeAlso names the parent command and its other subcommands.
func (p *page) seeAlso(cmd *cobra.Command, section int) {
	above := cmd.Parent()
	if above == nil {
		return
	}
	others := []string{reference(nameOf(above), section)}
	for _, beside := range shownOf(above) {
		if beside != cmd {
			others = append(others, reference(nameOf(beside), section))
		}
	}
	p.heading("SEE ALSO")
	p.line(strings.Join(others, ",\n"))
}

func reference(name string, section int) string {
	return fmt.Sprintf(`\fB%s\fP(%d)`, escape(name), section)
}
