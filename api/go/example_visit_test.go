package wallarooapi_test

import (
	"fmt"

	wa "wallarooapi"
)

// votes counts votes; the visit "reset" deletes those of small parties.
type votes struct{}

func (votes) Name() string     { return "votes" }
func (votes) Visits() []string { return []string{"reset"} }

func (votes) Compute(data interface{}, state interface{}) (interface{}, bool) {
	*state.(*int) += data.(int)
	return nil, true
}

func (votes) Visit(visit *wa.Visit, state interface{}) (interface{}, bool) {
	if *state.(*int) < 10 {
		visit.DeleteState()
	}
	return fmt.Sprintf("%s %d", visit.Key, *state.(*int)), false
}

// manyVotes gives any number of messages.
type manyVotes struct{ votes }

func (manyVotes) Compute(data interface{}, state interface{}) ([]interface{}, bool) { return nil, true }

func (manyVotes) Visit(visit *wa.Visit, state interface{}) ([]interface{}, bool) {
	return []interface{}{string(visit.Key), *state.(*int)}, false
}

func ExampleStateVisitor() {
	var visitor wa.StateVisitor = votes{}
	number := 3
	visit := &wa.Visit{Name: "reset", Key: []byte("small")}
	result, persist := visitor.Visit(visit, &number)
	fmt.Println(result, persist, visit.DeletesState())
	// Output: small 3 false true
}

func ExampleStateVisitorMulti() {
	var visitor wa.StateVisitorMulti = manyVotes{}
	number := 30
	results, _ := visitor.Visit(&wa.Visit{Name: "reset", Key: []byte("large")}, &number)
	fmt.Println(results)
	// Output: [large 30]
}

func ExampleWithVisits() {
	var visited wa.WithVisits = votes{}
	fmt.Println(visited.Visits())
	// Output: [reset]
}
