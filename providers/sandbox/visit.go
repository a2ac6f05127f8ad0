package sandbox

import (
	"bytes"
	"database/sql"
	"errors"
	"time"

	"github.com/onceward/onceward/ledger"
	"github.com/onceward/onceward/providers"
)

// A visit is one request inside its transaction.
type visit struct {
	*transaction
	options Options
	call    call
	now     time.Time // the provider's clock, read once

	remembered *record // what is known of the key; nil if nothing
}

// A record is what the provider remembers of a key.
type record struct {
	digest []byte
	failed bool // it answered with an error, and will again
	id     string
	state  ledger.State
	at     time.Time // when the request came
	doneAt time.Time // when it has acted
}

// serve applies the first fault that is due, or none.
func (v *visit) serve() (answer, error) {
	if err := v.remember(); err != nil {
		return answer{}, err
	}
	kind, err := v.nextFault()
	if err != nil {
		return answer{}, err
	}
	lost := answer{err: &providers.Error{Code: codeLost}}
	switch kind {
	case Unavailable:
		return answer{err: &providers.Error{Mark: providers.NotSent, Code: codeUnavailable}}, nil
	case LoseRequest:
		return lost, nil
	case Refuse:
		return answer{err: &providers.Error{Mark: providers.Refused, Code: codeRefused}}, nil
	case CrashBefore:
		return answer{kill: true}, nil
	case CachedError:
		return v.keepError()
	case KeyIgnored:
		id, err := v.effect(v.now)
		return v.accepted(id, ledger.Settled, false), err
	case PruneKey:
		v.remembered = nil // and the new request takes the record's place
		return v.handle(v.now, ledger.Settled)
	case ActLate:
		_, err := v.handle(v.now.Add(v.call.late), ledger.Settled)
		return answer{silent: true}, err
	case RejectLater:
		return v.rejectLater()
	case LoseReply, Hang, ServerError, InFlight, CrashAfter: // it acts first
	}
	answered, err := v.handle(v.now, ledger.Settled)
	switch kind {
	case LoseReply:
		answered = lost
	case Hang:
		answered = answer{silent: true}
	case ServerError:
		answered = answer{err: &providers.Error{Code: codeServerError}}
	case InFlight:
		answered = answer{err: &providers.Error{Mark: providers.InFlight, Code: codeInFlight}}
	case CrashAfter:
		answered = answer{kill: true}
	default:
	}
	return answered, err
}

// handle does what an honest provider does: it acts at the given time, unless it
// remembers the key.
func (v *visit) handle(at time.Time, state ledger.State) (answer, error) {
	if known := v.remembered; known != nil {
		return v.again(*known), nil
	}
	id, err := v.effect(at)
	if err != nil {
		return answer{}, err
	}
	if v.options.Idempotent {
		err = v.record(record{id: id, state: state, doneAt: at})
	}
	return v.accepted(id, state, false), err
}

// again answers a key that is remembered, and does nothing.
func (v *visit) again(known record) answer {
	switch {
	case v.options.Idempotent && !bytes.Equal(known.digest, v.call.digest[:]):
		return answer{err: &providers.Error{Mark: providers.KeyReused, Code: codeKeyReused}}
	case known.failed:
		return answer{err: &providers.Error{Code: codeServerError}}
	case v.now.Before(known.doneAt):
		return answer{err: &providers.Error{Mark: providers.InFlight, Code: codeInFlight}}
	}
	return v.accepted(known.id, known.state, true)
}

// keepError fails without acting and stays with that: a key whose request went well
// before is left alone.
func (v *visit) keepError() (answer, error) {
	failure := answer{err: &providers.Error{Code: codeServerError}}
	if v.remembered != nil {
		return failure, nil
	}
	return failure, v.record(record{failed: true, doneAt: v.now})
}

func (v *visit) rejectLater() (answer, error) {
	answered, err := v.handle(v.now, ledger.Accepted)
	if err != nil || answered.err != nil {
		return answered, err
	}
	answered.receipt.State = ledger.Accepted
	return answered, v.exec(sqlRejectEffect, answered.receipt.ProviderOperationID)
}

func (v *visit) accepted(id string, state ledger.State, replayed bool) answer {
	return answer{receipt: receipt(v.call.result, id, state, proof{Answer: "accepted", Replayed: replayed})}
}

var idPrefixes = map[string]string{
	providers.EmailSend:          "em_",
	providers.PaymentOrderCreate: "po_",
	providers.RefundCreate:       "re_",
}

// effect is the act itself.
func (v *visit) effect(at time.Time) (id string, err error) {
	id = randomID(idPrefixes[v.call.action])
	return id, v.exec(sqlAddEffect, v.call.action, v.call.key, id, at.UnixNano(), string(v.call.request))
}

func (v *visit) record(r record) error {
	return v.exec(sqlPutRecord, v.call.key, v.call.action, v.call.digest[:],
		r.failed, r.id, string(r.state), v.now.UnixNano(), r.doneAt.UnixNano())
}

// remember reads what is known of the key. A kept error is remembered for ever, also
// by a provider that has no idempotency: the fault is in the key itself.
func (v *visit) remember() error {
	var r record
	var at, doneAt int64
	err := v.row(sqlFindRecord, v.call.key, v.call.action).
		Scan(&r.digest, &r.failed, &r.id, &r.state, &at, &doneAt)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	r.at, r.doneAt = time.Unix(0, at), time.Unix(0, doneAt)
	forgotten := !v.options.Idempotent || !v.now.Before(r.at.Add(v.options.Window))
	if r.failed || !forgotten {
		v.remembered = &r
	}
	return nil
}

// nextFault chooses the first fault of the list that applies and has some of its
// count left, and spends it.
func (v *visit) nextFault() (FaultKind, error) {
	for place, f := range v.options.Faults {
		if f.Action != v.call.action || !v.applies(f.Kind) {
			continue
		}
		if f.Count == Always {
			return f.Kind, nil
		}
		var used int
		err := v.row(sqlUsedFault, place, f.String()).Scan(&used)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return "", err
		}
		if used < f.Count {
			return f.Kind, v.exec(sqlSpendFault, place, f.String())
		}
	}
	return "", nil
}

func (v *visit) applies(kind FaultKind) bool {
	if kind == KeyIgnored || kind == PruneKey {
		return v.options.Idempotent && v.remembered != nil
	}
	return true
}
