package memory

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// defaultFrameBytes is the size at which a frame is closed, unless Drawn chooses another size at random.
const defaultFrameBytes = 1 << 20

// Settings control how an Engine runs an application: choices that may change the order of its output among keys, but
// nothing else.
type Settings struct {
	Buckets       uint32
	FrameBytes    uint32
	ChecksPersist bool       // whether the executor checks that changed states are persisted (CheckPersist)
	Draw          *rand.Rand // makes random choices; with nil, each call reads back the states, and buckets run in order
}

// Plain returns settings without random choices. With one bucket, messages keep their arrival order.
func Plain() Settings {
	return Settings{Buckets: 1, FrameBytes: defaultFrameBytes, ChecksPersist: true}
}

// Drawn returns settings that draw chooses at random. A run with them makes more random choices.
func Drawn(draw *rand.Rand) Settings {
	sizes := []uint32{1, 100, defaultFrameBytes}
	return Settings{Buckets: 1 + draw.Uint32N(9), FrameBytes: sizes[draw.IntN(3)], ChecksPersist: draw.IntN(2) == 0, Draw: draw}
}

// chunk returns the number of source frames to process in one call.
func (s Settings) chunk(frames int) int {
	if s.Draw == nil || frames == 0 {
		return max(1, frames)
	}
	return 1 + s.Draw.IntN(frames)
}

// arranged returns the numbers of the buckets in the order in which to process them.
func (s Settings) arranged(mine map[uint32][]row) []uint32 {
	numbers := slices.Sorted(maps.Keys(mine))
	if s.Draw != nil {
		s.Draw.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	}
	return numbers
}

// wantsSnapshot reports whether a call writes all states of its bucket in place of only the changed states.
func (s Settings) wantsSnapshot() bool { return s.Draw != nil && s.Draw.IntN(4) == 0 }

// keepsLive reports whether the next call of the bucket uses the live states, and does not read them from the log.
func (s Settings) keepsLive() bool { return s.Draw != nil && s.Draw.IntN(2) == 0 }
