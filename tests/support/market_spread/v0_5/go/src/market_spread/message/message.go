// Package message has what market_spread reads, keeps and writes, and how it is serialized.
package message

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"math"
)

type Order struct {
	Account  uint32
	ID       string
	Symbol   string
	Quantity float64
	Price    float64
	At       uint64
}

type Quote struct {
	Symbol     string
	Bid, Offer float64
}

type Result struct {
	Order      *Order
	Bid, Offer float64
}

// framed is what both decoders have.
type framed struct{}

func (framed) HeaderLength() uint64          { return 4 }
func (framed) PayloadLength(b []byte) uint64 { return uint64(binary.BigEndian.Uint32(b)) }

type OrderDecoder struct{ framed }

func (*OrderDecoder) Decode(b []byte) interface{} {
	return &Order{
		Account: binary.BigEndian.Uint32(b), ID: string(b[4:12]), Symbol: string(b[12:16]),
		Quantity: number(b[16:]), Price: number(b[24:]), At: binary.BigEndian.Uint64(b[32:]),
	}
}

type QuoteDecoder struct{ framed }

func (*QuoteDecoder) Decode(b []byte) interface{} {
	return &Quote{Symbol: string(b[:4]), Bid: number(b[4:]), Offer: number(b[12:])}
}

func number(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }

type ResultEncoder struct{}

func (*ResultEncoder) Encode(data interface{}) []byte {
	r := data.(*Result)
	out := new(bytes.Buffer)
	binary.Write(out, binary.BigEndian, uint32(56))
	fmt.Fprintf(out, "%8s%4s", r.Order.ID, r.Order.Symbol)
	for _, each := range []interface{}{r.Order.Account, r.Order.Quantity, r.Order.Price, r.Bid, r.Offer, r.Order.At} {
		binary.Write(out, binary.BigEndian, each)
	}
	return out.Bytes()
}

func init() {
	for _, each := range []interface{}{&Order{}, &Quote{}, &Result{}} {
		gob.Register(each)
	}
}

func Serialize(data interface{}) []byte {
	var out bytes.Buffer
	if err := gob.NewEncoder(&out).Encode(&data); err != nil {
		panic(err)
	}
	return out.Bytes()
}

func Deserialize(b []byte) (data interface{}) {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&data); err != nil {
		panic(err)
	}
	return data
}
