package main

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// hostKey returns this host's own key, with which it signs its records: the operator's key may be
// elsewhere. The key is made, durably, at its first use; two processes that make one get the same.
func (a *app) hostKey(state *statedir.Dir) (bundle.Key, error) {
	key, err := bundle.LoadKey(state.HostKey())
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = makeHostKey(state); err == nil {
			a.hasDone("the host's key was made")
		}
	}
	return key, refusedHint(err, statecheck.HostKeyHint(state, err))
}

func makeHostKey(state *statedir.Dir) (bundle.Key, error) {
	fresh, err := bundle.GenerateKey()
	if err != nil {
		return bundle.Key{}, err
	}
	if err := fresh.Save(state.HostKey()); err != nil && !errors.Is(err, fs.ErrExist) {
		return bundle.Key{}, err
	}
	if err := state.Sync(); err != nil {
		return bundle.Key{}, err
	}
	return bundle.LoadKey(state.HostKey())
}

// knownHost is the validator_id of this host's key, "" where it has none that can be used.
func (a *app) knownHost(state *statedir.Dir) string {
	id, err := hostID(state)
	if err != nil {
		return ""
	}
	return id
}

// hostID is the validator_id of this host's key, "" when it has none yet.
func hostID(state *statedir.Dir) (string, error) {
	key, err := bundle.LoadKey(state.HostKey())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return key.ValidatorID(), refusedHint(err, statecheck.HostKeyHint(state, err))
}
