package review

import "io"

// pager runs a pager in the place of the review. It finds its terminal itself.
type pager struct{ run func() error }

func (p *pager) Run() error          { return p.run() }
func (p *pager) SetStdin(io.Reader)  {}
func (p *pager) SetStdout(io.Writer) {}
func (p *pager) SetStderr(io.Writer) {}
