package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/onceward/onceward/providers/sandbox"
)

// cannotAsk is the story that only a person can end: what happened can be seen in the
// provider's own books, and nowhere else.
func cannotAsk(ctx context.Context, a *act) error {
	server, err := a.server(ctx, "--no-sandbox-lookup", "--no-sandbox-idempotent", "--sandbox-faults", "payment_order.create:lose-reply")
	if err != nil {
		return err
	}
	order := paymentCall("case-2201", "pay_supplier", "invoice-2201", "1250.00")
	a.out.intent(order)
	for range 2 {
		if err := a.call(ctx, server, order, told{Status: "unknown", Review: true}); err != nil {
			return err
		}
	}
	if err := a.decide(ctx); err != nil {
		return err
	}
	return a.call(ctx, server, order, told{Status: "succeeded", Replayed: true})
}

// decide is the person: sees what asks for a review, looks into the provider's books, and
// says what happened.
func (a *act) decide(ctx context.Context) error {
	open, err := a.operations(ctx, "--review")
	if err != nil {
		return err
	}
	a.out.command("operations", "list", "--review")
	if len(open) != 1 {
		return fmt.Errorf("%s asks for a review, promised is 1", countOf(len(open), "operation"))
	}
	op := open[0]
	a.out.detail(fmt.Sprintf("%s  %s  %s", op.OperationID, op.ActionType, op.Status))
	a.out.detail(fmt.Sprintf("attempts: %d  needs review: %s", op.AttemptCount, orEmpty(op.ReviewReason)))

	effects, err := a.effects(ctx)
	if err != nil {
		return err
	}
	a.out.command("sandbox", "effects")
	booked, err := bookedFor(effects, op)
	if err != nil {
		return err
	}
	a.out.detail(effectText(booked, "business_reference"))

	decision := []string{
		"operations", "resolve", op.OperationID, "--happened", "--provider-operation-id", booked.ProviderOperationID,
		"--attempt", strconv.Itoa(op.AttemptCount), "--by", "grace", "--reason", "seen in the provider's books",
	}
	a.out.command(decision...)
	_, err = a.command(ctx, decision...)
	return err
}

// bookedFor finds the operation in the provider's books, by the key it was sent with.
func bookedFor(effects []sandbox.Effect, op row) (sandbox.Effect, error) {
	for _, effect := range effects {
		if effect.ProviderKey == orEmpty(op.ProviderKey) {
			return effect, nil
		}
	}
	return sandbox.Effect{}, fmt.Errorf("the sandbox's journal has nothing for operation %s", op.OperationID)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
