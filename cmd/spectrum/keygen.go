package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

type keygenOptions struct{ out string }

func newKeygen(app *app) *cobra.Command {
	var opts keygenOptions
	cmd := &cobra.Command{
		Use:   "keygen",
		Short: "make an Ed25519 key and print its validator_id",
		Args:  exactly(0),
		RunE:  func(*cobra.Command, []string) error { return runKeygen(app, opts) },
	}
	cmd.Flags().StringVar(&opts.out, "out", "", "key `file` to make (default: key.pem in the state directory)")
	return cmd
}

func runKeygen(app *app, opts keygenOptions) error {
	path, err := app.keyPath(opts.out)
	if err != nil {
		return err
	}
	key, err := bundle.GenerateKey()
	if err != nil {
		return err
	}
	dir, err := pathsafe.OpenOwn(filepath.Dir(path))
	if err == nil {
		defer dir.Close()
		err = key.SaveIn(dir, filepath.Base(path))
	}
	if errors.Is(err, fs.ErrExist) {
		return refusedHint(fmt.Errorf("key file %q exists; it was not replaced", path), "\"spectrum keygen --out FILE\" makes another key elsewhere")
	}
	if err != nil {
		return refusedHint(err, "choose a file with --out FILE in an existing directory where you can write")
	}
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("key file %q was written, but may be lost in a power cut: %w", path, err)
	}
	app.say("wrote %q; every user who can read it can sign as this validator", path)
	return app.result(key.ValidatorID(), map[string]any{"key_file": jsonText(path), "ok": true, "validator_id": key.ValidatorID()})
}

// keyPath is the key file that was named, or the state directory's.
func (a *app) keyPath(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	state, err := a.openState()
	if err != nil {
		return "", err
	}
	defer state.Close()
	return state.KeyPath(), nil
}
