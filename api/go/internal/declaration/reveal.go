package declaration

// reveals contains the functions that Reveal has registered.
var reveals []func(public any) *Application

// Reveal registers a function that returns the declaration within the type Application of a public package, or nil for
// other types. With it, packages wallarootest and goka get at this private field. Call Reveal during initialization.
func Reveal(reveal func(public any) *Application) struct{} {
	reveals = append(reveals, reveal)
	return struct{}{}
}

// Revealed returns the declaration within the Application of a public package, or nil if public is of another type.
func Revealed(public any) *Application {
	for _, reveal := range reveals {
		if found := reveal(public); found != nil {
			return found
		}
	}
	return nil
}
