package ledger_test

import (
	"context"
	"sync"
	"testing/synctest"

	"github.com/onceward/onceward/ledger"
)

// A result is what one of many calls got.
type result struct {
	answer ledger.Answer
	err    error
}

// gather makes calls at the same time, once the first of them is at the provider.
func (w *world) gather(n int, servers []*server, arrived <-chan struct{}, ctx context.Context, r func(i int) ledger.Request) (wait func() []result) {
	results := make([]result, n)
	var wg sync.WaitGroup
	for i := range n {
		if i == 1 {
			<-arrived
		}
		wg.Go(func() { results[i].answer, results[i].err = servers[i%len(servers)].Execute(ctx, r(i)) })
	}
	synctest.Wait()
	return func() []result { wg.Wait(); return results }
}
