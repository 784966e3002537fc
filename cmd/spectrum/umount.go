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
			err = fusemount.UnmountReal(way.Real)
			var busy *fusemount.BusyError
			switch {
			case errors.Is(err, fusemount.ErrNotOwn):
				return err // a fault of the machine, see verdicts
			case errors.As(err, &busy):
				return heldByOthers(busy)
			case errors.Is(err, fusemount.ErrUnavailable):
				return err
			case err != nil:
				return refusedHint(err, nameView)
			}
			app.say("unmounted %q", args[0])
			return app.result("", map[string]any{"mountpoint": jsonText(args[0]), "ok": true})
		},
	}
}

const nameView = "name the mount point of a view; \"findmnt -t fuse.spectrum\" lists the views"

// heldByOthers is a view that others than this command hold. The working directory of a
// command is that of the shell that has started it.
func heldByOthers(busy *fusemount.BusyError) error {
	own := func(h fusemount.Holder) bool { return h.PID == os.Getpid() }
	if !slices.ContainsFunc(busy.Holders, own) {
		return refusedHint(busy, "end the processes that use it, then run umount again")
	}
	others := &fusemount.BusyError{Path: busy.Path, Holders: slices.DeleteFunc(slices.Clone(busy.Holders), own)}
	hint := fmt.Sprintf("your shell is in it: leave it with \"cd /\", then run \"spectrum umount %s\"", shellQuote(busy.Path))
	if len(others.Holders) == 0 {
		return refusedHint(fmt.Errorf("unmount %q: the working directory is in the view", busy.Path), hint)
	}
	return refusedHint(others, hint)
}
