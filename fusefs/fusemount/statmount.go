package fusemount

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mountRequest is struct mnt_id_req.
type mountRequest struct {
	size, _ uint32
	id      uint64
	param   uint64
}

// isThere reports whether a mount with a unique number (see uniqueOf) still exists. It also returns
// true if the kernel cannot tell.
func isThere(unique uint64) bool {
	if unique == 0 {
		return true
	}
	var found [512]byte // struct statmount, of which nothing is requested
	request := mountRequest{id: unique}
	request.size = uint32(unsafe.Sizeof(request))
	_, _, errno := unix.Syscall6(unix.SYS_STATMOUNT, uintptr(unsafe.Pointer(&request)),
		uintptr(unsafe.Pointer(&found)), unsafe.Sizeof(found), 0, 0, 0)
	return errno != unix.ENOENT
}
