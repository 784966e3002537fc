package suite

import (
	"context"
	"runtime"
	"sync"
)

// RunAll runs cases side by side, and tells of each, in their order, what is
// wrong with it, or nil. It returns how many commands were carried out.
func (r *Runner) RunAll(ctx context.Context, cases []Case, tell func(Case, error)) (commands int) {
	results := make([]error, len(cases))
	done := make([]chan struct{}, len(cases))
	for i := range done {
		done[i] = make(chan struct{})
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) { // most of the time goes to syncs
		workers.Go(func() {
			for i := range next {
				results[i] = r.Run(ctx, cases[i])
				close(done[i])
			}
		})
	}
	go func() {
		for i := range cases {
			next <- i
		}
		close(next)
	}()
	for i, c := range cases {
		<-done[i]
		commands += len(c.Commands)
		tell(c, results[i])
	}
	workers.Wait()
	return commands
}
