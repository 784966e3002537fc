package harness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/sysfault"
)

// Changing matches the calls that can change what is on the disk. The close of a file
// does not: to be killed before it is to be killed before the next call.
func Changing(c sysfault.Call) bool { return c.Name != "close" && sysfault.Mutating(c) }

// ChangingCalls are the names of all calls that Changing can match.
var ChangingCalls = slices.DeleteFunc(sysfault.MutatingCalls(), func(name string) bool { return name == "close" })

// OnDisk matches the calls that a disk can notice.
func OnDisk(c sysfault.Call) bool { return c.Name != "flock" && Changing(c) }

// Anything matches all calls that sysfault knows.
func Anything(sysfault.Call) bool { return true }

// Inside reports whether a path is this directory or beneath it.
func Inside(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// Beneath matches the calls among these that are about the root or the state directory.
func (s *Site) Beneath(match func(sysfault.Call) bool) func(sysfault.Call) bool {
	return func(c sysfault.Call) bool {
		return match(c) && (Inside(c.Path, s.Root) || Inside(c.Path, s.Project.State))
	}
}

// Killing is a plan that kills the command before the n-th of the changing calls that
// match.
func Killing(n int, match func(sysfault.Call) bool) *sysfault.Plan {
	return &sysfault.Plan{N: n, Kill: true, Record: true, Match: match, Only: ChangingCalls}
}

// Last describes the last counted call of a command that ran under a plan with Record.
func (s *Site) Last(r Reply) string {
	if len(r.Fault.Trace) == 0 {
		return "nothing"
	}
	return s.Describe(r.Fault.Trace[len(r.Fault.Trace)-1])
}

// Describe returns a call as text: with R for the root, STATE for the state directory,
// and ABOVE for the directory of the root.
func (s *Site) Describe(c sysfault.Call) string {
	text := fmt.Sprintf("call %d, %s %s", c.N, c.Name, c.Path)
	if c.To != "" {
		text += " to " + c.To
	}
	return strings.NewReplacer(s.Root, "R", s.Project.State, "STATE", filepath.Dir(s.Root), "ABOVE").Replace(text)
}
