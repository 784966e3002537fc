package statement

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/restore/scope"
)

// Examples of accepted statements, shown with a reason.
const (
	wantItems    = "Approved: restore items R-001, R-002, and R-004 only."
	wantRange    = "Approved: restore items R-001 to R-020 only."
	wantScopes   = "Approved: restore project state and decisions only."
	wantNot      = "Approved: restore project state only. Do not restore identity-layer items."
	wantNotItem  = "Approved: restore project state only. Do not restore items R-002 and R-005."
	wantDecision = Exactly + " Acknowledge C-001 to C-004."
)

// parser reads a statement from left to right and never goes back.
type parser struct {
	rest string
	out  Statement
}

// reject returns the error for a text that is not a statement.
func reject(want, format string, args ...any) error {
	return &Error{fmt.Sprintf(format, args...), want}
}

// quote returns the beginning of a text in ASCII, with every other character escaped.
func quote(text string) string {
	const most = 48
	switch {
	case text == "":
		return "nothing"
	case len(text) > most:
		return strconv.QuoteToASCII(text[:most]) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// parse reads a statement whose text was checked.
func parse(text string) (*Statement, error) {
	p := parser{rest: text}
	if !p.eat("Approved: ") {
		return nil, reject(Exactly, `%s is not an approval: it must begin with "Approved: " and name what is approved`, quote(text))
	}
	if err := p.main(); err != nil {
		return nil, err
	}
	for p.rest != "" {
		if !p.eat(" ") {
			return nil, reject(wantNot, "found %s after a full stop, want one space", quote(p.rest))
		}
		if err := p.clause(); err != nil {
			return nil, err
		}
	}
	if err := p.out.settle(); err != nil {
		return nil, err
	}
	return &p.out, nil
}

// checkText checks the length and the characters of a text.
func checkText(text string) error {
	switch {
	case text == "":
		return reject(Exactly, "it is empty")
	case len(text) > MaxLength:
		return reject(wantRange, "it has %d bytes; at most %d", len(text), MaxLength)
	}
	for i, c := range text {
		if c < ' ' || c > '~' {
			_, size := utf8.DecodeRuneInString(text[i:])
			return reject(Exactly, "found %s at byte %d; only printable ASCII on one line is accepted", quote(text[i:i+size]), i+1)
		}
	}
	return nil
}

// eat removes words from the front and reports whether they were there.
func (p *parser) eat(words string) bool {
	rest, ok := strings.CutPrefix(p.rest, words)
	p.rest = rest
	return ok
}

// stop reads the full stop of a clause.
func (p *parser) stop(want string) error {
	switch {
	case p.eat("."):
		return nil
	case p.rest == "":
		return reject(want, "the full stop is missing at the end")
	}
	return reject(want, "found %s, want a full stop", quote(p.rest))
}

func (p *parser) main() (err error) {
	switch {
	case p.eat("commit the restore preview exactly as proposed"):
		p.out.whole = true
		return p.stop(Exactly)
	case p.eat("restore items "), p.eat("restore item "):
		p.out.items, err = list(p, p.items, wantItems)
	case p.eat("restore "):
		p.out.scopes, err = list(p, p.scope, wantScopes)
	default:
		return reject(Exactly, `found %s, want the preview exactly as proposed, or items, or scopes`, quote(p.rest))
	}
	if err != nil {
		return err
	}
	want := wantItems
	if len(p.out.scopes) > 0 {
		want = wantScopes
	}
	if !p.eat(" only") {
		return reject(want, `found %s after the list, want " only"`, quote(p.rest))
	}
	return p.stop(want)
}

func (p *parser) clause() error {
	switch {
	case p.eat("Do not restore items "), p.eat("Do not restore item "):
		ranges, err := list(p, p.items, wantNotItem)
		p.out.notItems = append(p.out.notItems, ranges...)
		if err != nil {
			return err
		}
		return p.stop(wantNotItem)
	case p.eat("Do not restore "):
		return p.notScopes()
	}
	for _, verb := range verbs {
		if p.eat(verb.word + " ") {
			return p.decisions(verb.verdict)
		}
	}
	return reject(wantNot, "%s begins with neither Do not restore, Acknowledge, Reject nor Resolve", quote(p.rest))
}

func (p *parser) notScopes() error {
	scopes, err := list(p, p.scope, wantNot)
	if err != nil {
		return err
	}
	p.out.notScopes = append(p.out.notScopes, scopes...)
	if !p.eat(" items") {
		return reject(wantNot, `found %s after the scopes, want " items"`, quote(p.rest))
	}
	return p.stop(wantNot)
}

func (p *parser) decisions(v Verdict) error {
	ranges, err := list(p, p.conflicts, wantDecision)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		p.out.decisions = append(p.out.decisions, Decision{r, v})
	}
	return p.stop(wantDecision)
}

// list reads one or more, as English lists them.
func list[T any](p *parser, read func() (T, error), want string) (all []T, err error) {
	for {
		one, err := read()
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		last := len(all) > 1 && p.eat(", and ") || p.eat(" and ")
		switch {
		case last:
			one, err = read()
			if err != nil {
				return nil, err
			}
			return append(all, one), nil
		case p.eat(", "):
			continue
		case len(all) > 1:
			return nil, reject(want, `found %s after a list; join its last two parts with " and "`, quote(p.rest))
		}
		return all, nil
	}
}

func (p *parser) items() (Range, error)     { return p.ids("R-", wantItems) }
func (p *parser) conflicts() (Range, error) { return p.ids("C-", wantDecision) }

// ids reads one id, or a range.
func (p *parser) ids(letter, want string) (Range, error) {
	from, err := p.id(letter, want)
	if err != nil || !p.eat(" to ") {
		return Range{from, from}, err
	}
	to, err := p.id(letter, want)
	if err != nil {
		return Range{}, err
	}
	if to <= from {
		return Range{}, reject(wantRange, "the range from %s%03d to %s%03d does not ascend", letter, from, letter, to)
	}
	return Range{from, to}, nil
}

// id reads an id exactly as it is printed.
func (p *parser) id(letter, want string) (int, error) {
	word := p.word(" ,.")
	digits, ok := strings.CutPrefix(word, letter)
	n, err := strconv.ParseUint(digits, 10, 32)
	padded := len(digits) < 3 || len(digits) > 3 && digits[0] == '0' // %03d prints it in another way
	if !ok || err != nil || padded || n < 1 {
		return 0, reject(want, "found %s, want an id like %s001 (three digits, more only if needed)", quote(word), letter)
	}
	if n > MaxNumber {
		return 0, reject(want, "%s is above %s%d", quote(word), letter, MaxNumber)
	}
	return int(n), nil
}

// word reads the text before the first of these characters, up to the length of the longest word.
func (p *parser) word(ends string) string {
	const most = 64
	word := p.rest[:min(len(p.rest), most)]
	if i := strings.IndexAny(word, ends); i >= 0 {
		word = word[:i]
	}
	p.rest = p.rest[len(word):]
	return word
}

// scope reads the words of a scope, up to what can follow one.
func (p *parser) scope() (scope.Scope, error) {
	before := p.rest
	word := p.word(",.")
	for _, end := range [...]string{" and ", " only", " items"} {
		word, _, _ = strings.Cut(word, end)
	}
	p.rest = before[len(word):]
	s, ok := scope.FromWords(word)
	if !ok {
		return "", reject(wantScopes, "%s is not a restore scope", quote(word))
	}
	return s, nil
}
