package declaration

// reveals are the functions that Reveal has registered.
var reveals []func(public any) *Application

// Reveal registers a function that returns the declaration in a public package's Application, or nil for other types.
// Call it during initialization.
func Reveal(reveal func(public any) *Application) struct{} {
	reveals = append(reveals, reveal)
	return struct{}{}
}

// Revealed returns the declaration in a public package's Application, or nil if public is of another type.
func Revealed(public any) *Application {
	for _, reveal := range reveals {
		if found := reveal(public); found != nil {
			return found
		}
	}
	return nil
}
