// Package monitor serves Goka's web pages about processors and views. The pages show inputs and outputs, partition by
// partition.
package monitor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"github.com/lovoo/goka/web/templates"

	"wallarooapi/goka"
)

const statsTime = 10 * time.Second

// Server serves the web pages of the attached processors and views. It is safe for concurrent use.
type Server struct {
	log        goka.Logger
	basePath   string
	mutex      sync.RWMutex
	views      []*goka.View
	processors []*goka.Processor
}

// Option is an option of NewServer.
type Option func(s *Server)

// WithLogger sets the logger.
func WithLogger(l goka.Logger) Option { return func(s *Server) { s.log = l } }

// NewServer returns a server and adds its pages to router, at the same paths as in Goka: all begin with basePath.
func NewServer(basePath string, router *mux.Router, opts ...Option) *Server {
	s := &Server{log: goka.DefaultLogger(), basePath: basePath}
	for _, option := range opts {
		option(s)
	}
	below := router.PathPrefix(basePath).Subrouter()
	below.HandleFunc("/", s.index)
	below.HandleFunc("/processor/{idx}", s.processor)
	below.HandleFunc("/view/{idx}", s.view)
	below.HandleFunc("/data/{type}/{idx}", s.data)
	return s
}

// BasePath returns the beginning of the paths of the server's pages.
func (s *Server) BasePath() string { return s.basePath }

// AttachProcessor adds a processor to those that the pages show.
func (s *Server) AttachProcessor(processor *goka.Processor) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.processors = append(s.processors, processor)
}

// AttachView adds a view to those that the pages show.
func (s *Server) AttachView(view *goka.View) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.views = append(s.views, view)
}

func (s *Server) index(answer http.ResponseWriter, _ *http.Request) {
	s.render(answer, "index", map[string]any{"page_title": "Monitor", "menu_title": "Index"})
}

func (s *Server) processor(answer http.ResponseWriter, request *http.Request) {
	processor, has := at(s, &s.processors, request)
	if !has {
		http.NotFound(answer, request)
		return
	}
	group := processor.Graph().Group()
	s.render(answer, "details_processor", map[string]any{
		"page_title": fmt.Sprintf("Processor details for %s", group), "title": group, "vars": mux.Vars(request), "renderType": "processor",
	})
}

func (s *Server) view(answer http.ResponseWriter, request *http.Request) {
	view, has := at(s, &s.views, request)
	if !has {
		http.NotFound(answer, request)
		return
	}
	s.render(answer, "details_view", map[string]any{
		"page_title": fmt.Sprintf("View details for %s", view.Topic()), "title": view.Topic(), "vars": mux.Vars(request), "renderType": "view",
	})
}

// data responds with the statistics as JSON.
func (s *Server) data(answer http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), statsTime)
	defer cancel()
	var stats any
	switch mux.Vars(request)["type"] {
	case "processor":
		if processor, has := at(s, &s.processors, request); has {
			stats = processor.StatsWithContext(ctx)
		}
	case "view":
		if view, has := at(s, &s.views, request); has {
			stats = view.Stats(ctx)
		}
	}
	if stats == nil {
		http.NotFound(answer, request)
		return
	}
	if err := json.NewEncoder(answer).Encode(stats); err != nil {
		s.log.Printf("error writing statistics: %v", err)
	}
}

// at returns the processor or view whose number is in the path of a request. If there is none, the second result is
// false.
func at[T any](s *Server, all *[]T, request *http.Request) (found T, has bool) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	number, err := strconv.Atoi(mux.Vars(request)["idx"])
	if err != nil || number < 0 || number >= len(*all) {
		return found, false
	}
	return (*all)[number], true
}

// render responds with the page of one of Goka's templates.
func (s *Server) render(answer http.ResponseWriter, name string, values map[string]any) {
	files := append(slices.Clone(templates.BaseTemplates), "web/templates/monitor/menu.go.html", "web/templates/monitor/"+name+".go.html")
	page, err := templates.LoadTemplates(files...)
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mutex.RLock()
	values["base_path"], values["processors"], values["views"] = s.basePath, s.processors, s.views
	s.mutex.RUnlock()
	if err := page.Execute(answer, values); err != nil {
		s.log.Printf("error rendering a page: %v", err)
	}
}
