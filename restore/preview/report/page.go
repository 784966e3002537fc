package report

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the page's template and style
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

//go:embed page/copy.js
var pageJS string

// pageTemplate is the page with its style and its script in it. The policy allows these by their
// hashes and nothing else: no other script, no image, no address.
var pageTemplate = sync.OnceValue(func() *template.Template {
	policy := "default-src 'none'; style-src " + hashSource(pageCSS) + "; script-src " + hashSource(pageJS) + "; base-uri 'none'; form-action 'none'"
	whole := strings.Replace(pageHTML, "POLICY", policy, 1)
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"style": func() template.CSS { return template.CSS(pageCSS) },
		// The script only copies the command.
		"script": func() template.JS { return template.JS(pageJS) },
		"words":  words,
		"name":   name,
	}).Parse(whole))
})

// hashSource allows a text in a policy.
func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Limits of the page in bytes of one kind; the JSON has all.
const (
	treeBytes     = 3 << 20 // of the trees together
	registerBytes = 1 << 20
	diffBytes     = 3 << 17
)

// WritePage writes the preview as one HTML page that works without a network or a script: the rows of a
// summary in the same order, then the conflict register with the differences of text files, and the other
// sections of protocol section 8. Approve is the command line of the recommended approval, "" for none; a
// button copies it if scripts run. Every name and every text from a bundle or from the disk is escaped,
// invisible characters too. The page has the number of entries that it leaves out; the JSON has all entries.
// The same preview returns the same bytes, except for the free bytes, which are as in [Screen].
//
// It reads the files that differ, so the restore must still be open. It writes nothing and returns an error
// if a source differs from the signed one, if the restore root changed ([ErrUnsettled]), or if ctx ends.
// Contents of restricted context are never shown.
func (p *Report) WritePage(ctx context.Context, w io.Writer, approve string, free uint64) error {
	page, err := p.page(ctx, free)
	if err != nil {
		return fmt.Errorf("making the page of preview %s: %w", p.ID, err)
	}
	page.Approve = approve
	var made bytes.Buffer
	if err := pageTemplate().Execute(&made, page); err != nil {
		return fmt.Errorf("making the page of preview %s: %w", p.ID, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err = w.Write(made.Bytes())
	return err
}

// PagePerm returns the permission bits for a file with the page: only users who may read every output and
// every compared file may read it. The caller applies the umask.
func (p *Report) PagePerm() fs.FileMode {
	perm := fs.FileMode(0o644)
	for run := range p.preview.Restore().Plan().Runs() {
		perm &= run.SourceReaders()
		for _, a := range run.Artifacts() {
			perm &= a.Perm
		}
	}
	root, seen := p.preview.Restore().Root(), map[pathsafe.Path]bool{}
	bits, err := root.Granted()
	perm &= readersOf(bits, err)
	for _, i := range p.compared(false) {
		at, err := pathsafe.Parse(i.Path)
		if err != nil {
			return 0o600
		}
		bits, err := root.GrantedPath(at, pathsafe.LinksBeneath)
		if err != nil {
			bits = 0
		}
		perm &= fs.FileMode(bits)
		for dir, ok := at.Parent(); ok && !seen[dir]; dir, ok = dir.Parent() {
			seen[dir] = true
			bits, err := root.GrantedPath(dir, pathsafe.LinksBeneath)
			perm &= readersOf(bits, err)
		}
	}
	return perm | 0o600
}

// readersOf returns the classes of users that may read files in a directory with this mode: those that may
// list and enter it.
func readersOf(granted uint32, err error) fs.FileMode {
	perm := fs.FileMode(0o644)
	for _, class := range []uint32{0o050, 0o005} {
		if err != nil || granted&class != class {
			perm &^= fs.FileMode(class)
		}
	}
	return perm
}

// page is the input of the template. Its texts are those of the block; the template escapes them.
type page struct {
	ID         string
	Approve    string // a command line
	Summary    summary
	Glances    []glance
	Quarantine []quarantine.Finding
	Register   register
	Diffs      diffs
	Source     []field
	Scopes     []scopeRow
	Lists      []listed
	Identity   []field
	Privacy    []field
	Checks     []preview.Check
	Approval   []field
	RunsMore   int
	Plan       string
	PlanNotes  []string
	Undoing    []string
}

// field is one row of two columns.
type field struct {
	Name, Value string
	kind        fieldKind
}

// fieldKind is the kind of value of a field.
type fieldKind int

const (
	prose fieldKind = iota
	ident           // an ID of this program
	named           // a name that comes from a bundle or from the disk
)

// Code reports whether a value is not prose.
func (f field) Code() bool { return f.kind != prose }

// cell returns the value for a Markdown table.
func (f field) cell() string {
	if f.kind == named {
		return Quote(f.Value)
	}
	return text(f.Value)
}

func (p *Report) page(ctx context.Context, free uint64) (*page, error) {
	found, err := p.differences(ctx, true)
	if err != nil {
		return nil, err
	}
	b := &p.Block
	v := &page{
		ID: p.ID, Summary: p.summary(), Glances: p.allGlances(free, maxRows), Quarantine: p.Held, Diffs: found,
		Register: registerOf(p.conflictRows(), found.shown()),
		Source:   p.sourceFields(), Scopes: p.scopeRows(), Lists: p.lists(found.shown()),
		Identity: identityFields(&b.Identity), Privacy: privacyFields(&b.Privacy), Checks: b.Checks,
		Plan:      b.Approval.Plan,
		PlanNotes: p.planNotes(),
		Undoing:   p.undoing(),
		RunsMore:  max(0, len(b.Candidate.Runs)-maxRows),
	}
	v.Approval = p.approvalFields()
	return v, nil
}

// budget is the remaining amount of something that may be shown.
type budget struct{ left int }

// take takes n from the budget and reports whether that was left; if not, it takes the rest.
func (b *budget) take(n int) bool {
	if n > b.left {
		b.left = 0
		return false
	}
	b.left -= n
	return true
}

// costOf returns the approximate size of texts on the page, with their markup.
func costOf(markup int, texts ...string) int {
	for _, text := range texts {
		markup += len(template.HTMLEscapeString(words(text)))
	}
	return markup
}
