package wallarooapi

import (
	"encoding/json"
	"os"
)

// Args are a program name and the application's arguments: those that remain after the runtime has taken its own
// options. --in and --out stay visible. Programs read Args and must not change it.
//
// Source: Wallaroo 0.4 and 0.5, wallarooapi.Args. There the last argument was an empty text, which is left out here.
var Args = arguments(os.Getenv("WALLAROO_ARGS"))

// arguments reads the runtime's environment variable. Without the variable, the program was started by hand or by a
// test. A value that is not a JSON array is reported when the program starts to serve.
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
