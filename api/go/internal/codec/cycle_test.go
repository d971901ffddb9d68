package codec

import (
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	wa "wallarooapi"
)

// node may contain itself: by a pointer, a slice, a map or an interface.
type node struct {
	Name   int
	Next   *node
	Nodes  []*node
	ByName map[string]*node
	Any    any
}

type (
	list []list
	tree map[string]tree
)

func init() {
	wa.RegisterType(node{})
	wa.RegisterType(list{})
	wa.RegisterType(tree{})
	gob.Register(&node{})
}

// FuzzCycles draws graphs. A graph with a cycle is refused, and any other is read back as it was.
func FuzzCycles(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 7))
		nodes := make([]*node, 1+random.IntN(6))
		for i := range nodes {
			nodes[i] = &node{Name: i + 1}
		}
		edges := map[[2]int]bool{}
		for range random.IntN(2 * len(nodes)) {
			from, to := random.IntN(len(nodes)), random.IntN(len(nodes))
			edges[[2]int{from, to}] = true
			switch of := nodes[from]; random.IntN(4) {
			case 0:
				of.Nodes = append(of.Nodes, nodes[to])
			case 1:
				of.ByName = map[string]*node{"a": nodes[to]}
			case 2:
				of.Any = nodes[to]
			default:
				of.Next = nodes[to]
			}
		}
		_, err := NewEncoder().Append(nil, nodes[0])
		if err == nil {
			if got := copied(t, NewEncoder(), NewDecoder(), nodes[0]); !reflect.DeepEqual(got, nodes[0]) {
				t.Errorf("%+v came back as %+v", nodes[0], got)
			}
		} else if !strings.Contains(err.Error(), "it has a cycle") || !hasCycle(edges, 0, nil) {
			t.Error(err)
		}
	})
}

// hasCycle reports whether a path along the edges from a node reaches a node twice.
func hasCycle(edges map[[2]int]bool, from int, path []int) bool {
	for _, before := range path {
		if before == from {
			return true
		}
	}
	for edge := range edges {
		if edge[0] == from && hasCycle(edges, edge[1], append(path, from)) {
			return true
		}
	}
	return false
}

func TestValuesThatHaveThemselvesInThem(t *testing.T) {
	ring, round := &node{}, list{nil}
	ring.Next, round[0] = ring, round
	forest := tree{}
	forest["a"] = forest
	for _, value := range []any{ring, round, forest, node{Any: ring}} {
		if _, err := NewEncoder().Append(nil, value); err == nil || !strings.Contains(err.Error(), "leads back to itself") {
			t.Errorf("%T: %v", value, err)
		}
	}
}

func TestAChainIsNoCycle(t *testing.T) {
	first := &node{}
	for range 5 * usualDepth {
		first = &node{Next: first, Name: 1}
	}
	if _, err := NewEncoder().Append(nil, first); err != nil {
		t.Error(err)
	}
}

type (
	halfGob      struct{ n int }
	halfBinary   struct{ n int }
	mixedMethods struct{}
)

func (h halfGob) GobEncode() ([]byte, error)           { return []byte{byte(h.n)}, nil }
func (h *halfBinary) UnmarshalBinary(b []byte) error   { h.n = len(b); return nil }
func (m mixedMethods) GobEncode() ([]byte, error)      { return nil, nil }
func (m *mixedMethods) UnmarshalBinary(b []byte) error { return nil }

func TestTypesThatCannotBeReadAreRefused(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{halfGob{}, "has GobEncode and no GobDecode"},
		{struct{ Part []*halfGob }{}, "has GobEncode and no GobDecode"},
		{halfBinary{}, "has UnmarshalBinary and no MarshalBinary"},
		{mixedMethods{}, "has GobEncode and no GobDecode"},
		{new(*int), "is a pointer to a pointer"},
	} {
		if err := CheckType(reflect.TypeOf(test.value)); err == nil || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%T: %v", test.value, err)
		}
	}
}
