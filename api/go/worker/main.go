// Package worker makes a program one that the runtime can start: new programs call Main from their own main.
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

	wa "wallarooapi"
	"wallarooapi/internal/launch"
	"wallarooapi/internal/trace"
)

// Application is the declaration of a setup: an *application.Application or a *stream.Application; or a library, an
// *application.Library or a *stream.Library.
type Application interface {
	comparable
	// ToJson ends the declaration and returns the topology document.
	ToJson() string
}

// Main declares the application and runs the mode that the runtime asks for: emit its topology, or host its computations. It
// does not return. setup runs once per process and gets the application's arguments without a program name; it must
// declare the same application for the same arguments. A panic of setup (T217) and a nil application (T201) are findings.
//
// The exit status is 0, 2 when the runtime did not start the program (W412), 3 when a worker's declaration has findings, else 1.
func Main[A Application](setup func(args []string) A) {
	os.Exit(launch.Run(trace.Name(setup), func() string {
		args := wa.Args
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

// MainJSON is Main for programs whose setup returns the text of ToJson, as Wallaroo's ApplicationSetup does. The
// main function that `wallaroo build` makes calls it. Another text is a finding (T201).
//
// Source: Wallaroo 0.4 and 0.5, ApplicationSetup.
func MainJSON(setup func() string) {
	os.Exit(launch.Run("ApplicationSetup", setup))
}
