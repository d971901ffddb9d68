package templates

import theirs "github.com/lovoo/goka/web/templates"

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

// The functions are Goka's, as [github.com/lovoo/goka/web/templates] describes them.
var (
	LoadTemplates  = theirs.LoadTemplates
	NewEmbedLoader = theirs.NewEmbedLoader
)
