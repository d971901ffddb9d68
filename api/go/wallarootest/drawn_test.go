package wallarootest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wallarooapi/application"
	"wallarooapi/stream"
	"wallarooapi/wallarootest"
)

// In this file applications process drawn messages. Each must have the same results as a reference, which is a loop
// over the messages. Tests draw the order of sources, calls of Send and time; Vary draws micro-batches, buckets and
// frames.

// draws calls a test with many sources of random numbers, with each of them once without Vary and once with it.
func draws(f *testing.F, test func(t *testing.T, draw *rand.Rand, options ...wallarootest.Option)) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		test(t, rand.New(rand.NewPCG(seed, 1)))
		test(t, rand.New(rand.NewPCG(seed, 1)), wallarootest.Vary(seed))
	})
}

// lines draws lines of a few words; steps fail on words that begin with a digit.
func lines(draw *rand.Rand) []string {
	made := make([]string, draw.IntN(5))
	for i := range made {
		for range draw.IntN(4) {
			made[i] += []string{"a ", "ab ", "ac ", "b ", "7 "}[draw.IntN(5)]
		}
	}
	return made
}

func anything[M any](messages []M) (all []any) {
	for _, each := range messages {
		all = append(all, each)
	}
	return all
}

// byKey sorts lines "KEY ..." by their keys. Lines of one key keep their order, which the application must preserve.
func byKey(lines []string) []string {
	sorted := slices.Clone(lines)
	slices.SortStableFunc(sorted, func(a, b string) int {
		first, _, _ := strings.Cut(a, " ")
		second, _, _ := strings.Cut(b, " ")
		return strings.Compare(first, second)
	})
	return sorted
}

// numbering declares an application that numbers the words with one first letter; it fails on numbers.
func numbering() *stream.Application {
	app := stream.New("Numbers")
	words := stream.FlatMap(stream.From(app, "Lines", textSource()), "split", func(_ context.Context, line string) ([]string, error) {
		return strings.Fields(line), nil
	})
	byLetter := stream.KeyBy(words, "letter", func(word string) string { return word[:1] })
	stream.MapState(byLetter, "count", func(_ context.Context, word string, s *tally) (string, error) {
		s.Count++
		if word == "7" {
			return "", errors.New("no word")
		}
		return fmt.Sprint(word[:1], " ", word, " ", s.Count), nil
	}).To(textSink())
	return app
}

func FuzzWordCount(f *testing.F) {
	draws(f, func(t *testing.T, draw *rand.Rand, options ...wallarootest.Option) {
		app := wallarootest.New(t, numbering(), options...)
		counts, want, letters := map[string]int{}, []string{}, 0
		for range draw.IntN(20) {
			sent := lines(draw)
			app.Send("Lines", anything(sent)...)
			for _, word := range strings.Fields(strings.Join(sent, " ")) {
				if word == "7" {
					letters++
					continue
				}
				letter := word[:1]
				counts[letter]++
				want = append(want, fmt.Sprint(letter, " ", word, " ", counts[letter]))
			}
		}
		got := app.Lines("Numbers")
		if len(options) == 0 {
			wallarootest.Equal(t, got, want)
		}
		wallarootest.Equal(t, byKey(got), byKey(want))
		wallarootest.Equal(t, len(app.DeadLetters()), letters)
		wallarootest.Equal(t, app.Keys("count"), slices.Sorted(maps.Keys(counts)))
		for letter, count := range counts {
			wallarootest.Equal(t, wallarootest.State[tally](app, "count", letter), tally{count})
		}
	})
}

// account is a state that two pipelines share.
type account struct{ Balance, Changes int }

type accounts struct{}

func (accounts) Build() any { return &account{} }

// change adds to an account or takes from it. If the balance is then below zero, change fails, after it has changed the
// account.
type change struct {
	name string
	sign int
}

func (c change) Name() string { return c.name }

func (c change) Compute(data, state any) (any, bool) {
	key, amount := parsed(data.(string))
	held := state.(*account)
	held.Balance += c.sign * amount
	held.Changes++
	if held.Balance < 0 {
		panic(errors.New("too little"))
	}
	return fmt.Sprint(key, " ", held.Balance, " ", held.Changes), true
}

func parsed(text string) (key string, amount int) {
	if _, err := fmt.Sscan(text, &key, &amount); err != nil {
		panic(err)
	}
	return key, amount
}

// lineCodec encodes a message as a line.
type lineCodec struct{ decoderOfText }

func (lineCodec) Encode(data any) []byte { return []byte(data.(string) + "\n") }

type decoderOfText struct{}

func (decoderOfText) HeaderLength() uint64          { return 1 }
func (decoderOfText) PayloadLength(b []byte) uint64 { return uint64(b[0]) }
func (decoderOfText) Decode(b []byte) any           { return string(b) }
func (decoderOfText) Partition(data any) []byte {
	key, _ := parsed(data.(string))
	return []byte(key)
}

