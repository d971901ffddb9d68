package templates

import (
	"html/template"

	theirs "github.com/lovoo/goka/web/templates"
)

// The types are Goka's.
type (
	// EmbedLoader is Goka's.
	EmbedLoader = theirs.EmbedLoader
	// Loader is Goka's.
	Loader = theirs.Loader
)

// The variables are Goka's.
var (
	BaseTemplates = theirs.BaseTemplates
	DefaultLoader = theirs.DefaultLoader
)

// LoadTemplates is Goka's.
func LoadTemplates(filenames ...string) (*template.Template, error) {
	return theirs.LoadTemplates(filenames...)
}

// NewEmbedLoader is Goka's.
func NewEmbedLoader() *EmbedLoader {
	return theirs.NewEmbedLoader()
}
