package statecheck

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// Misplaced are the entries of the state directory that are not what they have to be.
func Misplaced(state *statedir.Dir) (flaws []Flaw) {
	for _, p := range state.Misplaced() {
		flaws = append(flaws, Flaw{Path: p.Path, What: p.Error(), Remedy: PlaceRemedy(p)})
	}
	return flaws
}

// PlaceRemedy is what to do about an entry of the state directory that is not what it has to be.
func PlaceRemedy(p *statedir.PartError) string {
	if unlock := Unlock(p.Path); unlock != "" && errors.Is(p, fs.ErrPermission) {
		return unlock
	}
	remedy := "find out which process created it; then " + PutAside(p.Path)
	if p.Name == statedir.JournalKeyName {
		remedy += ": the next command makes a new one; the journal of a killed command then counts as forged, and halts its restore root until \"spectrum recover --acknowledge\""
	}
	return remedy
}

// PutAside is the command that moves an entry of the state directory away.
func PutAside(path string) string {
	return fmt.Sprintf("mv %s %s", words.Shell(path), words.Shell(path+".aside"))
}
