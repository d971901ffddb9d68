package topology

import "crypto/sha256"

// Remote is a component of another program.
type Remote struct {
	Worker string // name of the program's worker in the document
	Target string // path of the other program as this program has passed it to OtherProgram
	Name   string // name under which the other program offers the component
	Kind   string // kind of the step
	Input  string // codecs
	Output string
}

// Offered is a component of a library, as other programs must describe it.
type Offered struct {
	Name    string
	Kind    string
	Input   string
	Output  string
	Outputs []OfferedOutput
	Component
}

// OfferedOutput is a named output of a component of a library.
type OfferedOutput struct {
	Name  string
	Codec string
}

func (o *Offered) tree() Object {
	members := Object{{"name", o.Name}, {"kind", o.Kind}, {"input", o.Input}, {"output", o.Output}}
	if len(o.Outputs) == 0 {
		return members
	}
	return append(members, Member{"outputs", arrayOf(o.Outputs, func(o *OfferedOutput) Object {
		return Object{{"name", o.Name}, {"codec", o.Codec}}
	})})
}

// Library is a program that hosts components for other programs.
type Library struct {
	Worker     Worker
	Components []Offered // sorted by name
}

// Own returns the entry of the program that makes the document.
func (l *Library) Own() *Worker { return &l.Worker }

// Hash returns the interface hash, which covers everything on which the other programs must agree.
func (l *Library) Hash() string {
	digest := sha256.Sum256(Canonical(Object{{"components", arrayOf(l.Components, (*Offered).tree)}}))
	return Notation(digest[:])
}

// Tree returns the library in the form that mode emit writes.
func (l *Library) Tree() Object {
	components := arrayOf(l.Components, func(o *Offered) Object { return append(o.tree(), o.symbol()...) })
	return Object{{"worker", l.Worker.tree()}, {"components", components}}
}
