package wallarooapi

import (
	"encoding/json"
	"os"
)

// Args are the command-line arguments of the application, after the name of the program. The runtime has removed its
// own options, except for --in and --out. Programs must not change Args.
//
// Source: Wallaroo 0.4 and 0.5, wallarooapi.Args. There, the last argument was an empty text, which Args does not have.
var Args = arguments(os.Getenv("WALLAROO_ARGS"))

// arguments returns the value of Args for the value of WALLAROO_ARGS, a JSON array by which the runtime passes
// arguments. If the value is empty, the program was started by hand or by a test, and its own arguments count. A value
// that is not a JSON array is reported when the program starts to serve.
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
