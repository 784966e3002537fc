package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spf13/cobra"
)

// conflictID is the form of the ID of a conflict.
var conflictID = regexp.MustCompile(`^C-[0-9]{3,}$`)

// itemID is the form of the ID of an item.
var itemID = regexp.MustCompile(`^R-[0-9]{3,}$`)

// likeDecision is a decision as it may be typed: the number of a conflict, and a word.
var likeDecision = regexp.MustCompile(`^[Cc]?-?0*([1-9][0-9]{0,8})(?: *[=:, ] *([A-Za-z]+))?$`)

// decisionOf reads the value of --decide. In the place of a decision it takes the word of a statement.
func decisionOf(cmd *cobra.Command, text string) (id string, verdict statement.Verdict, err error) {
	id, word, ok := strings.Cut(text, "=")
	if said, is := imperatives[word]; is {
		word = said
	}
	verdict = statement.Verdict(word)
	if ok && (conflictID.MatchString(id) && slices.Contains(decisions, verdict) || itemID.MatchString(id) && (verdict == preview.Replace || verdict == preview.Keep)) {
		return id, verdict, nil
	}
	use := &usageError{
		command: cmd.CommandPath(), err: fmt.Errorf("--decide %q is not one conflict and one decision", text),
		next: "each --decide names one conflict by its ID and one decision, such as --decide C-001=acknowledged; it may be repeated",
	}
	typed := likeDecision.FindStringSubmatch(text)
	if typed == nil {
		return "", "", use
	}
	if ok && word != "" {
		use.err = fmt.Errorf("--decide %q: the decisions are acknowledged, rejected or resolved, and for a file that has diverged replace or keep", text)
	}
	number, _ := strconv.Atoi(typed[1]) // it has few digits
	meant := meantDecision(typed[2])
	use.next = fmt.Sprintf("name one conflict and one decision, such as --decide %s=%s", preview.ConflictID(number), statement.Acknowledged)
	if meant != "" {
		use.next, use.meant = "", []string{fmt.Sprintf("--decide %s=%s", preview.ConflictID(number), meant)}
	}
	return "", "", use
}

// meantDecision is the decision that a word may stand for; "" for none.
func meantDecision(word string) string {
	word = strings.ToLower(word)
	if said, is := imperatives[word]; is {
		return said
	}
	for _, d := range decisions {
		if len(word) > nearest && (strings.HasPrefix(string(d), word) || slipsBetween(word, string(d)) <= nearest) {
			return string(d)
		}
	}
	return ""
}