// banking declares two pipelines that share the accounts, so each sees the changes of the other.
func banking() *application.Application {
	app := application.MakeApplication("Bank")
	for number, step := range []change{{"deposit", 1}, {"withdraw", -1}} {
		source := application.MakeTCPSourceConfig("127.0.0.1", fmt.Sprint(7010+number), lineCodec{})
		app.NewPipeline(step.name, source).
			ToStatePartition(step, accounts{}, "accounts", lineCodec{}).
			ToSink(application.MakeTCPSinkConfig("127.0.0.1", "7002", lineCodec{}))
	}
	return app
}

func FuzzSharedState(f *testing.F) {
	draws(f, func(t *testing.T, draw *rand.Rand, options ...wallarootest.Option) {
		app := wallarootest.New(t, banking(), options...)
		held, letters := map[string]account{}, []string{}
		want := map[string][]string{"deposit": {}, "withdraw": {}}
		signs := map[string]int{"deposit": 1, "withdraw": -1}
		for range draw.IntN(40) {
			pipeline := []string{"deposit", "withdraw"}[draw.IntN(2)]
			key, amount := string(rune('a'+draw.IntN(4))), draw.IntN(10)
			text := fmt.Sprint(key, " ", amount)
			if draw.IntN(2) == 0 {
				app.SendWire(pipeline, append([]byte{byte(len(text))}, text...))
			} else {
				app.Send(pipeline, text)
			}
			next := account{held[key].Balance + signs[pipeline]*amount, held[key].Changes + 1}
			if next.Balance < 0 {
				letters = append(letters, fmt.Sprint(pipeline, " ", key, " ", text))
				continue
			}
			held[key] = next
			want[pipeline] = append(want[pipeline], fmt.Sprint(key, " ", next.Balance, " ", next.Changes))
		}
		for pipeline := range want {
			wallarootest.Equal(t, byKey(app.Lines(pipeline)), byKey(want[pipeline]))
		}
		found := []string{}
		for _, each := range app.DeadLetters() {
			found = append(found, fmt.Sprint(each.Step, " ", each.Key, " ", each.Input))
		}
		slices.Sort(letters)
		slices.Sort(found)
		wallarootest.Equal(t, found, letters)
		for key, state := range held {
			wallarootest.Equal(t, wallarootest.State[account](app, "accounts", key), state)
		}
	})
}

// span is so long that there is a tick in each second.
const span = 10 * time.Second

// windowed declares windows that count the messages of each key.
func windowed() *stream.Application {
	app := stream.New("Windows")
	words := stream.From(app, "Words", textSource())
	byWord := stream.KeyBy(words, "word", func(word string) string { return word })
	stream.RangeWindow(byWord, stream.Range{Length: span}, stream.Aggregation[string, int, string]{
		Name:    "count",
		Initial: func() int { return 0 },
		Update:  func(_ string, count int) int { return count + 1 },
		Combine: func(earlier, later int) int { return earlier + later },
		OutputTo: func(ctx context.Context, word string, count int) (string, error) {
			start, end := stream.WindowBounds(ctx)
			return fmt.Sprint(word, " ", count, " ", start.Sub(wallarootest.Start), " ", end.Sub(wallarootest.Start)), nil
		},
	}).To(textSink())
	return app
}

// windows is the reference for windowed. The windows of a key follow one another from its first message on. After two
// spans without a message, and after the windows of this time, the key begins again.
type windows struct {
	begin, last time.Duration
	count       int
}

func (w *windows) until(key string, now time.Duration) (given []string, isOver bool) {
	silent := w.last + 2*span
	for w.begin+span <= min(now, silent) {
		given = append(given, fmt.Sprint(key, " ", w.count, " ", w.begin, " ", w.begin+span))
		w.begin, w.count = w.begin+span, 0
	}
	return given, now >= silent
}

func FuzzWindow(f *testing.F) {
	draws(f, func(t *testing.T, draw *rand.Rand, options ...wallarootest.Option) {
		app := wallarootest.New(t, windowed(), options...)
		open, now, want := map[string]*windows{}, time.Duration(0), []string{}
		tick := func() {
			for key, w := range open {
				given, isOver := w.until(key, now)
				want = append(want, given...)
				if isOver {
					delete(open, key)
				}
			}
		}
		for range draw.IntN(30) {
			if draw.IntN(2) == 0 {
				seconds := draw.IntN(25)
				for range seconds {
					now += time.Second
					tick()
				}
				app.Advance(time.Duration(seconds) * time.Second)
				continue
			}
			key := string(rune('a' + draw.IntN(3)))
			app.Send("Words", key)
			if open[key] == nil {
				open[key] = &windows{begin: now}
			}
			open[key].count++
			open[key].last = now
		}
		app.Advance(time.Minute)
		now += time.Minute
		tick()
		wallarootest.Equal(t, byKey(app.Lines("Windows")), byKey(want))
	})
}
