package staging

import "github.com/spectrumfs/spectrum/pathsafe"

// A cache keeps the directory beneath base that was opened last: files come in path order, so
// the next one is usually in the same directory. It is not safe for concurrent use.
type cache struct {
	base dir
	path pathsafe.Path
	at   dir
}

// open returns the directory p beneath base, or base itself for the zero path. The cache owns
// the result, which is valid until the next open.
func (c *cache) open(p pathsafe.Path) (dir, error) {
	if p == (pathsafe.Path{}) {
		return c.base, nil
	}
	if c.at.H != nil && p == c.path {
		return c.at, nil
	}
	c.close()
	at, err := c.base.open(p)
	if err != nil {
		return dir{}, err
	}
	c.path, c.at = p, at
	return at, nil
}

func (c *cache) close() {
	c.at.Close()
	c.at = dir{}
}
