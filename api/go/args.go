package wallarooapi

import (
	"encoding/json"
	"os"
)

// Args are the application's arguments: a program name, then the arguments left over after the runtime took
// its own options. --in and --out stay visible. Programs read them and leave them alone.
//
// Source: Wallaroo 0.4 and 0.5, wallarooapi.Args; the empty text that stood last is gone.
var Args = arguments(os.Getenv("WALLAROO_ARGS"))

// arguments reads the variable of the runtime; without it the program was started by hand or by a test. What is not a JSON
// array is reported when the program starts to serve.
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
