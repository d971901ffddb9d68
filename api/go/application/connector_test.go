package application_test

import (
	"encoding/binary"
	"strings"
	"testing"

	app "wallarooapi/application"
	"wallarooapi/internal/declaration"
)

type text struct{}

func (*text) Decode(b []byte) interface{} { return string(b) }

func (*text) Encode(data interface{}) []byte {
	if data == "nothing" {
		return nil
	}
	return []byte(data.(string))
}

func connected(source *app.SourceConnectorConfig, sink *app.SinkConnectorConfig) (string, *declaration.Pipeline) {
	application := app.MakeApplication("connected")
	application.NewPipeline("line", source).ToSink(sink)
	document := application.ToJson()
	result, _ := declaration.Lookup(document)
	return document, result.Application.Pipelines[0]
}

func TestConnectorsAreTCPWithALengthAndATime(t *testing.T) {
	document, pipeline := connected(app.MakeSourceConnectorConfig("feed", "127.0.0.1", "7100", &text{}).OnError("fail"),
		app.MakeSinkConnectorConfig("out", "127.0.0.1", "7200", &text{}).OnError("dead_letter"))
	for _, want := range []string{
		`"name": "feed",`, `"kind": "tcp",`, `"port": 7100,`, `"kind": "u32le"`, `"on_error": "fail"`, `"name": "out",`, `"port": 7200,`,
		`"on_error": "dead_letter"`, `"symbol": "*application_test.text"`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("%s\ndoes not have\n%s", document, want)
		}
	}
	frame, _, _ := pipeline.Sinks[0].Encode("abc")
	if want := "\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00abc"; string(frame) != want {
		t.Errorf("the frame is %q, not %q", frame, want)
	}
	if value, _, _ := pipeline.Sinks[0].Encode("nothing"); value != nil {
		t.Error("nothing became a frame")
	}
	framed := pipeline.Sources[0].Framed
	if length := framed.PayloadLength(frame[:4]); length != uint64(len(frame)-4) || length != uint64(binary.LittleEndian.Uint32(frame)) {
		t.Errorf("the length is %d", length)
	}
	if got := framed.Decode(frame[4:]); got != "abc" {
		t.Errorf("the message is %q", got)
	}
	defer func() {
		if err, ok := recover().(error); !ok || err.Error() != "a frame has 3 bytes; at least 8 are a time" {
			t.Errorf("a frame that is too short: %v", err)
		}
	}()
	framed.Decode(frame[:3])
}

func TestConnectorsWithACookieSpeakTheProtocol(t *testing.T) {
	document, pipeline := connected(app.MakeSourceConnectorConfig("feed", "127.0.0.1", "7100", &text{}).Cookie("bread"),
		app.MakeSinkConnectorConfig("out", "127.0.0.1", "7200", &text{}).Cookie("butter"))
	for _, want := range []string{
		`"kind": "connector",`, `"cookie": "bread",`, `"max_credits": 100000,`, `"refill_credits": 50000,`, `"cookie": "butter",`,
	} {
		if !strings.Contains(document, want) {
			t.Errorf("%s\ndoes not have\n%s", document, want)
		}
	}
	if got, _, _ := pipeline.Sinks[0].Encode("abc"); string(got) != "abc" {
		t.Errorf("the payload is %q", got)
	}
}

func TestConnectorsThatCannotBe(t *testing.T) {
	application := app.MakeApplication("wrong")
	application.NewPipeline("a", app.MakeSourceConnectorConfig("feed", "127.0.0.1", "7100", nil)).
		ToSink(app.MakeSinkConnectorConfig("out", "127.0.0.1", "seven", &text{}).Cookie("word"))
	application.NewPipeline("b", app.MakeSourceConnectorConfig("feed", "127.0.0.1", "7101", &text{})).
		ToSink(app.MakeSinkConnectorConfig("out", "127.0.0.1", "7200", nil))
	err := application.Check()
	if err == nil {
		t.Fatal("nothing was found")
	}
	for _, want := range []string{"T223 decoder", `T211 sink address "127.0.0.1:seven"`, "T207"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not have\n%s", err, want)
		}
	}
}
