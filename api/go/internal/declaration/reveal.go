package declaration

// reveals has the functions that Reveal has registered. Revealed asks them for the declaration of an Application.
var reveals []func(public any) *Application

// Reveal registers a function that returns the private declaration of the type Application of a public package, or nil
// for other types. It gives packages wallarootest and goka access to the declaration. Call Reveal during
// initialization.
func Reveal(reveal func(public any) *Application) struct{} {
	reveals = append(reveals, reveal)
	return struct{}{}
}

// Revealed returns the declaration of an Application of a public package, or nil if public is of another type.
func Revealed(public any) *Application {
	for _, reveal := range reveals {
		if found := reveal(public); found != nil {
			return found
		}
	}
	return nil
}
