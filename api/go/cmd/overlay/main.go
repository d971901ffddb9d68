// Command overlay prepares a user's program for `wallaroo build`. It writes changed copies of source files for
// `go build -overlay`, and prints on standard output, as JSON, how to build the program.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"wallarooapi/internal/overlay"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: overlay DIRECTORY INTO")
		os.Exit(2)
	}
	result, err := overlay.Prepare(os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
