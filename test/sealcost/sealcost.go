// Package sealcost seals a directory with and without a block table, for the benchmark: the command
// always writes one.
package sealcost

import (
	"context"
	"errors"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Seal seals an output of a project with a fresh key, and removes the run directory again.
func Seal(ctx context.Context, project, runDir, output string, withTable bool) error {
	root, err := pathsafe.OpenRoot(project)
	if err != nil {
		return err
	}
	defer root.Close()
	key, err := bundle.GenerateKey()
	if err != nil {
		return err
	}
	_, err = bundle.Seal(ctx, bundle.SealOptions{
		Project: root, RunDir: runDir, Outputs: []string{output}, Key: key, BuildID: "git:bench", Blocks: withTable,
	})
	return errors.Join(err, os.RemoveAll(runDir))
}
