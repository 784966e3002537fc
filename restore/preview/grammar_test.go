package preview

import "testing"

// TestProposedGrammar checks that the verb agrees with the proposed number, and the noun with the total.
func TestProposedGrammar(t *testing.T) {
	for want, n := range map[string][2]int{
		"1 of 3 items is proposed": {1, 3}, "1 of 1 item is proposed": {1, 1}, "0 of 1 item are proposed": {0, 1}, "2 of 3 items are proposed": {2, 3},
	} {
		if got := areProposed(n[0], n[1], "item"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
