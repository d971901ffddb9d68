package goka

import (
	"slices"
	"testing"
)

// TestBrokersOfTheEnvironment checks that brokers in WALLAROO_BROKERS replace those of the program.
func TestBrokersOfTheEnvironment(t *testing.T) {
	program := []string{"k:9092"}
	t.Setenv(brokersVariable, "")
	if got := reached(program); !slices.Equal(got, program) {
		t.Error(got)
	}
	t.Setenv(brokersVariable, "127.0.0.1:1,[::1]:2")
	if got := reached(program); !slices.Equal(got, []string{"127.0.0.1:1", "[::1]:2"}) {
		t.Error(got)
	}
}
