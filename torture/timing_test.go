package torture

import (
	"sync"
	"testing/synctest"
	"time"
)

// A bubble is the clock of a testing/synctest bubble: it moves on by itself when everybody
// waits.
type bubble struct{ work sync.WaitGroup }

func (b *bubble) now() time.Time        { return time.Now() }
func (b *bubble) sleep(d time.Duration) { <-time.After(d) }
func (b *bubble) run(work func())       { b.work.Go(work) }

func (b *bubble) pass(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
	synctest.Wait()
}

func (b *bubble) await(done <-chan struct{}) { <-done }
func (b *bubble) finish()                    { b.work.Wait() }
