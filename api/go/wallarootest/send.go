package wallarootest

import (
	"reflect"
	"time"

	"wallarooapi/internal/codec"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/frame"
	"wallarooapi/internal/memory"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/topology"
	"wallarooapi/stream"
)

// Send sends messages to a source and processes them. source is the name of the source, its path in the topology (such
// as "0/sources/1"), its address or its topic.
//
// A message has one of these types:
//   - string or []byte: the payload of a message for the decoder, without the header of the framing. Its time is the
//     time of the test, also if the source has a Timestamp.
//   - stream.Record: a payload with key, time and headers, for a Kafka, Spark or connector source. A zero time means
//     the time of the test, and a nil value a tombstone.
//   - stream.KafkaRecord: for a source of whole records. Topic, time, partition and offset are optional. Such a source
//     also accepts string, []byte and stream.Record.
//   - for a source of rows such as stream.DataFrameSource: a struct of the row type, or a string with a row as JSON.
//     The column that Timestamp names contains the time of the message, as a time or in milliseconds. If Timestamp is
//     other SQL, send a stream.Record with a time.
//   - any other type: the decoded message itself. It is written and read back, so it must be serializable.
//
// A generator has no decoder. Each of its messages is the decoded message itself, even a string.
func (a *App) Send(source string, messages ...any) {
	a.t.Helper()
	a.goesOn("Send")
	found := a.source(source)
	if found == nil {
		return
	}
	writer := &writer{app: a, source: found}
	for _, message := range messages {
		if !writer.add(message) {
			return
		}
	}
	writer.end()
	a.take(writer.frames...)
}

// SendWire sends bytes to a TCP source in the form in which they arrive over the network, with the framing. data must
// end with a whole message. In contrast to Send, it also runs HeaderLength and PayloadLength of a decoder.
func (a *App) SendWire(source string, data []byte) {
	a.t.Helper()
	a.goesOn("SendWire")
	found := a.source(source)
	if found == nil {
		return
	}
	if found.Framing().Kind == "" {
		a.t.Fatalf("wallarootest: source %q has no framing: it is not TCP; use Send", source)
		return
	}
	lengths, wanted, err := stage.Split(found, data, topology.MaxMessageBytes)
	if err != nil {
		a.t.Fatalf("wallarootest: source %q: %v", source, err)
		return
	}
	left := len(data)
	for _, length := range lengths {
		left -= int(length)
	}
	if left > 0 {
		a.t.Fatalf("wallarootest: source %q: %d bytes are left after %d messages, and the next one has %d; send whole messages",
			source, left, len(lengths), wanted)
		return
	}
	written, err := a.journal.Wire(a.engine.PortOf(found.Path), a.now.UnixMilli(), len(lengths), data)
	a.takeWritten(source, written, err)
}

// takeWritten processes a frame of a source's messages. err is the error of writing this frame. If it is not nil, the
// test fails.
func (a *App) takeWritten(source string, written []byte, err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatalf("wallarootest: source %q: %v", source, err)
		return
	}
	a.take(written)
}

// writer makes frames of the input from messages that a test sends to one source.
type writer struct {
	app      *App
	source   *declaration.Source
	frames   [][]byte
	arrivals []memory.Arrival // messages of the current frame
	encoder  *codec.Encoder   // for the decoded messages of the current frame; nil in a frame of payloads
}

