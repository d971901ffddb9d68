package row

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
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
		short, got := fits(number, digits, scale)
		if got != want {
			t.Fatalf("%s in DECIMAL(%d,%d): %v", number, digits, scale, got)
		}
		if want {
			if same, ok := new(big.Rat).SetString(short); !ok || same.Cmp(value) != 0 || len(short) > digits+len("-e-12") {
				t.Fatalf("%s is short %s", number, short)
			}
			fitting++
		}
	}
	if fitting < 1000 {
		t.Errorf("only %d fit", fitting)
	}
	for number, want := range map[string]string{
		"0e99999999999": "0", "-0." + strings.Repeat("0", 2000): "0", "-1." + strings.Repeat("0", 2000): "-1e0", "1.50": "1.50",
	} {
		value := reflect.ValueOf(json.Number(number))
		if out, err := writeDecimal(&form{digits: 10, scale: 2}, nil, value); err != nil || string(out) != want {
			t.Errorf("%.20s: got %.20s, %v; want %s", number, out, err, want)
		}
	}
	for _, number := range []string{"1e999999999999999999999", "1e-999999999999999999999", "1e3000000"} {
		if _, is := fits(number, 38, 18); is {
			t.Error(number)
		}
	}
}
