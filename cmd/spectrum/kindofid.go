package main

import (
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// previewWithID returns the ID of the preview that begins with these digits; "" where there is none, or
// several.
func previewWithID(state *statedir.Dir, id string) (found string) {
	if len(id) < least || !hexdigits.Only(id) {
		return ""
	}
	all, _ := state.Previews() // what cannot be read is not found
	for _, p := range all {
		if !strings.HasPrefix(p.ID, id) {
			continue
		}
		if found != "" {
			return ""
		}
		found = p.ID
	}
	return found
}

// otherID is the next step where an ID was given to a command that does not take IDs of its kind; ""
// where nothing has that ID.
func otherID(state *statedir.Dir, id string) string {
	if !likeAction.MatchString(id) {
		return ""
	}
	if p := previewWithID(state, id); p != "" {
		return "that is a preview: \"spectrum commit --preview " + p[:shortest] + "\" commits it"
	}
	all, _ := actionsOf(state, "") // of a damaged log the part before the damage
	for _, c := range all {
		switch {
		case !strings.HasPrefix(c.ID, id) && (c.Savepoint == "" || !strings.HasPrefix(c.Savepoint, id)):
		case c.IsCommit():
			return "that is a commit: \"spectrum log " + c.ID + "\" shows it, and \"spectrum rollback " + c.ID + "\" undoes it"
		default:
			return "that is a rollback: \"spectrum log " + c.ID + "\" shows it"
		}
	}
	if store, err := statecheck.Snapshots(state); err == nil {
		defer store.Close()
		if s, err := store.Find(id); err == nil {
			return "that is a snapshot: \"spectrum snapshot restore " + s.ID()[:shortest] + "\" goes back to it"
		}
	}
	return ""
}

// previewNamed is previewWithID for a command that has not opened the state directory; it makes none.
func (a *app) previewNamed(id string) string {
	state, err := a.existingState()
	if err != nil {
		return ""
	}
	defer state.Close()
	return previewWithID(state, id)
}
