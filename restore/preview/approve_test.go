package preview_test

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
)

func isStale(err error) bool { return errors.Is(err, preview.ErrStale) }

const exactly = "Approved: commit the restore preview exactly as proposed."

// vague are statements that approve nothing; package statement has more of them.
var vague = []string{"", "yes", "Looks good.", "Sure.", "Proceed with whatever makes sense.", "Approved.", exactly[:len(exactly)-1], exactly + " ", " " + exactly, exactly + exactly}

// TestVagueStatements checks that a vague statement does not use up the preview.
func TestVagueStatements(t *testing.T) {
	s, ledger := newScene(t), state(t)
	p := s.Preview()
	record := kept(t, p)
	for _, text := range vague {
		if a, err := s.Accept(record, text, ledger); !errors.Is(err, preview.ErrVague) || a != nil {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	a, err := s.Accept(record, exactly, ledger)
	must(t, err)
	if a.PreviewID() != p.ID() || a.Restore() == nil {
		t.Errorf("%+v", a)
	}
}

// The statement is the protocol's, and the preview says it.
func TestStatement(t *testing.T) {
	if preview.Exactly != exactly {
		t.Errorf("%q", preview.Exactly)
	}
	if report := reportOf(t, newScene(t).Preview()); !strings.Contains(report, "\n    "+exactly+"\n") {
		t.Errorf("not in\n%s", report)
	}
}

// TestUsed: each preview is good for one approval, of whichever copy of the record, in whichever
// store of used previews.
func TestUsed(t *testing.T) {
	s, ledger := newScene(t), state(t)
	p := s.Preview()
	_, err := s.Accept(kept(t, p), exactly, ledger)
	must(t, err)
	for range 3 {
		if a, err := s.Accept(kept(t, p), exactly, ledger); !errors.Is(err, preview.ErrUsed) || a != nil {
			t.Errorf("%v, %v", a, err)
		}
	}
	other := newScene(t)
	_, err = other.Accept(kept(t, other.Preview()), exactly, ledger)
	must(t, err)
}

// TestLedgerFails: a preview whose use cannot be remembered is not approved;
// nor is it said to have been used.
func TestLedgerFails(t *testing.T) {
	s := newScene(t)
	p := s.Preview()
	for _, failure := range []error{fs.ErrPermission, fs.ErrClosed} {
		a, err := s.Accept(kept(t, p), exactly, ledgerFunc(func(string) error { return failure }))
		if !errors.Is(err, failure) || errors.Is(err, preview.ErrUsed) || a != nil {
			t.Errorf("%v, %v", a, err)
		}
	}
}

type ledgerFunc func(id string) error

func (f ledgerFunc) Use(id string) error { return f(id) }

// TestApprovedByMany checks that of many concurrent approvals exactly one succeeds.
func TestApprovedByMany(t *testing.T) {
	s, ledger := newScene(t), state(t)
	s.Origin.RestoreRoot = s.RestoreRoot
	for range 20 {
		s.Origin.RestoreRoot += "/" // another preview
		r := s.Restore()
		p, err := preview.New(context.Background(), r, s.Request())
		must(t, err)
		record := kept(t, p)
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 16 {
			wg.Go(func() {
				approval, err := approve(record, p, exactly)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := approval.Accept(r, ledger)
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

// TestStale checks that a stale preview does not query the ledger.
func TestStale(t *testing.T) {
	s := newScene(t)
	record := kept(t, s.Preview())
	s.Origin.RestoreRoot = s.RestoreRoot + "/."
	never := ledgerFunc(func(string) error { t.Error("the ledger was asked"); return nil })
	if _, err := s.Accept(record, exactly, never); !isStale(err) {
		t.Error(err)
	}
}

// TestSealed checks that only Approve makes an approval, and that these values are immutable.
func TestSealed(t *testing.T) {
	for _, c := range []struct {
		value   any
		methods string
	}{
		{&preview.Preview{}, "Asked BundleRoots CheckRoot Chosen ClaimsAreUnusable CouldReplace Draft Findings Fits HeldBy ID JSON Keep Recommended Restore Shown Source"},
		{&preview.Record{}, "Approve Asked Attempts Holds ID Origin Pending Recommended Remade Signed Source"},
		{&preview.Approval{}, "Accept Overrule Parts PreviewID Whole"},
		{&preview.Approved{}, "BundleRoots Claims Completed Outcome PreviewID Restore Signed Take Targets"},
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

// TestZero checks that the zero values approve nothing.
func TestZero(t *testing.T) {
	a, err := approve(new(preview.Record), new(preview.Preview), exactly)
	if err == nil || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	if zero := new(preview.Approved); zero.Restore() != nil || zero.Take() {
		t.Errorf("%+v", zero)
	}
}
