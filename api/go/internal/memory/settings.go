package memory

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// defaultFrameBytes is when a frame is closed, unless that is drawn.
const defaultFrameBytes = 1 << 20

// Settings must not change the output of an application, but for the order among keys.
type Settings struct {
	Buckets       uint32
	FrameBytes    uint32
	ChecksPersist bool       // see stage.Executor.CheckPersist
	Draw          *rand.Rand // draws what is left open; nil: states are read back for each call, and buckets run in order
}

// Plain returns the settings of a run in which nothing is drawn. With one bucket, messages keep the order of their arrival.
func Plain() Settings {
	return Settings{Buckets: 1, FrameBytes: defaultFrameBytes, ChecksPersist: true}
}

// Drawn returns settings that depend on a seed.
func Drawn(draw *rand.Rand) Settings {
	sizes := []uint32{1, 100, defaultFrameBytes}
	return Settings{Buckets: 1 + draw.Uint32N(9), FrameBytes: sizes[draw.IntN(3)], ChecksPersist: draw.IntN(2) == 0, Draw: draw}
}

// chunk returns the number of frames of sources that run in one call.
func (s Settings) chunk(frames int) int {
	if s.Draw == nil || frames == 0 {
		return max(1, frames)
	}
	return 1 + s.Draw.IntN(frames)
}

// arranged returns the order in which buckets run.
func (s Settings) arranged(mine map[uint32][]row) []uint32 {
	numbers := slices.Sorted(maps.Keys(mine))
	if s.Draw != nil {
		s.Draw.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	}
	return numbers
}

// wantsSnapshot reports whether a call writes all states of its bucket, rather than those that changed.
func (s Settings) wantsSnapshot() bool { return s.Draw != nil && s.Draw.IntN(4) == 0 }

// keepsLive reports whether the next call gets the live states, rather than those read back from the log.
func (s Settings) keepsLive() bool { return s.Draw != nil && s.Draw.IntN(2) == 0 }
