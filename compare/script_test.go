package compare_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/onceward/onceward/providers"
)

// A call is what reaches a server: what the model wrote, and what the orchestrator says
// beside it.
type call struct {
	arguments string // the model's JSON

	workflow  string // the case
	step      string // what is done in it
	operation string // the business's own id of the action

	action int // which of the run's actions it is; only the test knows
}

// A turn is a call, or several at once, and what becomes of the answer.
type turn struct {
	calls []call
	lost  fault // of the first request that acts
	crash bool  // the process dies between the effect and its record, and is started anew
}

// A script is one run: what happens, and what the business meant to happen.
type script struct {
	payment string
	amount  int64 // of the payment, in cents
	turns   []turn
	meant   map[int64]int // refunds by amount
}

// A writer makes a script from a seed. What it draws doesn't depend on who runs it.
type writer struct {
	script
	random   *rand.Rand
	workflow string
	actions  int
}

func newWriter(row, run int) *writer {
	w := &writer{random: rand.New(rand.NewPCG(uint64(row), uint64(run)))}
	w.workflow = fmt.Sprintf("case-%d-%d", row, run)
	w.payment = fmt.Sprintf("pay-%d-%d", row, run)
	w.amount = 1_000_000 // so that a second refund is never refused for want of money
	w.meant = map[int64]int{}
	return w
}

// An action is one that the business means to happen once.
type action struct {
	workflow, step, operation string
	cents                     int64
	number                    int
}

// another is a new action, in a step of its own, of an amount that no other action has.
func (w *writer) another() action {
	w.actions++
	a := action{workflow: w.workflow, step: fmt.Sprintf("refund_item_%d", w.actions), operation: w.id(), number: w.actions}
	for a.cents == 0 || w.meant[a.cents] > 0 {
		a.cents = 100 + w.random.Int64N(4900)
	}
	w.meant[a.cents]++
	return a
}

// id is one that the business gives to an action, such as a line of a return.
func (w *writer) id() string { return fmt.Sprintf("%s-return-%08x", w.workflow, w.random.Uint32()) }

// inStepOf is a new action in the step of another one.
func (w *writer) inStepOf(a action, sameAmount bool) action {
	b := w.another()
	b.step = a.step
	if sameAmount {
		w.meant[b.cents]--
		b.cents = a.cents
		w.meant[b.cents]++
	}
	return b
}

// notes are words for the same thing, as a model finds them.
var notes = []string{
	"Item arrived damaged", "The item arrived damaged.", "Customer reports a damaged item", "Damaged on arrival, customer wants money back",
	"Partial refund: damaged goods", "Refund for the damaged item, as agreed", "Beschädigte Ware", "Damage reported by customer in chat",
}

// words are what a model may write in one way or another.
type words struct {
	note  int  // 0: none; else one of notes, from 1
	short bool // "25.5" for "25.50"
}

// anyWords are those of one model's turn, with a note.
func (w *writer) anyWords() words { return words{1 + w.random.IntN(len(notes)), w.random.IntN(2) == 0} }

// otherWords mean the same, and have another note.
func (w *writer) otherWords(than words) words {
	other := w.anyWords()
	other.note = 1 + (than.note+w.random.IntN(len(notes)-1))%len(notes)
	return other
}

// write is a model's call for an action.
func (a action) write(payment string, in words) call {
	amount := providers.Money{Minor: a.cents, Currency: "USD"}.Decimal()
	if in.short && amount[len(amount)-1] == '0' {
		amount = amount[:len(amount)-1]
	}
	arguments := map[string]string{"payment_id": payment, "amount": amount, "currency": "USD"}
	if in.note > 0 {
		arguments["note"] = notes[in.note-1]
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // strings always marshal
	}
	return call{arguments: string(text), workflow: a.workflow, step: a.step, operation: a.operation, action: a.number}
}

func (w *writer) write(a action, in words) call { return a.write(w.payment, in) }

// answered is a call whose answer arrives.
func (w *writer) answered(c call) { w.turns = append(w.turns, turn{calls: []call{c}}) }

// lost is a call that acts and whose answer doesn't arrive.
func (w *writer) lost(c call) {
	f := hangUp
	if w.random.IntN(2) == 0 {
		f = cut
	}
	w.turns = append(w.turns, turn{calls: []call{c}, lost: f})
}

// crashed is a call whose process dies before it has written the result down.
func (w *writer) crashed(c call) {
	w.turns = append(w.turns, turn{calls: []call{c}, lost: hold, crash: true})
}

// forgotten is a call that the agent makes again, for one reason or another: it never
// heard the answer, its server died, or it was resumed from before the answer.
func (w *writer) forgotten(c call) {
	switch w.random.IntN(3) {
	case 0:
		w.lost(c)
	case 1:
		w.crashed(c)
	default:
		w.answered(c)
	}
}

// atOnce is two calls in the same moment, at two processes; the first answer may be lost.
func (w *writer) atOnce(a, b call) {
	f := none
	if w.random.IntN(3) == 0 {
		f = hangUp
	}
	w.turns = append(w.turns, turn{calls: []call{a, b}, lost: f})
}
