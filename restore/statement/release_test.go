package statement_test

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/statement"
)

// TestReleaseIsOneLine: whatever the root is called, the statement is text that can be typed, and that
// no other root and no other statement has.
func TestReleaseIsOneLine(t *testing.T) {
	attempts := []string{"11111111-2222-4333-8444-555555555555", "aaaaaaaa-2222-4333-8444-555555555555"}
	seen := map[string]string{}
	for _, root := range []string{"/r", "/a b", "/it's", "/a\nb", `/a\nb`, "/\xff", "/\ufffd", "/\x1b[2J", "/\u202e", `"/a"`} {
		for said, end := range map[string]string{
			statement.ForAttempts(root, attempts):     "; what is left of 11111111 and aaaaaaaa stays.",
			statement.ForAttempts(root, attempts[:1]): "; what is left of 11111111 stays.",
			statement.ForRollback(root, attempts[0]):  "; it stays as it is without rollback 11111111.",
			statement.ForRollback(root, ""):           "; it stays as it is without the rollback.",
			statement.ForLoss(root, 1):                "; what is lost of 1 record of it stays lost.",
			statement.ForLoss(root, 1234567):          "; what is lost of 1,234,567 records of it stays lost.",
		} {
			if visible.Escape(said) != said || !strings.HasPrefix(said, "I have looked at ") || !strings.HasSuffix(said, end) {
				t.Errorf("%q: %q, want its end to be %q", root, said, end)
			}
			if before, known := seen[said]; known {
				t.Errorf("%q and %q have the same", before, root)
			}
			seen[said] = root
			if root == "/a b" && !strings.HasPrefix(said, "I have looked at /a b; ") {
				t.Errorf("%q", said)
			}
			if !statement.Says(" "+said+"\n", said) || statement.Says(said+".", said) || statement.Says(strings.ToLower(said), said) || statement.Says("", said) {
				t.Errorf("%q is not matched as a whole", said)
			}
		}
	}
}
