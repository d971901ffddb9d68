package stage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	wa "wallarooapi"
	"wallarooapi/application"
	"wallarooapi/internal/declaration"
	"wallarooapi/internal/stage"
	"wallarooapi/internal/testdata/example"
	pb "wallarooapi/internal/workerpb"
)

// located remembers messages, and which message the record shows as in flight during each.
type located struct {
	remembering
	atWork func() [2]uint64
	noted  map[string][]uint64
}

func (l located) Compute(data, state any) (any, bool) {
	text := data.(string)
	l.noted[text] = append(l.noted[text], l.atWork()[1])
	return l.remembering.Compute(data, state)
}

func locatedApp(t testing.TB, l located) *declaration.Application {
	app := application.MakeApplication("Located")
	app.NewPipeline("Located", application.MakeTCPSourceConfig("127.0.0.1", "7010", example.Lines{})).
		ToMulti(example.Split{}).
		ToStatePartition(l, histories{}, "histories", example.FirstLetter{}).
		ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", texts{}))
	return declared(t, app)
}

// overlappingParts draws parts whose frames have overlapping sequence numbers. It returns the parts, and the messages
// in the order of their ordinals.
func overlappingParts(t testing.TB, random *rand.Rand) (parts [][][]byte, texts []string) {
	t.Helper()
	sequence := 0
	for range 1 + random.IntN(4) {
		var part [][]byte
		end := sequence
		for range random.IntN(4) {
			var drawn []string
			for range 1 + random.IntN(3) {
				fails := []string{"", "", "", "", "boom"}[random.IntN(5)]
				drawn = append(drawn, fmt.Sprint([]string{"a", "b", "c"}[random.IntN(3)], len(texts)+len(drawn), fails))
			}
			first := sequence + random.IntN(4)
			part, texts = append(part, keyedTexts(t, first, drawn)), append(texts, drawn...)
			end = max(end, first+len(drawn))
		}
		parts, sequence = append(parts, part), end
	}
	return parts, texts
}

func TestOrdinalsCountTheFramesOfAllParts(t *testing.T) {
	defer example.SetSerialize(false)()
	wa.RegisterType(&history{})
	random := rand.New(rand.NewPCG(15, 2))
	record, atWork := watched(t)
	l := located{remembering{map[string]bool{}}, atWork, map[string][]uint64{}}
	x := newExecutor(t, locatedApp(t, l), countStage)
	x.Watch(record)
	for range 300 {
		parts, texts := overlappingParts(t, random)
		clear(l.noted)
		if _, _, _, err := inParts(x, nil, false, parts); err != nil {
			t.Fatal(err)
		}
		for ordinal, text := range texts {
			for _, found := range l.noted[text] {
				if found != uint64(ordinal)+1 {
					t.Fatalf("message %d is noted as %d", ordinal, int64(found)-1)
				}
			}
		}
		if len(texts) > 0 {
			checkSkip(t, x, parts, texts, random.IntN(len(texts)), l.noted)
		}
	}
}

// checkSkip checks that a call with one message in its skip list leaves out only this message.
func checkSkip(t *testing.T, x *stage.Executor, parts [][][]byte, texts []string, ordinal int, noted map[string][]uint64) {
	t.Helper()
	clear(noted)
	skip := &pb.Skip{Ordinal: uint64(ordinal), Code: "C508", Reason: "it ended"}
	outputs, _, _, err := inParts(x, nil, false, parts, skip)
	if err != nil {
		t.Fatal(err)
	}
	var skipped []string
	for _, letter := range collect(t, outputs).letters {
		if letter.GetCode() == "C508" {
			skipped = append(skipped, letter.GetPreview())
		}
	}
	if want := texts[ordinal : ordinal+1]; !slices.Equal(skipped, want) {
		t.Fatalf("with skip %d of %d parts, %v are left out; want %v", ordinal, len(parts), skipped, want)
	}
	if len(noted) != len(texts)-1 {
		t.Fatalf("%d of %d messages ran; want all but one", len(noted), len(texts))
	}
}
