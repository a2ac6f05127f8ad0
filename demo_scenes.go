package main

import (
	"context"
	"errors"
	"time"
)

// scenes are the stories, in the order in which they are told.
func scenes() []scene {
	return []scene{{
		title:   "The reply is lost",
		trouble: "The mail is sent, and the reply never arrives. The model rewords the subject and tries again.",
		proof:   "subject", calls: 2, play: replyLost,
	}, {
		title:   "The process is killed",
		trouble: "The refund is made, and the server is killed before it can write that down.",
		proof:   "amount", calls: 2, play: processKilled,
	}, {
		title:   "The amount changes",
		trouble: "The model repeats the refund with another amount. That is no repeat.",
		proof:   "amount", calls: 2, play: amountChanged,
	}, {
		title:   "Two clients at once",
		trouble: "Two server processes share one ledger, and both clients order the same payment at once.",
		proof:   "business_reference", calls: 2, play: twoAtOnce,
	}, {
		title:   "A provider that can't be asked",
		trouble: "The reply is lost, and this provider knows neither keys nor look-ups. A person decides.",
		proof:   "business_reference", calls: 3, play: cannotAsk,
	}}
}

func replyLost(ctx context.Context, a *act) error {
	server, err := a.server(ctx, "--sandbox-faults", "email.send:lose-reply")
	if err != nil {
		return err
	}
	mail := demoCall{
		tool:   "email_send",
		intent: stepIntent("case-1842", "send_approval_notice", "application-731"),
		arguments: []member{
			{name: "to", value: []string{"ada@example.com"}},
			{name: "subject", value: "Your application is approved"},
			{name: "body", value: "Dear Ada, your application 731 is approved.", quiet: true},
		},
	}
	a.out.intent(mail)
	if err := a.call(ctx, server, mail, told{Status: "unknown"}); err != nil {
		return err
	}
	reworded := mail.with("subject", "Good news about your application")
	return a.call(ctx, server, reworded, told{Status: "succeeded", Replayed: true, Ignored: []string{"subject"}})
}

func processKilled(ctx context.Context, a *act) error {
	// A short lease: the new server may look only when the killed one's turn is over.
	short := []string{"--sandbox-deadline", "500ms", "--sandbox-lease", "1500ms"}
	server, err := a.server(ctx, append(short, "--sandbox-faults", "refund:crash-after")...)
	if err != nil {
		return err
	}
	refund := refundCall("refund_request_8812_1", "pay_8812", "100.00")
	a.out.intent(refund)
	if err := a.lose(ctx, server, refund); err != nil {
		return err
	}
	a.out.say("server", "a new process starts on the same ledger")
	next, err := a.server(ctx, short...)
	if err != nil {
		return err
	}
	return a.call(ctx, next, refund, told{Status: "succeeded", Replayed: true})
}

func amountChanged(ctx context.Context, a *act) error {
	server, err := a.server(ctx)
	if err != nil {
		return err
	}
	refund := refundCall("refund_request_9027_1", "pay_9027", "100.00")
	a.out.intent(refund)
	if err := a.call(ctx, server, refund, told{Status: "succeeded"}); err != nil {
		return err
	}
	return a.call(ctx, server, refund.with("amount", "900.00"),
		told{Status: "refused", Code: "operation_conflict", Fields: []string{"amount"}})
}

func twoAtOnce(ctx context.Context, a *act) error {
	var servers [2]*demoClient
	for i := range servers {
		var err error
		if servers[i], err = a.server(ctx); err != nil {
			return err
		}
	}
	order := paymentCall("case-2044", "pay_supplier", "invoice-2044", "480.00")
	a.out.intent(order)
	a.out.call("both", order)
	replies, err := together(ctx, servers, order)
	if err != nil {
		return err
	}
	a.calls += len(servers)
	replayed := replies[0].Replayed
	a.heard("client 1", replies[0], told{Status: "succeeded", Replayed: replayed})
	a.heard("client 2", replies[1], told{Status: "succeeded", Replayed: !replayed})
	return nil
}

// together makes the same call through both servers at the same moment.
func together(ctx context.Context, servers [2]*demoClient, call demoCall) (replies [2]demoReply, err error) {
	var errs [2]error
	start, done := make(chan struct{}), make(chan struct{})
	for i, server := range servers {
		go func() {
			<-start
			replies[i], errs[i] = server.call(ctx, call)
			done <- struct{}{}
		}()
	}
	close(start)
	<-done
	<-done
	return replies, errors.Join(errs[:]...)
}

// worthTelling is how long an answer takes before the wait is part of the story.
const worthTelling = 300 * time.Millisecond

func stepIntent(workflow, step, object string) []member {
	return []member{{name: "workflow_id", value: workflow}, {name: "step", value: step}, {name: "business_object", value: object}}
}

func refundCall(id, payment, amount string) demoCall {
	return demoCall{
		tool:   "refund",
		intent: []member{{name: "business_operation_id", value: id}},
		arguments: []member{
			{name: "payment_id", value: payment}, {name: "amount", value: amount}, {name: "currency", value: "EUR"},
			{name: "reason", value: "requested_by_customer", quiet: true},
		},
	}
}

func paymentCall(workflow, name, invoice, amount string) demoCall {
	return demoCall{
		tool:   "payment_order_create",
		intent: stepIntent(workflow, name, invoice),
		arguments: []member{
			{name: "debit_account", value: "DE89370400440532013000", quiet: true},
			{name: "payee_account", value: "GB82WEST12345698765432", quiet: true},
			{name: "payee_name", value: "Example Supplies", quiet: true},
			{name: "amount", value: amount}, {name: "currency", value: "EUR"},
			{name: "business_reference", value: invoice},
		},
	}
}
