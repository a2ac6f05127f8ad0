package compare_test

// A scenario is a row of the table: it writes one action, or two, and what happens to them.
type scenario struct {
	name  string
	write func(*writer)
	// mistake marks what an orchestrator must not do to Onceward. What follows is shown, and
	// isn't promised to be right.
	mistake bool
}

// faults are one thing that goes wrong each, or that is easily taken for a repeat.
var faults = []scenario{
	{name: "the answer is lost", write: lostAnswer},
	{name: "the process crashes after the effect", write: crash},
	{name: "the model rewords its arguments", write: reworded},
	{name: "the model adds a note", write: addedNote},
	{name: "two actions in one step, different amounts", write: func(w *writer) { twoActions(w, false) }},
	{name: "two actions in one step, the same amount", write: func(w *writer) { twoActions(w, true) }},
	{name: "another workflow tries it, in the same words", write: func(w *writer) { otherWorkflow(w, true) }},
	{name: "another workflow tries it, in its own words", write: func(w *writer) { otherWorkflow(w, false) }},
	{name: "two agents at once, in the same words", write: func(w *writer) { twoAgents(w, true) }},
	{name: "two agents at once, each in its own words", write: func(w *writer) { twoAgents(w, false) }},
}

// scenarios are the rows. Their order counts: it is part of the seeds.
var scenarios = append(faults[:len(faults):len(faults)],
	scenario{name: "several actions, all of it mixed", write: mixed},
	scenario{name: "a new id for every retry", write: newID, mistake: true},
	scenario{name: "one id for two actions, different amounts", write: func(w *writer) { oneID(w, false) }, mistake: true},
	scenario{name: "one id for two actions, the same amount", write: func(w *writer) { oneID(w, true) }, mistake: true},
)

// lostAnswer has a client that makes the same call again, to the letter, until it is
// answered.
func lostAnswer(w *writer) {
	c := w.write(w.another(), w.anyWords())
	for range 1 + w.random.IntN(3) {
		w.lost(c)
	}
	w.answered(c)
}

// crash has a framework that runs the step again from its checkpoint, with the arguments
// that it kept.
func crash(w *writer) {
	c := w.write(w.another(), w.anyWords())
	for range 1 + w.random.IntN(2) {
		w.crashed(c)
	}
	w.answered(c)
}

// reworded has a model that writes the call anew each time.
func reworded(w *writer) {
	a, in := w.another(), w.anyWords()
	w.forgotten(w.write(a, in))
	for range 1 + w.random.IntN(2) {
		in = w.otherWords(in)
		w.answered(w.write(a, in))
	}
}

// addedNote has a model that only adds to what it wrote before.
func addedNote(w *writer) {
	a, in := w.another(), words{}
	w.forgotten(w.write(a, in))
	in.note = w.anyWords().note
	w.answered(w.write(a, in))
}

// twoActions has an agent that gives two items' prices back in one step. Nothing is lost.
func twoActions(w *writer, sameAmount bool) {
	a := w.another()
	b := w.inStepOf(a, sameAmount)
	w.answered(w.write(a, words{}))
	w.answered(w.write(b, words{}))
}

// otherWorkflow has a second workflow that takes up the same business action: the customer
// wrote a mail and rang up as well.
func otherWorkflow(w *writer, sameWords bool) {
	a, in := w.another(), w.anyWords()
	w.forgotten(w.write(a, in))
	b := a
	b.workflow, b.step = w.workflow+"-phone", "settle_return"
	if !sameWords {
		in = w.otherWords(in)
	}
	w.answered(w.write(b, in))
}

// twoAgents has two workers that pick the same step up, and ask again later.
func twoAgents(w *writer, sameWords bool) {
	a, in := w.another(), w.anyWords()
	first, second := w.write(a, in), w.write(a, in)
	if !sameWords {
		second = w.write(a, w.otherWords(in))
	}
	w.atOnce(first, second)
	w.answered(first)
	w.answered(second)
}

// mixed is a case with several actions, each with a fault of its own.
func mixed(w *writer) {
	for range 2 + w.random.IntN(3) {
		faults[w.random.IntN(len(faults))].write(w)
	}
}

// newID has an orchestrator that makes an id up for each try.
func newID(w *writer) {
	a, in := w.another(), w.anyWords()
	w.lost(w.write(a, in))
	a.operation = w.id()
	w.answered(w.write(a, in))
}

// oneID has an orchestrator that gives two actions, in two steps, the same id.
func oneID(w *writer, sameAmount bool) {
	a := w.another()
	b := w.inStepOf(a, sameAmount)
	b.step, b.operation = a.step+"_again", a.operation
	w.answered(w.write(a, words{}))
	w.answered(w.write(b, words{}))
}
