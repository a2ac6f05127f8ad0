package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onceward/onceward/ledger"
)

// Bugs that the explorer plants in its children, to see that it notices them.
const (
	bugTellsEarly   = "acknowledged before the commit"
	bugRunsAgain    = "an expired lease is run again"
	bugActsFirst    = "the effect comes before the claim"
	bugFailsOnDoubt = "an error that proves nothing is a failure"
)

// plant changes an office so that it has the bug. finish waits for what the bug left behind.
func (c crashScript) plant(o *office) (finish func(), err error) {
	finish = func() {}
	switch c.Bug {
	case "":
	case bugTellsEarly:
		early := &tellsEarly{Store: o.ledger.Store}
		o.ledger.Store, finish = early, early.pending.Wait
	case bugRunsAgain:
		o.ledger.Store = runsAgain{o.ledger.Store}
	case bugActsFirst:
		o.ledger.Store = actsFirst{Store: o.ledger.Store, actors: o.ledger.Actors, sealer: o.ledger.Sealer, acted: new(sync.Once)}
	case bugFailsOnDoubt:
		for action, actor := range o.ledger.Actors {
			apply := actor.Apply
			actor.Apply = func(ctx context.Context, a ledger.Attempt) ledger.Finding {
				f := apply(ctx, a)
				if f.Verdict == ledger.Unclear {
					f.Verdict = ledger.Refused
				}
				return f
			}
			o.ledger.Actors[action] = actor
		}
	default:
		return finish, fmt.Errorf("there is no bug %q", c.Bug)
	}
	return finish, nil
}

// tellsEarly says that a move is recorded before it is.
type tellsEarly struct {
	ledger.Store
	pending sync.WaitGroup
}

func (s *tellsEarly) Record(ctx context.Context, m ledger.Move) error {
	s.pending.Go(func() { _ = s.Store.Record(context.WithoutCancel(ctx), m) })
	return nil
}

// runsAgain takes an operation whose lease is over for one that was never sent.
type runsAgain struct{ ledger.Store }

func (s runsAgain) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	found, err := s.Find(ctx, ledger.Filter{Key: sought.Key})
	if err != nil {
		return err
	}
	for _, op := range found {
		now := time.Now().UTC().Truncate(time.Microsecond)
		if op.Status != ledger.Executing || now.Before(op.LeaseUntil) {
			continue
		}
		m, err := op.Postpone(now, "lease_expired", now, now.Add(time.Hour), ledger.Note{Actor: "bug", Reason: "not_sent"})
		if err != nil {
			return err
		}
		if err := s.Record(ctx, m); err != nil {
			return err
		}
	}
	return s.Store.Begin(ctx, sought, decide)
}

// actsFirst has the provider act while the claim isn't durable yet.
type actsFirst struct {
	ledger.Store
	actors map[string]ledger.Actor
	sealer *ledger.Sealer
	acted  *sync.Once
}

func (s actsFirst) Begin(ctx context.Context, sought ledger.Sought, decide func(ledger.Found) (ledger.Move, error)) error {
	return s.Store.Begin(ctx, sought, func(found ledger.Found) (ledger.Move, error) {
		m, err := decide(found)
		if err != nil || !m.Inserts() {
			return m, err
		}
		s.acted.Do(func() {
			op := m.To()
			payload, _ := s.sealer.Open(op.Key, m.Seal())
			s.actors[op.Action].Apply(ctx, ledger.Attempt{
				OperationID: op.ID, Number: 1, ProviderKey: op.ProviderKey, Payload: payload, MaySend: func() error { return nil },
			})
		})
		return m, err
	})
}
