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
		// The script copies what is on the page, and the page needs it for nothing else.
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

// How much of one kind the page shows, in bytes of it; the JSON has all.
const (
	treeBytes     = 3 << 20 // of the trees together
	registerBytes = 1 << 20
	diffBytes     = 3 << 17
)

// WritePage writes the preview for people, as one HTML page that needs neither a
// network nor a script: what a summary has, in the same order, then the ten sections of
// protocol section 8, the conflict register with what differs in text files first. Approve is the
// command line that approves what is recommended, "" for none; a button copies it, where scripts
// run. Every name and every text
// that comes from a bundle or from the disk is escaped, and what cannot be seen
// is shown as an escape. The page says how much it leaves out; the JSON has all.
// The same preview gives the same bytes, but for the free bytes, which are as in [Screen].
//
// It reads the files that differ, so the restore must still be open. The error
// is that of a source that is not what was signed, [ErrUnsettled] when the
// restore root is not the one that was previewed any more, or ctx's; then
// nothing was written. Contents of restricted context are never shown.
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

// PagePerm returns the permission bits of a file with the page: those who may read it may
// read every output, and every existing file that the page compares, too. The umask is the
// caller's to take off.
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

// readersOf returns who may read the files of a directory that grants this: who may list and
// enter it.
func readersOf(granted uint32, err error) fs.FileMode {
	perm := fs.FileMode(0o644)
	for _, class := range []uint32{0o050, 0o005} {
		if err != nil || granted&class != class {
			perm &^= fs.FileMode(class)
		}
	}
	return perm
}

// page is what the template shows. Its texts are as they are in the block; the
// template makes them safe to see.
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

// fieldKind says what the value of a field is.
type fieldKind int

const (
	prose fieldKind = iota
	ident           // an identity of ours
	named           // a name that comes from a bundle or from the disk
)

// Code says that a value is not prose.
func (f field) Code() bool { return f.kind != prose }

// cell is the value in a table of Markdown.
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

// budget is how much may still be shown of something.
type budget struct{ left int }

// take takes n, or all that is left and says no.
func (b *budget) take(n int) bool {
	if n > b.left {
		b.left = 0
		return false
	}
	b.left -= n
	return true
}

// costOf is about what texts take up on the page, with the markup around them.
func costOf(markup int, texts ...string) int {
	for _, text := range texts {
		markup += len(template.HTMLEscapeString(words(text)))
	}
	return markup
}
