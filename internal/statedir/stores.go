package statedir

import "github.com/spectrumfs/spectrum/pathsafe"

// The directories of stores.
const (
	pushed  = "pushed"
	fetched = "fetched"
)

// Pushed opens the directory of the records of what this user has uploaded to stores.
func (d *Dir) Pushed() (*pathsafe.Dir, error) { return d.open(pushed) }

// Fetched opens the directory of the runs that are fetched from stores, each while a command uses it.
func (d *Dir) Fetched() (*pathsafe.Dir, error) { return d.open(fetched) }
