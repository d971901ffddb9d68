package server

import (
	"testing"
	"testing/quick"
)

func TestTheCommonVersionIsTheHighestInBothRanges(t *testing.T) {
	reference := func(ourLow, ourHigh, low, high uint8) uint32 {
		found := uint32(0)
		for version := uint32(1); version <= 255; version++ {
			if version >= uint32(ourLow) && version <= uint32(ourHigh) && version >= uint32(low) && version <= uint32(high) {
				found = version
			}
		}
		return found
	}
	common := func(ourLow, ourHigh, low, high uint8) uint32 {
		return commonVersion(uint32(ourLow), uint32(ourHigh), uint32(low), uint32(high))
	}
	if err := quick.CheckEqual(common, reference, &quick.Config{MaxCount: 2000}); err != nil {
		t.Error(err)
	}
}
