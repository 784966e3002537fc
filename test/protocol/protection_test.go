package protocol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// protectionChecks are those of section 14.
func protectionChecks() map[string]check {
	return map[string]check{
		"14 verified before a commit": verifiedAgain,
		"14 question 1":               question(1, againstInstructions),
		"14 question 2":               question(2, appliesOnlyApproved),
		"14 question 3":               question(3, oldStatus),
		"14 question 4":               question(4, allFlagged),
		"14 question 5":               question(5, restrictedExcluded),
		"14 question 6":               question(6, crossAgent),
		"14 question 7":               question(7, sameAgent),
		"14 question 8":               question(8, savepointAtOnce),
		"14 a risk stops the commit":  riskStops,
	}
}

// question: every preview answers the question, in its place, and what is asked is
// true.
func question(n int, holds check) check {
	return func(t *testing.T, s *stage) {
		ask := ofLaw(fmt.Sprintf("14 question %d", n))[0]
		for _, b := range []block{s.plain.block, s.wide.block, s.foreign.block, s.crowded.block, s.knot.block, s.old.block} {
			var questions []string
			for _, c := range b.Checks {
				questions = append(questions, c.Question)
			}
			at := slices.Index(questions, ask)
			if at < 0 {
				t.Fatalf("%q is not in %q", ask, questions)
			}
			for later := n + 1; later <= 8; later++ {
				if slices.Index(questions, ofLaw(fmt.Sprintf("14 question %d", later))[0]) < at {
					t.Errorf("%q: out of order", questions)
				}
			}
		}
		holds(t, s)
	}
}

// allFlagged: every target that is taken has its conflict.
func allFlagged(t *testing.T, s *stage) {
	for _, i := range s.crowded.Proposed {
		flagged := slices.ContainsFunc(s.crowded.Conflicts, func(c conflict) bool { return slices.Contains(c.Items, i.ID) })
		if flagged != (i.Class != "create") {
			t.Errorf("%+v", i)
		}
	}
}

// verifiedAgain: the commit asks again, and of what is there then.
func verifiedAgain(t *testing.T, _ *stage) {
	w := newFull(t)
	b := w.preview(t)
	put(t, w.root+"/state/1.txt", "in the way\n")
	w.refused(t, b.ID, exactly, 4, "APPROVAL_STALE")
}

func riskStops(t *testing.T, _ *stage) {
	w := newFixture(t).seal(t, "run-1", harness.Files{"a": "a\n"}, "--constraint", "artifact_status=deprecated")
	b := w.preview(t)
	w.refused(t, b.ID, exactly, 5, "CANDIDATE_QUARANTINED")
}
