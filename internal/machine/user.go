package machine

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// UserText is a user for people: "user alice (1000)" where this machine knows the name, else
// "user 1000"; a negative number is a user who is not known.
func UserText(uid int) string {
	if uid < 0 {
		return "an unknown user"
	}
	if known, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return fmt.Sprintf("user %s (%d)", known.Username, uid)
	}
	return fmt.Sprintf("user %d", uid)
}

// Umask returns that of this process, which never changes it but for this moment.
var Umask = sync.OnceValue(func() fs.FileMode {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return fs.FileMode(mask)
})
