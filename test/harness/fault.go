package harness

import (
	"fmt"
	"syscall"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// errnos are what a call can fail with. EINTR is for one call only: a program that is
// interrupted without end cannot go on.
var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EROFS,
	syscall.EMFILE, syscall.ENOMEM, syscall.ELOOP}

// A Fault is an error of one call, or of all from a call on.
type Fault struct {
	Errno  syscall.Errno
	Onward bool
}

func (f Fault) String() string {
	if f.Onward {
		return fmt.Sprintf("%q from there on", f.Errno.Error())
	}
	return fmt.Sprintf("%q once", f.Errno.Error())
}

// Plan is a plan for the fault at the n-th call that matches.
func (f Fault) Plan(n int, match func(sysfault.Call) bool) *sysfault.Plan {
	return &sysfault.Plan{N: n, Onward: f.Onward, Errno: f.Errno, Match: match}
}

// AllFaults are all kinds of faults: each error once and from a call on, and EINTR.
func AllFaults() []Fault {
	list := []Fault{{syscall.EINTR, false}}
	for _, errno := range errnos {
		list = append(list, Fault{errno, false}, Fault{errno, true})
	}
	return list
}

// FaultsAt returns so many kinds of faults to try at call n: others at each call. Over
// 17 calls in a row every kind has its turn, and the seed moves which call has which.
func FaultsAt(n, count int) []Fault {
	all := AllFaults()
	for _, b := range []byte(sample.Seed()) {
		n += int(b)
	}
	var chosen []Fault
	for i := range min(count, len(all)) { // 17 is a prime: any step visits all
		chosen = append(chosen, all[(n*5+i*6)%len(all)])
	}
	return chosen
}
