package wallarooapi

import (
	"encoding/json"
	"os"
)

// Args contains the name of the program, followed by the command-line arguments of the application. The runtime has
// removed its own options, except for --in and --out. Programs must not change Args.
//
// Source: Wallaroo 0.4 and 0.5, wallarooapi.Args. There, the last argument was an empty text, which Args does not have.
var Args = arguments(os.Getenv("WALLAROO_ARGS"))

// arguments returns the value of Args. text is the variable WALLAROO_ARGS, a JSON array in which the runtime passes
// arguments. If text is empty, the program was started by hand or by a test, and Args has the arguments of the process.
// If text is not a JSON array, the program reports this when it starts to serve.
func arguments(text string) []string {
	if text == "" {
		return append([]string(nil), os.Args...)
	}
	args := []string{os.Args[0]}
	var given []string
	if json.Unmarshal([]byte(text), &given) == nil {
		args = append(args, given...)
	}
	return args
}
