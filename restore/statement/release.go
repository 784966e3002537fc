package statement

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
)

// The statements that release a halted restore root, or accept a loss (rollback contract, sections 7.1 and
// 12), name the root and its state, so that each fits no other state. A statement is one line of text for any
// name of the root.

// IDDigits is the number of digits of an ID in such a statement.
const IDDigits = 8

// ForAttempts returns the statement that releases attempts that could not be ended.
func ForAttempts(root string, attempts []string) string {
	ids := make([]string, 0, len(attempts))
	for _, id := range attempts {
		ids = append(ids, id[:IDDigits])
	}
	return fmt.Sprintf("I have looked at %s; what is left of %s stays.", lineOf(root), strings.Join(ids, " and "))
}

// ForRollback returns the statement that releases a root in which a rollback failed. The ID is "" if it is
// unknown.
func ForRollback(root, id string) string {
	return fmt.Sprintf("I have looked at %s; it stays as it is without %s.", lineOf(root), RollbackName(id))
}

// RollbackName returns the name of the rollback in that statement.
func RollbackName(id string) string {
	if id == "" {
		return "the rollback"
	}
	return "rollback " + id[:IDDigits]
}

// ForLoss returns the statement that accepts the loss of a number of records.
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

// Says reports whether a text is such a statement, without regard to white space around it.
func Says(text, wanted string) bool { return strings.TrimSpace(text) == wanted }

// lineOf returns the path of a root as one line of a statement.
func lineOf(root string) string {
	if visible.Escape(root) != root {
		return strconv.QuoteToASCII(root)
	}
	return root
}
