package declaration

// reveals are the registered functions that return the declaration of a public application.
var reveals []func(public any) *Application

// Reveal registers a function that returns the declaration of a public package's application. Call it during
// initialization.
func Reveal(reveal func(public any) *Application) struct{} {
	reveals = append(reveals, reveal)
	return struct{}{}
}

// Revealed returns the declaration of a public package's application, or nil if public is not an application.
func Revealed(public any) *Application {
	for _, reveal := range reveals {
		if found := reveal(public); found != nil {
			return found
		}
	}
	return nil
}
