package wallarooapi_test

import (
	"fmt"
	"time"

	wa "wallarooapi"
)

// A function of a timer can be tested alone.
func ExampleTimer() {
	closed := func(timer *wa.Timer, pages *[]string) string {
		timer.DeleteState()
		return fmt.Sprintf("%s %v %s", timer.Key, *pages, timer.At.Format(time.DateOnly))
	}
	timer := &wa.Timer{Name: "close", Key: []byte("ann"), At: time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)}
	fmt.Println(closed(timer, &[]string{"home"}), timer.DeletesState())
	// Output: ann [home] 2000-01-02 true
}
