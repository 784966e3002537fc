package pathsafe

import "testing"

// TestSupport: what is chosen once is what can be asked about.
func TestSupport(t *testing.T) {
	if err := CheckProc(); err != nil {
		t.Error(err)
	}
	_, kernel := chooseWalker().(kernelWalker)
	if err := CheckOpenat2(); (err == nil) != kernel {
		t.Errorf("%v, and the kernel walks: %v", err, kernel)
	}
}
