// Package templates exports the templates of Goka's web pages, so that programs need not import Goka.
package templates

import theirs "github.com/lovoo/goka/web/templates"

// These types are aliases of Goka's types.
type (
	EmbedLoader = theirs.EmbedLoader
	Loader      = theirs.Loader
)

// These are Goka's variables.
var (
	BaseTemplates = theirs.BaseTemplates
	DefaultLoader = theirs.DefaultLoader
)

// These are Goka's functions. See [github.com/lovoo/goka/web/templates].
var (
	LoadTemplates  = theirs.LoadTemplates
	NewEmbedLoader = theirs.NewEmbedLoader
)
