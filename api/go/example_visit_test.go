package wallarooapi_test

import (
	"fmt"

	wa "wallarooapi"
)

// A visitor gets the visit. It deletes the state of the key with DeleteState.
func ExampleVisit() {
	visitor := func(visit *wa.Visit, votes *int) string {
		if *votes < 10 {
			visit.DeleteState()
		}
		return fmt.Sprintf("%s %d", visit.Key, *votes)
	}
	votes, visit := 3, &wa.Visit{Name: "reset", Key: []byte("small")}
	fmt.Println(visitor(visit, &votes), visit.DeletesState())
	// Output: small 3 true
}
