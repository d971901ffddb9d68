package stage_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wallarooapi/internal/declaration"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/testdata/vector"
	"wallarooapi/internal/topology"
)

// lengthDecoder is a decoder of a program whose headers contain only the length of the payload.
type lengthDecoder struct{ framing topology.Framing }

func (d lengthDecoder) HeaderLength() uint64 { return uint64(d.framing.HeaderBytes) }

func (d lengthDecoder) PayloadLength(header []byte) uint64 { return d.framing.Length(header) }

func (d lengthDecoder) Decode(payload []byte) any { return payload }

type framingCase struct {
	Name            string
	Framing         struct{ Kind string }
	MaxMessageBytes uint64 `json:"max_message_bytes"`
	Pieces          []string
	Messages        []string
	End             string
	AnnouncedBytes  uint64 `json:"announced_bytes"`
	ReceivedBytes   int    `json:"received_bytes"`
	ExpectedBytes   uint64 `json:"expected_bytes"`
}

// check splits the bytes of a case as a gateway does, as they arrive piece by piece. It returns an error that describes
// how the messages differ.
func (c framingCase) check() error {
	var bits int
	if _, err := fmt.Sscanf(c.Framing.Kind, "u%d", &bits); err != nil {
		return err
	}
	decoder := lengthDecoder{topology.Framing{Kind: c.Framing.Kind, HeaderBytes: bits / 8}}
	if found := topology.ProbeFraming(bits/8, decoder.PayloadLength); found != decoder.framing {
		return fmt.Errorf("the framing is %v", found)
	}
	source := &declaration.Source{Name: "in", Edge: &topology.TCP{Framing: decoder.framing}, Given: decoder, Decoder: decoder, Framed: decoder}
	var pending []byte
	var messages []string
	var wanted uint64
	for _, piece := range c.Pieces {
		data, err := hex.DecodeString(piece)
		if err != nil {
			return err
		}
		pending = append(pending, data...)
		var lengths []uint32
		if lengths, wanted, err = stage.Split(source, pending, c.MaxMessageBytes); err != nil {
			return err
		}
		for _, length := range lengths {
			messages = append(messages, hex.EncodeToString(pending[decoder.framing.HeaderBytes:length]))
			pending = pending[length:]
		}
	}
	if !slices.Equal(messages, c.Messages) {
		return fmt.Errorf("the messages are %v", messages)
	}
	return c.checkEnd(pending, wanted, decoder.framing)
}

func (c framingCase) checkEnd(pending []byte, wanted uint64, framing topology.Framing) error {
	end, announced := "clean", uint64(0)
	if len(pending) > 0 {
		end = "cut"
	}
	if wanted > 0 && framing.Length(pending) > c.MaxMessageBytes {
		end, announced = "too_large", framing.Length(pending)
	}
	if end != c.End || announced != c.AnnouncedBytes {
		return fmt.Errorf("the end is %s, %d bytes are announced", end, announced)
	}
	if end == "cut" && (len(pending) != c.ReceivedBytes || wanted != c.ExpectedBytes) {
		return fmt.Errorf("%d of %d bytes have come", len(pending), wanted)
	}
	return nil
}

func TestFramingVectors(t *testing.T) {
	var file struct{ Cases []framingCase }
	vector.Read(t, "framing.json", &file)
	for _, c := range file.Cases {
		if strings.HasPrefix(c.Framing.Kind, "u") {
			if err := c.check(); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
		}
	}
	if len(file.Cases) == 0 {
		t.Error("no cases")
	}
}

func TestWrongFramingVectorsFail(t *testing.T) {
	var file struct{ Framing []framingCase }
	vector.Read(t, "selftest.json", &file)
	for _, c := range file.Framing {
		if c.check() == nil {
			t.Errorf("%s: passed", c.Name)
		}
	}
	if len(file.Framing) == 0 {
		t.Error("no cases")
	}
}
