package fusefs

import (
	"os"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestRevokeRequest: the view obeys one request, of root or of the serving user; it rejects that of
// any other user.
func TestRevokeRequest(t *testing.T) {
	own := uint32(os.Geteuid())
	for name, test := range map[string]struct {
		cmd  uint32
		uid  uint32
		want fuse.Status
	}{
		"another request": {RevokeRequest + 1, 0, fuse.ENOSYS},
		"none":            {0, 0, fuse.ENOSYS},
		"with a size":     {RevokeRequest | 4<<16, 0, fuse.ENOSYS},
		"a reader":        {RevokeRequest, own + 1, fuse.EPERM},
		"root":            {RevokeRequest, 0, fuse.OK},
		"the owner":       {RevokeRequest, own, fuse.OK},
	} {
		x := newFixture(t, File{Path: "f", Size: 1, Source: SourceFunc(noContent)})
		in := &fuse.IoctlIn{Cmd: test.cmd}
		in.Uid = test.uid
		for range 2 {
			if st := x.Ioctl(nil, in, nil, &fuse.IoctlOut{}, nil); st != test.want {
				t.Errorf("%s: %v", name, st)
			}
		}
		if x.isRevoked() != (test.want == fuse.OK) {
			t.Errorf("%s: revoked is %v", name, x.isRevoked())
		}
	}
}

// TestRevokedAnswersNothing: every question about the tree is an I/O error, and
// none of them is a finding.
func TestRevokedAnswersNothing(t *testing.T) {
	x := newFixture(t, File{Path: "f", Size: 5, Source: SourceFunc(noContent)})
	close(x.revoked)
	const file = 2
	name := make([]byte, 10)
	_, read := x.read(nil, file, 0, 5)
	_, attribute := x.GetXAttr(nil, &fuse.InHeader{NodeId: file}, "user.x", name)
	_, attributes := x.ListXAttr(nil, &fuse.InHeader{NodeId: file}, name)
	for what, st := range map[string]fuse.Status{
		"read": read, "getxattr": attribute, "listxattr": attributes,
		"lookup":  x.Lookup(nil, &fuse.InHeader{NodeId: 1}, "f", &fuse.EntryOut{}),
		"getattr": x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: file}}, &fuse.AttrOut{}),
		"readdir": x.ReadDir(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: 1}}, nil),
		"plus":    x.ReadDirPlus(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: 1}}, nil),
	} {
		if st != fuse.Status(syscall.EIO) {
			t.Errorf("%s: %v", what, st)
		}
	}
	if len(x.tampers) != 0 || x.log.Len() != 0 {
		t.Errorf("findings %q, log %s", x.tampers, &x.log)
	}
}
