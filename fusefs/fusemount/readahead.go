package fusemount

import (
	"fmt"
	"os"
	"strconv"
)

// readAheadKiB is the read-ahead of a view. The kernel's default for a FUSE mount is 128 KiB, one
// request at a time, whatever the server requests; with more, a sequential reader keeps all
// processors busy with checks. Measured on two processors, the first read of a large file takes two
// thirds of the time with 1 MiB, and a little more than half with 4 MiB; larger values gain
// nothing. The cost is that the kernel reads as much around each page of a mapped file that is
// accessed.
const readAheadKiB = 4096

// raiseReadAhead sets the read-ahead if this process may, which only root may. It only affects
// speed.
func raiseReadAhead(m mountID) {
	name := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", m.major, m.minor)
	_ = os.WriteFile(name, []byte(strconv.Itoa(readAheadKiB)), 0)
}
