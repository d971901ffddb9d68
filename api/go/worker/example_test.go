package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"wallarooapi/application"
	"wallarooapi/internal/testdata/example"
	"wallarooapi/worker"
)

func setup(args []string) *application.Application {
	port := "7010"
	if len(args) > 0 {
		port, args[0] = args[0], "taken" // the arguments of setup are its own
	}
	app := application.MakeApplication("Words")
	app.NewPipeline("Words", application.MakeTCPSourceConfig("127.0.0.1", port, example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(example.CountWords{}, example.TotalsBuilder{}, "totals", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", example.CountEncoder{}))
	return app
}

// The runtime starts the program, here to write its topology. The function in braces is the main function of the
// program.
func ExampleMain() {
	document := emitted("ExampleMain", func() { worker.Main(setup) })
	example.Show(document, "sources", "name", "port")
	var described struct{ Workers []struct{ Args []string } }
	failed(json.Unmarshal([]byte(document), &described))
	fmt.Println(described.Workers[0].Args)
	example.Show(document, "steps", "name", "inputs")
	// Output:
	// Words 7020
	// [7020]
	// split [0/sources/0]
	// count [0/steps/0]
}

// A program for Wallaroo 0.4 or 0.5 has an ApplicationSetup, which returns the text of ToJson.
func ExampleMainJSON() {
	document := emitted("ExampleMainJSON", func() { worker.MainJSON(func() string { return setup(nil).ToJson() }) })
	example.Show(document, "steps", "name", "inputs")
	// Output:
	// split [0/sources/0]
	// count [0/steps/0]
}

// emitted runs an example again in another process, which calls main with the argument 7020. It returns the topology.
func emitted(name string, main func()) string {
	if os.Getenv("WALLAROO_MODE") != "" {
		main() // does not return
	}
	folder, err := os.MkdirTemp("", "emitted")
	failed(err)
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "topology.json")
	within, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	command := exec.CommandContext(within, os.Args[0], "-test.run=^"+name+"$")
	command.Env = append(os.Environ(), "WALLAROO_MODE=emit", "WALLAROO_EMIT_FILE="+file, `WALLAROO_ARGS=["7020"]`, "GORACE=atexit_sleep_ms=0")
	failed(command.Run())
	text, err := os.ReadFile(file)
	failed(err)
	var result struct{ Topology json.RawMessage }
	failed(json.Unmarshal(text, &result))
	return string(result.Topology)
}

func failed(err error) {
	if err != nil {
		panic(err)
	}
}
