package frame

import "encoding/binary"

// Column is a list of unsigned integers in a frame, each with the same number of bytes. The zero value is empty.
type Column struct {
	width int
	data  []byte
}

// Len returns the number of integers.
func (c Column) Len() int {
	if c.width == 0 {
		return 0
	}
	return len(c.data) / c.width
}

// At returns the integer at a position, which must be less than Len.
func (c Column) At(i int) uint64 {
	switch c.width {
	case 1:
		return uint64(c.data[i])
	case 2:
		return uint64(binary.LittleEndian.Uint16(c.data[2*i:]))
	case 4:
		return uint64(binary.LittleEndian.Uint32(c.data[4*i:]))
	}
	return binary.LittleEndian.Uint64(c.data[8*i:])
}

// Max returns the largest integer, or 0 if the column is empty.
func (c Column) Max() uint64 {
	var top uint64
	for i, n := 0, c.Len(); i < n; i++ {
		top = max(top, c.At(i))
	}
	return top
}

// sum adds up the integers. It returns false if the sum exceeds the limit.
func (c Column) sum(limit uint64) (total uint64, ok bool) {
	for i, n := 0, c.Len(); i < n; i++ {
		value := c.At(i)
		if value > limit-total {
			return 0, false
		}
		total += value
	}
	return total, true
}

// appendColumn writes integers in the narrowest width that can hold top, the largest integer.
func appendColumn[T uint32 | uint64](out []byte, values []T, top T) []byte {
	switch wide := uint64(top); {
	case wide < 1<<8:
		out = append(out, 1)
		for _, value := range values {
			out = append(out, byte(value))
		}
	case wide < 1<<16:
		out = append(out, 2)
		for _, value := range values {
			out = binary.LittleEndian.AppendUint16(out, uint16(value))
		}
	case wide < 1<<32:
		out = append(out, 4)
		for _, value := range values {
			out = binary.LittleEndian.AppendUint32(out, uint32(value))
		}
	default:
		out = append(out, 8)
		for _, value := range values {
			out = binary.LittleEndian.AppendUint64(out, uint64(value))
		}
	}
	return out
}
