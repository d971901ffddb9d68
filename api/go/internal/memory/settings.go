package memory

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// defaultFrameBytes is the size at which a frame is closed, unless another size is drawn.
const defaultFrameBytes = 1 << 20

// Settings control a run. They must not change the output of an application, except the order between keys.
type Settings struct {
	Buckets       uint32
	FrameBytes    uint32
	ChecksPersist bool       // see stage.Executor.CheckPersist
	Draw          *rand.Rand // draws random choices; with nil, each call reads back the states, and buckets run in order
}

// Plain returns settings without random choices. With one bucket, messages keep their arrival order.
func Plain() Settings {
	return Settings{Buckets: 1, FrameBytes: defaultFrameBytes, ChecksPersist: true}
}

// Drawn returns random settings.
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

// arranged returns the order in which to process the buckets.
func (s Settings) arranged(mine map[uint32][]row) []uint32 {
	numbers := slices.Sorted(maps.Keys(mine))
	if s.Draw != nil {
		s.Draw.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	}
	return numbers
}

// wantsSnapshot reports whether a call writes all states of its bucket in place of only the changed states.
func (s Settings) wantsSnapshot() bool { return s.Draw != nil && s.Draw.IntN(4) == 0 }

// keepsLive reports whether the next call gets the live states in place of states read back from the log.
func (s Settings) keepsLive() bool { return s.Draw != nil && s.Draw.IntN(2) == 0 }
