package wallarootest_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"wallarooapi/wallarootest"
)

// place is where something was declared, which depends on the machine and on other lines.
var place = regexp.MustCompile(`\S+/(\w+\.go):\d+`)

// printer is the T of examples.
type printer struct{}

func (*printer) Helper()             {}
func (*printer) Cleanup(func())      {}
func (*printer) Failed() bool        { return false }
func (*printer) Logf(string, ...any) {}

func (*printer) Errorf(format string, args ...any) {
	fmt.Println(place.ReplaceAllString(fmt.Sprintf(format, args...), "$1"))
}

func (p *printer) Fatalf(format string, args ...any) { p.Errorf(format, args...) }

// recorder is the T of a test that must fail.
type recorder struct {
	said   []string
	logged []string
	ends   []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(end func())        { r.ends = append(r.ends, end) }
func (r *recorder) Failed() bool              { return len(r.said) > 0 }
func (r *recorder) Logf(f string, a ...any)   { r.logged = append(r.logged, fmt.Sprintf(f, a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.said = append(r.said, fmt.Sprintf(f, a...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// failing runs a test and records its messages.
func failing(test func(t wallarootest.T)) *recorder {
	r := &recorder{}
	func() {
		defer func() {
			if recovered := recover(); recovered != nil && recovered != any(r) {
				panic(recovered)
			}
		}()
		test(r)
	}()
	for _, end := range r.ends {
		end()
	}
	return r
}

// expectSaid fails unless the failures of the recorded test contain all given texts.
func expectSaid(t *testing.T, r *recorder, texts ...string) {
	t.Helper()
	said := strings.Join(r.said, "\n")
	if len(r.said) == 0 {
		t.Error("the test did not fail")
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("%q is not in: %s", text, said)
		}
	}
}
