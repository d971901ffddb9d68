package row

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDecimalsThatFit draws numbers, and compares the result with exact arithmetic.
func TestDecimalsThatFit(t *testing.T) {
	d := rand.New(rand.NewPCG(5, 5))
	fitting := 0
	for range 20_000 {
		digits := 1 + d.IntN(12)
		scale := d.IntN(digits + 1)
		number := strings.Repeat("0", d.IntN(2)) + fmt.Sprint(d.Int64N([]int64{10, 1000, 1e6, 1e13}[d.IntN(4)]))
		number = []string{number, strings.TrimLeft(number, "0") + "0"}[d.IntN(2)]
		if d.IntN(2) == 0 {
			number += "." + fmt.Sprint(d.IntN([]int{10, 100_000}[d.IntN(2)])) + strings.Repeat("0", d.IntN(3))
		}
		if d.IntN(3) == 0 {
			number += fmt.Sprintf("e%d", d.IntN(14)-7)
		}
		number = []string{"", "-"}[d.IntN(2)] + number
		value, ok := new(big.Rat).SetString(number)
		if !ok {
			t.Fatal(number)
		}
		shifted := new(big.Rat).Mul(value, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
		want := shifted.IsInt() && shifted.Num().CmpAbs(most) < 0
		if got := fits(number, digits, scale); got != want {
			t.Fatalf("%s in DECIMAL(%d,%d): %v", number, digits, scale, got)
		}
		if want {
			fitting++
		}
	}
	if fitting < 1000 {
		t.Errorf("only %d fit", fitting)
	}
	for _, number := range []string{"1e999999999999999999999", "1e-999999999999999999999", "1e3000000"} {
		if fits(number, 38, 18) {
			t.Error(number)
		}
	}
}
