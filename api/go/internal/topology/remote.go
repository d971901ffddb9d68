package topology

import "crypto/sha256"

// Remote is a component of another program.
type Remote struct {
	Worker string // name that its worker gets in the document
	Target string // the program, as this one names it
	Name   string // under which that program offers it
	Kind   string // of the step
	Input  string // codecs
	Output string
}

// Offered is a component of a library, as other programs must name it.
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

// Hash returns the interface hash: of the parts that other programs must agree with.
func (l *Library) Hash() string {
	digest := sha256.Sum256(Canonical(Object{{"components", arrayOf(l.Components, (*Offered).tree)}}))
	return Notation(digest[:])
}

// Tree returns the library as mode emit writes it.
func (l *Library) Tree() Object {
	components := arrayOf(l.Components, func(o *Offered) Object { return append(o.tree(), o.symbol()...) })
	return Object{{"worker", l.Worker.tree()}, {"components", components}}
}
