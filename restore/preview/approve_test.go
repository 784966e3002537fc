package preview_test

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
)

func isStale(err error) bool { return errors.Is(err, preview.ErrStale) }

const statement = "Approved: commit the restore preview exactly as proposed."

// vague are statements that are none: those of protocol section 10, and near
// misses of the one that is.
var vague = []string{
	"Looks good.",
	"Sure.",
	"Proceed with whatever makes sense.",
	"Approved: restore items R-001, R-002, and R-004 only.",
	"Approved: restore project state only. Do not restore identity-layer items.",
	"", " ", "yes", "y", "Approved", "Approved.", "Approved:",
	"Approved: commit the restore preview exactly as proposed",
	"Approved: commit the restore preview exactly as proposed!",
	"Approved: commit the restore preview exactly as proposed..",
	"Approved: commit the restore preview exactly as proposed。",
	"approved: commit the restore preview exactly as proposed.",
	"APPROVED: COMMIT THE RESTORE PREVIEW EXACTLY AS PROPOSED.",
	"Approved: Commit the restore preview exactly as proposed.",
	"Approved : commit the restore preview exactly as proposed.",
	"Approved commit the restore preview exactly as proposed.",
	"Approved; commit the restore preview exactly as proposed.",
	"Approved: commit the preview exactly as proposed.",
	"Approved: commit a restore preview exactly as proposed.",
	"Approved: commit the restore preview as proposed.",
	"Approved: commit the restore preview exactly as proposed. Thanks.",
	"Not Approved: commit the restore preview exactly as proposed.",
	"Approved: do not commit the restore preview exactly as proposed.",
	"\"Approved: commit the restore preview exactly as proposed.\"",
	statement + statement,
	statement + "\x00",
	"\ufeff" + statement,
	"Аpproved: commit the restore preview exactly as proposed.", // Cyrillic A
	"Approved: commit the restore preview exa\u0441tly as proposed.",
	strings.ReplaceAll(statement, " ", "\u00a0"),
	strings.ReplaceAll(statement, " ", "\t"),
	strings.Replace(statement, " ", "  ", 1),
	strings.Replace(statement, " ", "\u200b ", 1),
	strings.Replace(statement, ":", "\uff1a", 1),
}

// TestVagueStatements: nothing but the one statement, to the byte; and a vague
// one does not use the preview up.
func TestVagueStatements(t *testing.T) {
	s, ledger := newScene(t), state(t)
	p := s.preview()
	record := kept(t, p)
	statements := slices.Clone(vague)
	for i := range statement { // white space anywhere, a letter less
		statements = append(statements, statement[:i]+" "+statement[i:], statement[:i]+statement[i+1:])
	}
	for _, space := range []string{" ", "\n", "\r\n", "\t", "\u00a0"} {
		statements = append(statements, statement+space, space+statement)
	}
	for _, text := range statements {
		if err := preview.CheckStatement(text); !errors.Is(err, preview.ErrVague) {
			t.Errorf("CheckStatement(%q) = %v", text, err)
		}
		if a, err := record.Approve(p, text, ledger); !errors.Is(err, preview.ErrVague) || a != nil {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	must(t, preview.CheckStatement(statement))
	a, err := record.Approve(p, statement, ledger)
	must(t, err)
	if a.PreviewID() != p.ID() || a.Restore() == nil {
		t.Errorf("%+v", a)
	}
}

// The statement is the protocol's, and the preview says it.
func TestStatement(t *testing.T) {
	if preview.Statement != statement {
		t.Errorf("%q", preview.Statement)
	}
	if report := reportOf(t, newScene(t).preview()); !strings.Contains(report, "\n    "+statement+"\n") {
		t.Errorf("not in\n%s", report)
	}
}

// TestUsed: each preview is good for one approval, of whichever copy of the
// record, whoever remembers.
func TestUsed(t *testing.T) {
	s, ledger := newScene(t), state(t)
	p := s.preview()
	_, err := kept(t, p).Approve(p, statement, ledger)
	must(t, err)
	for range 3 {
		if a, err := kept(t, p).Approve(s.preview(), statement, ledger); !errors.Is(err, preview.ErrUsed) || a != nil {
			t.Errorf("%v, %v", a, err)
		}
	}
	other := newScene(t).preview()
	_, err = kept(t, other).Approve(other, statement, ledger)
	must(t, err)
}

// TestLedgerFails: a preview whose use cannot be remembered is not approved;
// nor is it said to have been used.
func TestLedgerFails(t *testing.T) {
	p := newScene(t).preview()
	for _, failure := range []error{fs.ErrPermission, fs.ErrClosed} {
		a, err := kept(t, p).Approve(p, statement, ledgerFunc(func(string) error { return failure }))
		if !errors.Is(err, failure) || errors.Is(err, preview.ErrUsed) || a != nil {
			t.Errorf("%v, %v", a, err)
		}
	}
}

type ledgerFunc func(id string) error

func (f ledgerFunc) Use(id string) error { return f(id) }

// TestApprovedByMany: of many at once exactly one wins.
func TestApprovedByMany(t *testing.T) {
	s, ledger := newScene(t), state(t)
	for range 20 {
		s.origin.Nonce += "x"
		p := s.preview()
		record := kept(t, p)
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 16 {
			wg.Go(func() {
				a, err := record.Approve(p, statement, ledger)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && a != nil:
					won++
				case !errors.Is(err, preview.ErrUsed) || a != nil:
					t.Errorf("%v, %v", a, err)
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Fatalf("%d won", won)
		}
	}
}

// TestStaleOrVague: what is vague is so also of a stale preview, and what is
// stale does not ask the ledger.
func TestStaleOrVague(t *testing.T) {
	s := newScene(t)
	record := kept(t, s.preview())
	s.origin.Nonce = "another"
	never := ledgerFunc(func(string) error { t.Error("the ledger was asked"); return nil })
	if _, err := record.Approve(s.preview(), "Sure.", never); !errors.Is(err, preview.ErrVague) {
		t.Error(err)
	}
	if _, err := record.Approve(s.preview(), statement, never); !isStale(err) {
		t.Error(err)
	}
}

// TestSealed: nobody makes an approval but Approve, and none of these values
// can be changed.
func TestSealed(t *testing.T) {
	for _, c := range []struct {
		value   any
		methods string
	}{
		{&preview.Preview{}, "ID JSON WriteReport"},
		{&preview.Record{}, "Approve Origin"},
		{&preview.Approved{}, "PreviewID Restore Take"},
	} {
		typ := reflect.TypeOf(c.value)
		for i := range typ.Elem().NumField() {
			if field := typ.Elem().Field(i); field.IsExported() || field.Anonymous {
				t.Errorf("%v: %s is open", typ, field.Name)
			}
		}
		var methods []string
		for i := range typ.NumMethod() {
			methods = append(methods, typ.Method(i).Name)
		}
		if got := strings.Join(methods, " "); got != c.methods {
			t.Errorf("%v has methods %q, want %q", typ, got, c.methods)
		}
	}
}

// TestZeroRecord: the zero values have no identity that a state directory
// would remember.
func TestZeroRecord(t *testing.T) {
	a, err := new(preview.Record).Approve(new(preview.Preview), statement, state(t))
	if err == nil || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	if zero := new(preview.Approved); zero.Restore() != nil || zero.PreviewID() != "" {
		t.Errorf("%+v", zero)
	}
}
