package pathsafe

import "testing"

// TestSupport: the reported support is what was chosen.
func TestSupport(t *testing.T) {
	if err := CheckProc(); err != nil {
		t.Error(err)
	}
	_, kernel := chooseWalker().(kernelWalker)
	if err := CheckOpenat2(); (err == nil) != kernel {
		t.Errorf("%v, and the kernel walks: %v", err, kernel)
	}
}
