package rival

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// outputs are what attackers are after: in a directory that exists, in
// a new one below it, in a new one, and in the root itself.
func outputs() harness.Files {
	return harness.Files{
		"out/new.txt": "new\n", "out/sub/x": "x of sub\n", "fresh/deep/a": "a\n", "top.txt": "top\n",
	}
}

// outputChain is a chain that begins with those outputs.
func outputChain() []harness.Files {
	return []harness.Files{
		outputs(),
		{"second/b": "b\n", "out/new.txt": outputs()["out/new.txt"]},
		{"third/deep/c": "c\n", "last": "last\n"},
	}
}

// wantEnd fails when a command did not end by itself.
func wantEnd(t *testing.T, r harness.Reply) harness.Reply {
	t.Helper()
	if r.Hung {
		t.Fatalf("it hangs: %v", r)
	}
	return r
}

// refused reports whether a commit says that the root is as it was.
func refused(r harness.Reply) bool { return r.Status == 1 || r.Status == 74 || r.Status == 4 }
