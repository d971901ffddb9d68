package monitor_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/mux"

	"wallarooapi/goka"
	"wallarooapi/goka/codec"
	"wallarooapi/goka/tester"
	"wallarooapi/goka/web/monitor"
)

func TestPages(t *testing.T) {
	graph := goka.DefineGroup("watched", goka.Input("in", new(codec.String), func(ctx goka.Context, _ any) { ctx.SetValue("v") }),
		goka.Persist(new(codec.String)))
	kafka := tester.New(t)
	processor, err := goka.NewProcessor(nil, graph, goka.WithTester(kafka))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- processor.Run(ctx) }()
	kafka.Consume("in", "k", "v")
	router := mux.NewRouter()
	server := monitor.NewServer("/monitor", router)
	server.AttachProcessor(processor)
	for path, wanted := range map[string]string{
		"/monitor/": "watched", "/monitor/processor/0": "watched", "/monitor/processor/1": "404", "/monitor/view/0": "404",
		"/monitor/data/view/0": "404", "/monitor/data/processor/-1": "404", "/monitor/data/other/0": "404",
	} {
		answer := httptest.NewRecorder()
		router.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
		if !strings.Contains(answer.Body.String(), wanted) {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, httptest.NewRequest("GET", "/monitor/data/processor/0", nil))
	var stats goka.ProcessorStats
	if err := json.Unmarshal(answer.Body.Bytes(), &stats); err != nil || stats.Group[0].Input["in"].Count != 1 {
		t.Errorf("%v: %s", err, answer.Body)
	}
	stop()
	if err := <-ended; err != nil || server.BasePath() != "/monitor" {
		t.Error(err)
	}
}
