// Package worker has the function Main, which a program calls in its main function. The runtime starts the program and
// requests work from Main.
//
//	func main() { worker.Main(setup) }
//
//	func setup(args []string) *application.Application {
//		a := application.MakeApplication("Reverse Word")
//		...
//		return a
//	}
package worker

import (
	"os"
	"slices"

	wa "wallarooapi"
	"wallarooapi/internal/trace"
	"wallarooapi/internal/workermain"
)

// Application is the result of a setup function: an *application.Application, a *stream.Application, or a
// *stream.Library.
type Application interface {
	comparable
	// ToJson ends the declaration and returns the topology document, a JSON text.
	ToJson() string
}

// Main calls setup and does the work that the runtime requests: it writes the topology, or it runs the functions of the
// application as a worker. Main does not return. setup runs once per process and gets the arguments of the application,
// without a program name. For the same arguments it must declare the same application. A panic of setup (T217) and a
// nil application (T201) are reported as findings.
//
// The exit status is 0 on success, 2 if the runtime did not start the program (W412), 3 if the declaration in a worker
// has findings, and 1 for other failures.
func Main[A Application](setup func(args []string) A) {
	os.Exit(workermain.Run(trace.Name(setup), func() string {
		args := slices.Clone(wa.Args) // which go into the topology, and setup may change its own
		if len(args) > 0 {
			args = args[1:]
		}
		var none A
		declared := setup(args)
		if declared == none {
			return "nil"
		}
		return declared.ToJson()
	}))
}

// MainJSON is Main for programs whose setup returns the text of ToJson, as Wallaroo's ApplicationSetup does. The main
// function made by `wallaroo build` calls it. Any other text is reported as a finding (T201).
//
// Source: Wallaroo 0.4 and 0.5, ApplicationSetup.
func MainJSON(setup func() string) {
	os.Exit(workermain.Run("ApplicationSetup", setup))
}
