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

// Send gives messages to a source, whatever its kind, and runs all that follows from them. The source is named by its name, its path
// in the topology (such as "0/sources/1"), its address or its topic.
//
// A message is one of these:
//   - a string or []byte: the payload of a message, without the header of the framing; the source's decoder makes the message of it;
//   - a stream.Record: a payload with key, time and headers, for a source of Kafka, Spark or a connector; a zero time is the test's,
//     and a nil value is none (a tombstone);
//   - anything else: the message itself, past the decoder. It is written and read back, so it must have bytes.
//
// The messages of a generator have no decoder: all of them are of the last kind, strings too.
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

// SendWire gives bytes to a TCP source as they come over the network, headers of the framing included. They must end with a whole
// message. This tests a decoder's HeaderLength and PayloadLength too.
func (a *App) SendWire(source string, data []byte) {
	a.t.Helper()
	a.goesOn("SendWire")
	found := a.source(source)
	if found == nil {
		return
	}
	if found.Framed == nil {
		a.t.Fatalf("wallarootest: source %q gets no bytes with headers: it is not TCP; use Send", source)
		return
	}
	lengths, wanted, err := stage.Split(found, data, topology.MaxMessageBytes)
	whole := 0
	for _, length := range lengths {
		whole += int(length)
	}
	if err == nil && whole == len(data) {
		var written []byte
		if written, err = a.journal.Wire(a.engine.PortOf(found.Path), a.now.UnixMilli(), len(lengths), data); err == nil {
			a.take(written)
			return
		}
	}
	if err != nil {
		a.t.Fatalf("wallarootest: source %q: %v", source, err)
		return
	}
	a.t.Fatalf("wallarootest: source %q: %d bytes are left after %d messages, and the next one has %d; send whole messages",
		source, len(data)-whole, len(lengths), wanted)
}

// Advance lets time pass: windows get the ticks that a gateway would send, at most 1000 of them, and one at the end. Each is a
// micro-batch.
func (a *App) Advance(d time.Duration) {
	a.t.Helper()
	a.goesOn("Advance")
	if d < 0 {
		a.t.Fatalf("wallarootest: time cannot go back; Advance got %v", d)
		return
	}
	interval := a.tickInterval()
	if interval == 0 {
		a.now = a.now.Add(d)
		return
	}
	interval = max(interval, d/mostTicks)
	end := a.now.Add(d)
	var ticks [][]byte
	for next := a.now.Truncate(interval).Add(interval); ; next = next.Add(interval) {
		if next.After(end) {
			next = end
		}
		tick, err := a.journal.Tick(next.UnixMilli())
		if err != nil {
			a.t.Fatalf("wallarootest: %v", err)
			return
		}
		ticks = append(ticks, tick)
		if !next.Before(end) {
			break
		}
	}
	a.now = end
	a.take(ticks...)
}

const (
	leastTick = 100 * time.Millisecond
	mostTick  = time.Second
	mostTicks = 1000 // of one call of Advance
)

// tickInterval returns how often a gateway tells the windows the time: twice in the shortest slide or flush; 0: there are none.
func (a *App) tickInterval() time.Duration {
	shortest := time.Duration(0)
	for _, pipeline := range a.declared.Pipelines {
		for _, step := range pipeline.Steps {
			span := 0
			switch window := step.Window.(type) {
			case *topology.RangeWindow:
				span = window.SlideMs
			case *topology.CountWindow:
				span = window.FlushMs
			default:
				continue
			}
			if each := time.Duration(span) * time.Millisecond; shortest == 0 || each < shortest {
				shortest = each
			}
		}
	}
	if shortest == 0 {
		return 0
	}
	return max(leastTick, min(mostTick, shortest/2))
}

// writer makes frames of messages of one source.
type writer struct {
	app      *App
	source   *declaration.Source
	frames   [][]byte
	arrivals []memory.Arrival
	encoding byte
	encoder  *codec.Encoder
}

// add adds a message; one that the source cannot give fails the test.
func (w *writer) add(message any) bool {
	t := w.app.t
	t.Helper()
	arrival := memory.Arrival{TimestampMs: w.app.now.UnixMilli()}
	encoding := byte(frame.Plain)
	payload, isPayload := payloadOf(message)
	record, isRecord := message.(stream.Record)
	switch {
	case isRecord && w.source.Generator == nil:
		if !w.source.GivesKeys() && !w.source.GivesTimes() {
			t.Fatalf("wallarootest: source %q gives no records: it is none of Kafka, Spark or a connector; send payloads", w.source.Name)
			return false
		}
		arrival = arrivalOf(record, arrival.TimestampMs)
	case isPayload && w.source.Generator == nil:
		arrival.Value = payload
	default:
		value, ok := w.encode(message)
		if !ok {
			return false
		}
		arrival.Value, encoding = value, w.encoder.Encoding()
	}
	if encoding != w.encoding {
		w.end()
	}
	w.arrivals, w.encoding = append(w.arrivals, arrival), encoding
	if w.app.draw != nil && w.app.draw.IntN(3) == 0 {
		w.end()
	}
	return true
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

func arrivalOf(record stream.Record, nowMs int64) memory.Arrival {
	arrival := memory.Arrival{Value: record.Value, IsAbsent: record.Value == nil, Key: record.Key, TimestampMs: nowMs}
	if !record.Time.IsZero() {
		arrival.TimestampMs = record.Time.UnixMilli()
	}
	for _, header := range record.Headers {
		arrival.Headers = append(arrival.Headers, memory.Header(header))
	}
	return arrival
}

// encode writes a message that goes past the decoder.
func (w *writer) encode(message any) (value []byte, ok bool) {
	t := w.app.t
	t.Helper()
	expected := w.source.Output
	switch {
	case message == nil:
		t.Fatalf("wallarootest: source %q gives no message that is nil", w.source.Name)
		return nil, false
	case expected != nil && expected.Kind() != reflect.Interface && reflect.TypeOf(message) != expected:
		t.Fatalf("wallarootest: source %q gives messages of type %v; Send got %T", w.source.Name, expected, message)
		return nil, false
	}
	if w.encoder == nil || len(w.arrivals) == 0 || w.encoding == frame.Plain {
		w.encoder = codec.NewEncoder()
	}
	value, err := w.encoder.Append(nil, message)
	if err != nil {
		t.Fatalf("wallarootest: source %q: %T cannot be serialized; %v; %s", w.source.Name, message, err, codec.Fix)
		return nil, false
	}
	return value, true
}

// end closes the frame under way.
func (w *writer) end() {
	w.app.t.Helper()
	if len(w.arrivals) == 0 {
		return
	}
	written, err := w.app.journal.Write(w.app.engine.PortOf(w.source.Path), w.encoding, w.source.GivesKeys(), w.arrivals)
	if err != nil {
		w.app.t.Fatalf("wallarootest: source %q: %v", w.source.Name, err)
		return
	}
	w.frames, w.arrivals = append(w.frames, written), nil
}
