package main

import (
	"errors"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spf13/cobra"
)

func newUmount(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "umount MOUNTPOINT",
		Short: "end a view, also one whose server has died",
		Args:  exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			err := fusefs.Unmount(args[0])
			var busy *fusefs.BusyError
			switch {
			case errors.Is(err, fusefs.ErrNotOwn):
				return err // a fault of the machine, see hintsOf
			case errors.As(err, &busy):
				return refusedHint(err, "end what holds it, then run umount again")
			case errors.Is(err, fusefs.ErrUnavailable):
				return err
			case err != nil:
				return refusedHint(err, "name the directory that \"spectrum mount\" has mounted on; \"findmnt -t fuse.spectrum\" lists the views")
			}
			app.say("unmounted %q", args[0])
			return app.result("", map[string]any{"mountpoint": jsonText(args[0]), "ok": true})
		},
	}
}
