package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spf13/cobra"
)

func newUmount(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "umount MOUNTPOINT",
		Short: "unmount a view, even if its server has died",
		Args:  exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			way, err := pathsafe.WayToMount(args[0])
			if err == nil {
				err = way.CheckLinks()
			}
			if err != nil {
				return refusedHint(fmt.Errorf("mount point %q: %w", args[0], err), nameView)
			}
			if err := fusemount.UnmountReal(way.Real); err != nil {
				return notUnmounted(err)
			}
			app.say("unmounted %q", args[0])
			return app.result("", map[string]any{"mountpoint": jsonText(args[0]), "ok": true})
		},
	}
}

const nameView = "name the mount point of a view; \"findmnt -t fuse.spectrum\" lists the views"

// notUnmounted is the error of a view that was not unmounted: one that others than this command hold names
// them. The working directory of a command is that of the shell that has started it.
func notUnmounted(err error) error {
	busy, isBusy := errors.AsType[*fusemount.BusyError](err)
	if !isBusy {
		return hinted(err, unmountHint(err, false))
	}
	own := func(h fusemount.Holder) bool { return h.PID == os.Getpid() }
	if !slices.ContainsFunc(busy.Holders, own) {
		return hinted(busy, unmountHint(busy, false))
	}
	others := &fusemount.BusyError{Path: busy.Path, Holders: slices.DeleteFunc(slices.Clone(busy.Holders), own)}
	if len(others.Holders) == 0 {
		return hinted(fmt.Errorf("unmount %q: the working directory is in the view", busy.Path), unmountHint(busy, true))
	}
	return hinted(others, unmountHint(busy, true))
}
