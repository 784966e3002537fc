package gitbase

// SetMaxFiles changes how many files a commit may have, and returns how many that were.
func SetMaxFiles(n int) (before int) {
	before, maxFiles = maxFiles, n
	return before
}
