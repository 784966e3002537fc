package machine_test

import (
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
)

func TestUserText(t *testing.T) {
	for uid, want := range map[int]string{0: "user root (0)", 4_241_999: "user 4241999", -1: "an unknown user"} {
		if got := machine.UserText(uid); got != want {
			t.Errorf("%d: %q, want %q", uid, got, want)
		}
	}
}