// add adds a message to the current frame. If the source does not accept a message of this type, the test fails and add
// returns false.
func (w *writer) add(message any) bool {
	t := w.app.t
	t.Helper()
	if hasRecords(w.source.Edge) {
		if record, is := recordOf(message); is {
			return w.addRecord(record) && w.drawn()
		}
	}
	if rows, is := w.source.Given.(declaration.RowDecoder); is && reflect.TypeOf(message) == w.source.Output {
		encoded, err := rows.EncodeRow(message)
		if err != nil {
			t.Fatalf("wallarootest: source %q: %v", w.source.Name, err)
			return false
		}
		message = encoded
	}
	payload, isPayload := payloadOf(message)
	record, isRecord := message.(stream.Record)
	hasDecoder := w.source.Generator == nil
	switch {
	case hasDecoder && isRecord && !w.source.GivesKeys() && !w.source.GivesTimes():
		t.Fatalf("wallarootest: source %q has no records: it is none of Kafka, Spark or a connector; send payloads", w.source.Name)
		return false
	case hasDecoder && isRecord:
		w.begin(false)
		if record.Time.IsZero() {
			record.Time = time.UnixMilli(w.timeMs(record.Value))
		}
		w.arrivals = append(w.arrivals, arrivalOf(record))
	case hasDecoder && isPayload:
		w.begin(false)
		w.arrivals = append(w.arrivals, memory.Arrival{Value: payload, TimestampMs: w.timeMs(payload)})
	default:
		w.begin(true)
		value, ok := w.encode(message)
		if !ok {
			return false
		}
		w.arrivals = append(w.arrivals, memory.Arrival{Value: value, TimestampMs: w.app.now.UnixMilli()})
	}
	return w.drawn()
}

// drawn ends the current frame at random if the test uses Vary. It always returns true, as the result of add.
func (w *writer) drawn() bool {
	w.app.t.Helper()
	if w.app.draw != nil && w.app.draw.IntN(3) == 0 {
		w.end()
	}
	return true
}

// begin ends the current frame and begins a new one if the next message is of another kind: payloads and decoded
// messages are in separate frames. pastDecoder is true if the next message is a decoded one.
func (w *writer) begin(pastDecoder bool) {
	w.app.t.Helper()
	if pastDecoder == (w.encoder != nil) {
		return
	}
	w.end()
	if pastDecoder {
		w.encoder = codec.NewEncoder()
	}
}

func payloadOf(message any) (payload []byte, is bool) {
	switch m := message.(type) {
	case string:
		return []byte(m), true
	case []byte:
		return m, true
	}
	return nil, false
}

func arrivalOf(record stream.Record) memory.Arrival {
	arrival := memory.Arrival{
		Value: record.Value, IsAbsent: record.Value == nil, Key: record.Key, TimestampMs: record.Time.UnixMilli(),
	}
	for _, header := range record.Headers {
		arrival.Headers = append(arrival.Headers, memory.RecordHeader(header))
	}
	return arrival
}

// encode serializes a decoded message that the test sent. If the message is not of the source's type, or cannot be
// serialized, the test fails, and ok is false.
func (w *writer) encode(message any) (value []byte, ok bool) {
	t, expected := w.app.t, w.source.Output
	t.Helper()
	switch {
	case message == nil:
		t.Fatalf("wallarootest: source %q has no message that is nil", w.source.Name)
		return nil, false
	case expected != nil && expected.Kind() != reflect.Interface && reflect.TypeOf(message) != expected:
		t.Fatalf("wallarootest: source %q has messages of type %v; Send got %T", w.source.Name, expected, message)
		return nil, false
	}
	value, err := w.encoder.Append(nil, message)
	if err != nil {
		t.Fatalf("wallarootest: source %q: %T cannot be serialized; %v; %s", w.source.Name, message, err, codec.Remedy(err))
		return nil, false
	}
	return value, true
}

// end finishes the current frame.
func (w *writer) end() {
	w.app.t.Helper()
	encoding := byte(frame.Plain)
	if w.encoder != nil {
		encoding = w.encoder.Encoding()
	}
	arrivals := w.arrivals
	w.arrivals, w.encoder = nil, nil
	if len(arrivals) == 0 {
		return
	}
	written, err := w.app.journal.Write(w.app.engine.PortOf(w.source.Path), encoding, w.source.GivesKeys(), arrivals)
	if err != nil {
		w.app.t.Fatalf("wallarootest: source %q: %v", w.source.Name, err)
		return
	}
	w.frames = append(w.frames, written)
}
