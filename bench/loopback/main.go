// Command loopback mounts go-fuse's own loopback file system with the defaults of its
// example. It is what the benchmark holds the view against; it checks nothing.
//
// Usage: loopback [-name TYPE] [-passthrough=false] MOUNTPOINT DIR. SIGINT ends it.
package main

import (
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/moby/sys/mountinfo"
)

func main() {
	name := flag.String("name", "loopback", "show as file system type fuse.`TYPE`")
	passthrough := flag.Bool("passthrough", true, "as root: lend files to the kernel, which then reads past the server")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: loopback [-name TYPE] [-passthrough=false] MOUNTPOINT DIR")
	}
	var disabled uint64
	if !*passthrough {
		disabled = fuse.CAP_PASSTHROUGH // as it is for every user but root
	}
	// Before the mount: go-fuse opens a file of its own mount to be sure that it is there, and
	// a process that dies in the midst of that waits for itself, and cannot even be killed.
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	server, err := mount(*name, disabled, flag.Arg(0), flag.Arg(1))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		server.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			return
		case <-interrupted:
			err := unmount(server, flag.Arg(0))
			if err == nil {
				return
			}
			log.Print(err)
		}
	}
}

// unmount returns when the mount is gone from here. The server itself would wait for all
// copies of it in other mount namespaces to go too.
func unmount(server *fuse.Server, mountpoint string) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Unmount() }()
	for {
		mounted, err := mountinfo.Mounted(mountpoint)
		if err != nil || !mounted {
			return err
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func mount(name string, disabled uint64, mountpoint, dir string) (*fuse.Server, error) {
	root, err := fs.NewLoopbackRoot(dir)
	if err != nil {
		return nil, err
	}
	second := time.Second
	return fs.Mount(mountpoint, root, &fs.Options{
		AttrTimeout:     &second,
		EntryTimeout:    &second,
		NullPermissions: true,
		MountOptions:    fuse.MountOptions{FsName: dir, Name: name, DisabledCapabilities: disabled},
	})
}
