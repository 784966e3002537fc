package machine

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// UserText returns a user for people: "user alice (1000)" if the name is known, else "user 1000". A
// negative number is an unknown user.
func UserText(uid int) string {
	if uid < 0 {
		return "an unknown user"
	}
	if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("user %s (%d)", known.Username, uid)
	}
	return fmt.Sprintf("user %d", uid)
}

// Umask returns the umask of this process, which it otherwise never changes.
var Umask = sync.OnceValue(func() fs.FileMode {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return fs.FileMode(mask)
})
