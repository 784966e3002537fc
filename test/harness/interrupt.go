package harness

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/test/sysfault"
)

// Interruptions are the signals that ask a command to end.
var Interruptions = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// Interrupt is a plan that sends a signal before the N-th call, which is then carried
// out. The signals take turns.
func Interrupt(n int, match func(sysfault.Call) bool) *sysfault.Plan {
	sig := Interruptions[n%len(Interruptions)]
	return &sysfault.Plan{N: n, Record: true, Match: match, Before: func(c sysfault.Call) { _ = syscall.Kill(c.Tid, sig) }}
}

// deeds are what an interrupted command may say that it had done, and that stays.
var deeds = strings.Join([]string{
	`an unfinished [a-z ]+ was found and (rolled back|completed|cleared away|released) \([0-9a-f-]{36}\)`,
	`attempt [0-9a-f-]{36} was rolled back, and the restore root is as it was`,
	`previews of ".*" that were made before are void`,
	`snapshot [0-9a-f]{8} was taken`,
	`preview [0-9a-f]{8} (was kept|is used up)`,
	`what is approved of run ".*" was sealed`,
	`the findings that hold the candidate in quarantine were recorded`,
	`the host's key was made`,
	`\d+ snapshots? removed, but some of their contents are left: the next prune removes them`,
}, "|")

// ends are what a command may say when it was interrupted. What earlier commands had left
// and it has ended it may have said before, the restore root, and which snapshot a rollback or a restore goes back to.
var ends = regexp.MustCompile(`^((restore root: |spectrum: an unfinished ).*\n)*((going back to|restoring) snapshot .*\n)?spectrum: interrupted: (` + Unchanged + `|(` + deeds + `)(; (` + deeds + `))*)\n$`)

// Unchanged is the message of an interrupted command that has done nothing.
const Unchanged = "nothing was changed"

// Interrupted checks what an interrupted command has said: it went on to its end
// (done), or says in one line what is left.
func Interrupted(r Reply) (done bool, err error) {
	switch {
	case r.Hung:
		return false, fmt.Errorf("it hangs: %v", r)
	case r.Status == 0:
		return true, nil
	case r.Status != 130:
		return false, fmt.Errorf("exit status %d: %v", r.Status, r)
	case !ends.MatchString(r.Stderr):
		return false, fmt.Errorf("it does not say in one line what is left: %v", r)
	case strings.Contains(strings.Join(r.Args, " "), "--json") != (r.Answer.Code != ""), r.Answer.OK:
		return false, fmt.Errorf("JSON: %v", r)
	}
	return false, nil
}
