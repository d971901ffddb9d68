package frame

// Span is the range of the sequence numbers of a frame's messages. Callers compare spans to process the messages of
// several frames in order, without reading the whole frames.
type Span struct {
	Port        uint16
	Count       int
	First, Last uint64 // least and greatest sequence number of a message; in a frame without messages, the frame's own
	IsInOrder   bool   // whether the sequence numbers never decrease
}

// ReadSpan returns the span of the frame at the start of data, and the bytes after the frame. It does not verify the
// checksum.
func ReadSpan(data []byte) (s Span, rest []byte, err error) {
	h, err := readHeader(data)
	if err != nil {
		return s, nil, err
	}
	end := HeaderBytes + h.BodyBytes
	s = Span{Port: h.Port, Count: h.Count, First: h.Sequence, Last: h.Sequence, IsInOrder: true}
	if h.Count == 0 {
		return s, data[end:], nil
	}
	if h.Flags&FlagSequences == 0 {
		s.Last += uint64(h.Count) - 1
		return s, data[end:], nil
	}
	body := body{data[HeaderBytes:end:end]}
	if h.Flags&FlagKeys != 0 {
		if err := body.skipKeys(h.Count); err != nil {
			return s, nil, err
		}
	}
	sequences, err := body.column(h.Count)
	if err != nil {
		return s, nil, err
	}
	s.extend(sequences)
	return s, data[end:], nil
}

// extend completes the span. differences is the column of sequence numbers: each number minus s.First.
func (s *Span) extend(differences Column) {
	least, top, last := differences.At(0), uint64(0), uint64(0)
	for i, n := 0, differences.Len(); i < n; i++ {
		difference := differences.At(i)
		if difference < last {
			s.IsInOrder = false
		}
		last = difference
		least, top = min(least, difference), max(top, difference)
	}
	s.First, s.Last = s.First+least, s.Last+top
}
