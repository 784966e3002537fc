package commit

import "github.com/spectrumfs/spectrum/pathsafe"

// Check is what a commit asks first: whether the root that was entered is dir.
func Check(in *Root, dir *pathsafe.Dir) error { return in.check(dir) }
