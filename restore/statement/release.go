package statement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// The statements that release what halts a restore root, or accept a loss (rollback contract, sections
// 7.1 and 12), name the root and what was found there, so that each fits no other state. A
// statement is one line of text, whatever the root is called.

// IDDigits is how many digits of an ID such a statement has.
const IDDigits = 8

// ForAttempts is the statement that releases attempts that could not be ended.
func ForAttempts(root string, attempts []string) string {
	ids := make([]string, 0, len(attempts))
	for _, id := range attempts {
		ids = append(ids, id[:IDDigits])
	}
	return fmt.Sprintf("I have looked at %s; what is left of %s stays.", lineOf(root), strings.Join(ids, " and "))
}

// ForRollback is the statement that releases a root in which a rollback could not be carried out. The
// ID is "" where it is not known.
func ForRollback(root, id string) string {
	return fmt.Sprintf("I have looked at %s; it stays as it is without %s.", lineOf(root), RollbackName(id))
}

// RollbackName is what that statement calls the rollback.
func RollbackName(id string) string {
	if id == "" {
		return "the rollback"
	}
	return "rollback " + id[:IDDigits]
}

// ForLoss is the statement that accepts the loss of so many records.
func ForLoss(root string, records int) string {
	number, of := strconv.Itoa(records), " records"
	for at := len(number) - 3; at > 0; at -= 3 {
		number = number[:at] + "," + number[at:]
	}
	if records == 1 {
		of = " record"
	}
	return fmt.Sprintf("I have looked at %s; what is lost of %s of it stays lost.", lineOf(root), number+of)
}

// Says reports whether a person has given such a statement: all of it, but for white space around it.
func Says(text, wanted string) bool { return strings.TrimSpace(text) == wanted }

// lineOf is the path of a root as a statement has it.
func lineOf(root string) string {
	if visible.Escape(root) != root {
		return strconv.QuoteToASCII(root)
	}
	return root
}
