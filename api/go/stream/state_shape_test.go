package stream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"wallarooapi/stream"
)

func TestADocumentHasTheShapesOfStates(t *testing.T) {
	app := stream.New("Numbers")
	keyed := stream.KeyBy(numbers(app), "key", func(int64) string { return "all" })
	count := func(_ context.Context, in int64, _ *votes) (string, error) { return fmt.Sprint(in), nil }
	stream.MapState(keyed, "count", count).To(textSink)
	stream.CountWindow(keyed, stream.Count{Size: 5, Flush: time.Second}, adding).Done()
	var document struct {
		Workers []struct {
			Components []struct {
				Path  string
				Shape map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(app.ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	for _, component := range document.Workers[0].Components {
		if component.Shape != nil {
			found[component.Path] = component.Shape
		}
	}
	wanted := map[string]map[string]string{"0/steps/1/state": {"Count": "float64", "Sum": "float64"}, "0/steps/2/state": {"": "int64"}}
	if !reflect.DeepEqual(found, wanted) {
		t.Errorf("found %v, wanted %v", found, wanted)
	}
}
