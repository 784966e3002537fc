package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/restoretest"
)

// TestOverview checks that an overview has all items and conflicts, with references to each other.
func TestOverview(t *testing.T) {
	p := restoretest.Mixed(t)
	v := report.Of(p).Overview(1 << 30)
	if v.ID != p.ID() || len(v.Items) != 28 || v.Word != "IN PART" || v.Grade != report.Fair || !strings.Contains(fmt.Sprint(v.Facts), "free") {
		t.Errorf("%+v", v)
	}
	fates := map[string]report.Fate{".env": report.Created, "taken": report.Conflicting, "assumed": report.LeftAside, "src/f00": report.Created}
	for n, i := range v.Items {
		if want, ok := fates[i.Path]; i.Number != n+1 || ok && i.Fate != want || i.Free != (i.Fate == report.Created) {
			t.Errorf("%+v", i)
		}
		if i.Restricted != strings.HasSuffix(i.Path, ".env") {
			t.Errorf("restricted: %+v", i)
		}
		for _, c := range i.Conflicts {
			if !slices.Contains(v.Conflicts[c-1].Items, i.Number) {
				t.Errorf("%s and %+v", i.ID, v.Conflicts[c-1])
			}
		}
	}
	if got := strings.Join(report.Of(p).Summary(), "\n"); strings.Contains(got, "\x1b") || !strings.Contains(got, "signed by") {
		t.Errorf("%q", got)
	}
}

// TestFileClasses checks that an overview has the same fates as a summary.
func TestFileClasses(t *testing.T) {
	words := []string{"blocked", "conflict", "diverged", "remove", "replace", "create", "identical", "left out"}
	for f, want := range words {
		if got := report.Fate(f).String(); got != want {
			t.Errorf("%d: %q, want %q", f, got, want)
		}
	}
	if report.Diverged.String() != "diverged" || report.Removed.String() != "remove" || int(report.LeftAside) != len(words)-1 {
		t.Errorf("%d", report.LeftAside)
	}
}
