package declaration

// reveals find the declarations of the public packages' applications.
var reveals []func(public any) *Application

// Reveal lets Revealed look into applications of a public package. It is called while the program is initialized.
func Reveal(reveal func(public any) *Application) struct{} {
	reveals = append(reveals, reveal)
	return struct{}{}
}

// Revealed returns the declaration of a public package's application; nil: it is none.
func Revealed(public any) *Application {
	for _, reveal := range reveals {
		if found := reveal(public); found != nil {
			return found
		}
	}
	return nil
}
