package statecheck

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/internal/statedir"
)

// JournalKeyLost is what follows where the journal key has to be made anew.
const JournalKeyLost = "the next command makes a new one; the journal of a killed command then counts as forged, and halts its restore root until \"spectrum recover --acknowledge\""

// Misplaced are the entries of the state directory that are not what they have to be.
func Misplaced(state *statedir.Dir) (flaws []Flaw) {
	for _, p := range state.Misplaced() {
		remedy := fmt.Sprintf("find out which process created it; then mv %s %s", words.Shell(p.Path), words.Shell(p.Path+".aside"))
		if unlock := Unlock(p.Path); unlock != "" && errors.Is(p, fs.ErrPermission) {
			remedy = unlock
		}
		if p.Name == statedir.JournalKeyName {
			remedy += ": " + JournalKeyLost
		}
		flaws = append(flaws, Flaw{Path: p.Path, What: p.Error(), Remedy: remedy})
	}
	return flaws
}
