package machine

import "testing"

// TestIDMap: the IDs of a user namespace are read from its map, and a malformed map has all.
func TestIDMap(t *testing.T) {
	for text, c := range map[string]struct {
		all bool
		has map[int]bool
	}{
		"         0          0 4294967295\n":                  {true, map[int]bool{0: true, 65534: true}},
		"         0       1000          1\n":                  {false, map[int]bool{0: true, 1: false, 65534: false}},
		"         0       1000          1\n 1 100000 65536\n": {false, map[int]bool{0: true, 1: true, 65536: true, 65537: false}},
		"garbage\n": {true, map[int]bool{7: true}},
	} {
		m := parseIDMap(text)
		for id, want := range c.has {
			if m.all != c.all || m.has(id) != want {
				t.Errorf("%q: all %v, has %d: %v", text, m.all, id, m.has(id))
			}
		}
	}
}
