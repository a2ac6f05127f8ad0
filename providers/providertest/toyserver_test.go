package providertest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/onceward/onceward/providers/providertest"
)

const (
	toySecret = "toy-secret-planted"
	toyNote   = "Erika Mustermann's blender broke"
)

// A toyServer is the toy's other side.
type toyServer struct {
	forgetful bool // it knows no keys

	mu      sync.Mutex
	refunds []toyRefund
	effects []string
	keys    map[string]int // to the index of the refund
	hidden  bool
}

func (s *toyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("X-Api-Key") != toySecret {
		http.Error(w, "toy error: unknown_key", http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		s.create(w, r)
		return
	}
	const perPage = 3
	var mine []toyRefund
	for _, refund := range slices.Backward(s.refunds) {
		if refund.Payment == r.URL.Query().Get("payment") && !(s.hidden && slices.Contains(s.effects, refund.ID)) {
			mine = append(mine, refund)
		}
	}
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from, to := min(page*perPage, len(mine)), min(page*perPage+perPage, len(mine))
	json.NewEncoder(w).Encode(map[string]any{"refunds": append([]toyRefund{}, mine[from:to]...), "more": to < len(mine)})
}

func (s *toyServer) create(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var wanted toyRefund
	if json.Unmarshal(body, &wanted) != nil {
		http.Error(w, "toy error: invalid", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("X-Toy-Key")
	i, known := s.keys[key]
	switch {
	case known && s.refunds[i].Minor != wanted.Minor:
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, "toy error: key_reused")
		return
	case !known:
		i = s.add(wanted)
		s.effects = append(s.effects, s.refunds[i].ID)
		if key != "" && !s.forgetful {
			s.keys[key] = i
		}
	}
	json.NewEncoder(w).Encode(s.refunds[i])
}

func (s *toyServer) add(r toyRefund) int {
	r.ID, r.Status = fmt.Sprintf("toy_%d", len(s.refunds)+1), "done"
	s.refunds = append(s.refunds, r)
	return len(s.refunds) - 1
}

func (s *toyServer) fake(*testing.T) providertest.Fake {
	s.keys = map[string]int{}
	locked := func(do func()) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			do()
		}
	}
	last := func() *toyRefund { return &s.refunds[len(s.refunds)-1] }
	return providertest.Fake{
		Handler: s,
		Effects: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Clone(s.effects)
		},
		Forget: locked(func() { s.keys = map[string]int{} }),
		Hide:   func(hidden bool) { locked(func() { s.hidden = hidden })() },
		Crowd: locked(func() {
			for range 5 {
				s.add(toyRefund{Reference: "another", Payment: toyRefundArguments.PaymentID, Minor: 17, Currency: "USD"})
			}
		}),
		Double: locked(func() { s.add(*last()) }),
		Alter:  locked(func() { last().Minor = 1 }),
		Reject: locked(func() { last().Status = "rejected" }),
	}
}
