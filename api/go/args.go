package wallarooapi

import (
	"encoding/json"
	"os"
)

// Args are a program name and the arguments of the application. The runtime has removed its own options, except for
// --in and --out. Programs must not change Args.
//
// Source: Wallaroo 0.4 and 0.5, wallarooapi.Args. There, the last argument was an empty text, which Args does not have.
var Args = arguments(os.Getenv("WALLAROO_ARGS"))

// arguments parses the value of WALLAROO_ARGS. If the value is empty, the program was started by hand or by a test, and
// its own arguments count. A value that is not a JSON array is reported when the program starts to serve.
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
