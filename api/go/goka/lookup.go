package goka

import (
	"context"
	"fmt"

	"github.com/lovoo/goka/storage"
)

// makeLookups creates the views of the lookup tables, and thereby connects to Kafka.
func (g *group) makeLookups(brokers []string) error {
	for _, e := range g.graph.LookupTables() {
		view, err := g.view(brokers, e, g.options.storage)
		if err != nil {
			return fmt.Errorf("error creating view: %v", err)
		}
		g.lookups[e.Topic()] = view
	}
	return nil
}

// lookedUp returns the lookup table of a topic, and whether there is one.
func (g *group) lookedUp(topic string) (lookupTable, bool) {
	if table, has := g.memory[topic]; has {
		return table, true
	}
	view, has := g.lookups[topic]
	return view, has
}

// view creates a view (Goka's copy of a table topic) for a Lookup edge or for Get. After an outage of a broker the view
// connects again, as Spark does. Otherwise its error would end the worker while Spark still waits for the broker.
func (g *group) view(brokers []string, e Edge, kept storage.Builder) (*View, error) {
	options := []ViewOption{
		WithViewLogger(g.options.log), WithViewClientID(g.options.clientID), WithViewStorageBuilder(kept),
		WithViewTopicManagerBuilder(g.options.topicManager), WithViewConsumerSaramaBuilder(g.options.consumer),
		WithViewAutoReconnect(),
	}
	if g.options.hasher != nil {
		options = append(options, WithViewHasher(g.options.hasher))
	}
	return NewView(brokers, Table(e.Topic()), e.Codec(), options...)
}

// runLookups starts the views of the lookup tables and returns when all of them have recovered. The views run until ctx
// ends. If a view fails, failed is called, also after runLookups has returned.
func (g *group) runLookups(ctx context.Context, failed func(error)) error {
	ended := make(chan error, len(g.lookups))
	for topic, view := range g.lookups {
		go func() {
			err := view.Run(ctx)
			if err != nil {
				err = fmt.Errorf("error running lookup table %s: %v", topic, err)
				failed(err)
			}
			ended <- err
		}()
	}
	for _, view := range g.lookups {
		select {
		case <-view.WaitRunning():
		case err := <-ended:
			if err != nil {
				return err
			}
			return context.Cause(ctx)
		case <-ctx.Done():
			return fmt.Errorf("error waiting for start up tables: context closed while waiting for startup tables to become ready")
		}
	}
	return nil
}
