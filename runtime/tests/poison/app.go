// A count per key that every message can spoil: `KEY ACTION` where the action says how; README.md lists them.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	app "wallarooapi/application"
	"wallarooapi/worker"
)

func main() { worker.Main(setup) }

func setup(args []string) *app.Application {
	a := app.MakeApplication("Poison")
	a.NewPipeline("poison", app.MakeTCPSourceConfig("127.0.0.1", "0", &Decoder{})).
		ToMulti(&CheckBuilder{}).
		ToStatePartition(&Add{}, &CountBuilder{}, "counts", &Key{}).
		ToSink(app.MakeTCPSinkConfig("127.0.0.1", "1", &Encoder{}))
	return a
}

// Count is the state of one key.
type Count struct {
	Value  int
	Poison string
}

// GobEncode writes a state, unless that is what ends the worker.
func (c *Count) GobEncode() ([]byte, error) {
	die(c.Poison, "save")
	return fmt.Appendf(nil, "%d %s", c.Value, c.Poison), nil
}

// GobDecode reads a state, unless that is what ends the worker.
func (c *Count) GobDecode(data []byte) error {
	number, poison, _ := strings.Cut(string(data), " ")
	value, err := strconv.Atoi(number)
	*c = Count{value, poison}
	die(poison, "load")
	return err
}

type CountBuilder struct{}

func (*CountBuilder) Build() interface{} { return &Count{} }

type Decoder struct{}

func (*Decoder) HeaderLength() uint64 { return 4 }

func (*Decoder) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

func (*Decoder) Decode(b []byte) interface{} {
	if !utf8.Valid(b) {
		panic("not UTF-8")
	}
	return string(b)
}

func die(action, place string) {
	switch action {
	case place + "-exit":
		os.Exit(3)
	case place + "-goexit":
		runtime.Goexit()
	case place + "-memory":
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		var all [][]byte
		for {
			all = append(all, make([]byte, 64<<20))
		}
	case place + "-kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	case place + "-hang":
		for {
		}
	case place + "-wait": // a hang, too, which leaves the processor to others
		time.Sleep(time.Hour)
	case place + "-slow":
		time.Sleep(100 * time.Millisecond)
	}
}

func split(data interface{}) (key, action string) {
	key, action, _ = strings.Cut(data.(string), " ")
	return key, action
}

type CheckBuilder struct{}

func (*CheckBuilder) Build() interface{} { return &Check{} }

type Check struct{}

func (*Check) Name() string { return "check" }

func (*Check) Compute(data interface{}) []interface{} {
	_, action := split(data)
	switch action {
	case "raise":
		panic("told to")
	case "wrong":
		return []interface{}{5}
	}
	die(action, "first")
	return []interface{}{data}
}

type Key struct{}

func (*Key) Partition(data interface{}) []byte {
	key, _ := split(data)
	return []byte(key)
}

type Add struct{}

func (*Add) Name() string { return "count" }

func (*Add) Compute(data interface{}, state interface{}) (interface{}, bool) {
	key, action := split(data)
	count := state.(*Count)
	count.Value++
	if action == "mutate" {
		panic("told to, after the state was changed")
	}
	die(action, "state")
	if strings.HasPrefix(action, "save") || strings.HasPrefix(action, "load") {
		count.Poison = action
	}
	return fmt.Sprintf("%s %d", key, count.Value), true
}

type Encoder struct{}

func (*Encoder) Encode(data interface{}) []byte { return []byte(data.(string) + "\n") }
