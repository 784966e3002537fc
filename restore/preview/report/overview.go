package report

import (
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// An Overview is a copy of the content of a preview for an interactive reader. The paths and texts of items
// and conflicts are those of the decision block, and the caller escapes them. All other texts are escaped.
type Overview struct {
	ID      string // of the preview
	Source  string // the candidate, in words
	Title   string // that the signer has given it, quoted; "" for none
	Word    string // the result in a word
	Verdict string // the result in a sentence
	Grade   Grade
	Root    string // of the restore, quoted where it needs it
	Counts  string // of files, by their fate
	Size    string // of the written files
	Signers []string
	Pinned  bool  // all signers are pinned
	Held    bool  // the candidate is in quarantine
	Facts   []Row // the rows of the summary; a row without a name continues the previous one

	Items     []Item // of the candidate, in the order of their numbers
	Running   []int  // proposed items that may run by themselves, by number, the most dangerous first
	Conflicts []Conflict
}

// A Grade is the severity of a verdict.
type Grade int

// The grades.
const (
	Bad Grade = iota
	Fair
	Good
)

// A Fate is what the restore does with an item.
type Fate int

// The fates, the most urgent first.
const (
	Blocked Fate = iota
	Conflicting
	Diverged // the existing file is not the one that the change set started from
	Removed
	Replaced
	Created
	Unchanged
	LeftAside // it is not proposed
)

// String returns the fate in a word.
func (f Fate) String() string { return classes[f].word }

// An Item is one output of the candidate, or one removal of a change set.
type Item struct {
	Number     int
	ID, Path   string
	Scope      string
	Label      string
	Reason     string // "" if the label is enough
	Runs       string // why it may run by itself; "" if it may not
	SHA256     string
	Mode, Time string
	Bytes      int64
	Fate       Fate
	Before     *Existing // that is replaced or removed; nil for none
	Removal    bool      // the file is removed
	Free       bool      // it is proposed and not blocked
	Restricted bool      // it may hold secrets: only a statement that names it restores it
	Opens      bool      // it replaces a file that other users had less access to
	Writable   bool      // it is created, and every user may write it
	Conflicts  []int     // numbers of its conflicts
}

// Existing is a file that is replaced or removed.
type Existing struct {
	Bytes int64
	Mode  string
}

// A Conflict is an entry of the conflict register.
type Conflict struct {
	Number     int
	ID, Type   string
	Path       string // see [preview.Conflict]
	Items      []int  // none: it concerns the whole candidate
	Current    string
	Claim      string
	Authority  string
	Risk       string
	Resolution string
	Decided    statement.Verdict // in the preview; "" if undecided

	// OnlyAcknowledge: the statement can only acknowledge it.
	OnlyAcknowledge bool
}

// Overview returns the content of the preview. Free is as in [Screen].
func (p *Report) Overview(free uint64) Overview {
	v := Overview{
		ID: p.ID, Source: p.runText(), Title: p.titleText(), Root: name(p.Block.Root.Real), Counts: p.countsText(), Size: visible.Size(p.bytesToWrite()),
		Signers: p.signers(), Pinned: p.isPinned(), Held: len(p.Held) > 0,
	}
	var color string
	v.Word, v.Verdict, color = p.outcome()
	v.Grade = map[string]Grade{red: Bad, yellow: Fair, green: Good}[color]
	for _, g := range p.allGlances(free, maxKinds) {
		v.Facts = append(v.Facts, Row{Name: g.Name, Value: g.Text})
	}
	if opened := namesOf(p.opened()); opened != "" {
		v.Facts = append(v.Facts, Row{Name: "more access", Value: opened})
	}
	for _, i := range p.running() {
		v.Running = append(v.Running, i.Number)
	}
	for n := range p.items {
		v.Items = append(v.Items, p.shownItem(n))
	}
	for n := range p.Block.Conflicts {
		c := shownConflict(&p.Block.Conflicts[n], n+1)
		v.Conflicts = append(v.Conflicts, c)
		for _, number := range c.Items {
			v.Items[number-1].Conflicts = append(v.Items[number-1].Conflicts, c.Number)
		}
	}
	return v
}

func (p *Report) shownItem(n int) Item {
	i := &p.items[n]
	out := Item{
		Number: i.Number, ID: i.ID, Path: i.Path, Scope: string(i.Scope), Label: string(i.Label), Reason: i.Reason, Runs: i.Runs,
		SHA256: i.SHA256, Mode: i.Mode, Time: i.Time, Bytes: i.Bytes, Fate: LeftAside,
		Restricted: i.Scope == scope.RestrictedContext, Opens: i.Opens, Writable: isWritable(i), Removal: i.Removed,
	}
	if p.proposes(i) || i.IsDiverged() {
		out.Fate, out.Free = Fate(slices.Index(classes, classOf(i))), p.proposes(i) && i.IsFree()
	}
	if i.Before != nil {
		out.Before = &Existing{i.Before.Bytes, i.Before.Mode}
	}
	return out
}

func shownConflict(c *preview.Conflict, number int) Conflict {
	out := Conflict{
		Number: number, ID: c.ID, Type: string(c.Type), Path: c.Path, Items: slices.Clone(c.Numbers), Current: c.Current, Claim: c.Claim,
		Authority: c.Authority, Risk: c.Risk, Resolution: c.Resolution, OnlyAcknowledge: c.ByName,
	}
	if c.Decision != preview.Undecided && !c.ByName {
		out.Decided = statement.Verdict(c.Decision)
	}
	return out
}

// Summary returns the recap of [Report.WriteRecap], a line for each row.
func (p *Report) Summary() []string {
	var text strings.Builder
	_ = p.WriteRecap(&text, Screen{Columns: wholeRow}) // a Builder takes all
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

// wholeRow is a width on which no row of a recap is broken.
const wholeRow = 1 << 16
