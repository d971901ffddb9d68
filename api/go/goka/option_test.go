package goka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka/tester"

	"wallarooapi/goka/codec"
)

// onTester makes a processor of this package that finds its topics in Goka's tester.
func onTester(t *testing.T, kafka *tester.Tester, graph *GroupGraph, options ...ProcessorOption) *Processor {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	own := []ProcessorOption{
		WithTopicManagerBuilder(kafka.TopicManagerBuilder()), WithConsumerSaramaBuilder(kafka.ConsumerBuilder()),
		WithClientID(kafka.RegisterView(GroupTable(graph.Group()), new(codec.Int64))),
	}
	processor, err := NewProcessor([]string{"127.0.0.1:9092"}, graph, append(own, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return processor
}

// TestOptionsThatChangeNothing checks that each option without effect is accepted, and that a line of the log gives the
// reason.
func TestOptionsThatChangeNothing(t *testing.T) {
	for name, option := range map[string]ProcessorOption{
		"WithConsumerGroupBuilder": WithConsumerGroupBuilder(nil), "WithProducerBuilder": WithProducerBuilder(nil),
		"WithBackoffBuilder": WithBackoffBuilder(nil), "WithBackoffResetTimeout": WithBackoffResetTimeout(time.Second),
		"WithPartitionChannelSize": WithPartitionChannelSize(3), "WithHotStandby": WithHotStandby(), "WithRecoverAhead": WithRecoverAhead(),
	} {
		var said bytes.Buffer
		onTester(t, tester.New(t), counted(), WithLogger(log.New(&said, "", 0)), option)
		if lines := strings.Split(said.String(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], "processor g: "+name+": ") {
			t.Errorf("%s: %q", name, lines)
		}
	}
}

// TestPartitionsAreAssigned checks that the rebalance callback gets all partitions of the inputs, with Run and under
// Serve.
func TestPartitionsAreAssigned(t *testing.T) {
	var got []Assignment
	callback := WithRebalanceCallback(func(a Assignment) { got = append(got, a) })
	kafka := tester.New(t)
	onTester(t, kafka, counted(), callback).group.assign()
	graph := counted().WithOptions(callback, WithTopicManagerBuilder(kafka.TopicManagerBuilder()))
	worker := groupOf(graph)
	worker.prepareWorker(nil)
	if want := fmt.Sprint([]Assignment{{0: sarama.OffsetNewest}, {0: sarama.OffsetNewest}}); fmt.Sprint(got) != want {
		t.Errorf("%v instead of %s", got, want)
	}
}

// TestOptionsOfTheGraph checks that options of WithOptions are applied first, and that a hook gets the graph.
func TestOptionsOfTheGraph(t *testing.T) {
	var hooked []*GroupGraph
	hook := WithGroupGraphHook(func(gg *GroupGraph) { hooked = append(hooked, gg) })
	graph := counted().WithOptions(hook, WithNilHandling(NilProcess), WithReplicas(3))
	made := onTester(t, tester.New(t), graph, WithNilHandling(NilDecode)).group
	if made.options.nilHandling != NilDecode || len(hooked) != 1 || hooked[0] != graph {
		t.Errorf("%v, %v", made.options.nilHandling, hooked)
	}
	var document struct {
		Pipelines []struct {
			Sinks []struct {
				Name   string
				Create *struct{ Replicas int }
			}
		}
	}
	if err := json.Unmarshal([]byte(application([]string{"k:9092"}, []*group{made}).ToJson()), &document); err != nil {
		t.Fatal(err)
	}
	for _, sink := range document.Pipelines[0].Sinks {
		if sink.Create == nil || sink.Create.Replicas != 3 {
			t.Errorf("%s: %+v", sink.Name, sink.Create)
		}
	}
}

// TestGetBeforeAndAfterTheRun checks that Get fails before and after a run, and returns values during the run.
func TestGetBeforeAndAfterTheRun(t *testing.T) {
	kafka := tester.New(t)
	processor := onTester(t, kafka, counted())
	for range 2 {
		if _, err := processor.Get("k"); err == nil || err.Error() != "error getting k: the processor does not run" {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	processor.running.Store(&ctx)
	if value, err := processor.Get("k"); value != nil || err != nil {
		t.Fatal(value, err)
	}
	kafka.Consume("g-table", "k", int64(7))
	if value, err := processor.Get("k"); value != int64(7) || err != nil {
		t.Error(value, err)
	}
	stop()
	processor.table.wait()
	if _, err := processor.Get("k"); err == nil {
		t.Error("a processor that has ended answers")
	}
}

// refusing is a topic manager of a cluster with one broker.
type refusing struct{ TopicManager }

const refused = "error creating topic %s, npar=%d, rfactor=2, config=map[string]string{}: kafka server: Replication-factor is invalid - " +
	"Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because only 1 broker(s) are registered."

func (refusing) Partitions(string) ([]int32, error) { return []int32{0}, nil }
func (refusing) Close() error                       { return nil }
func (refusing) EnsureStreamExists(topic string, npar int) error {
	return fmt.Errorf(refused, topic, npar)
}

// unequal is a topic manager whose topics have as many partitions as their names say.
type unequal struct {
	TopicManager
	created map[string]int
}

func (u unequal) Partitions(topic string) ([]int32, error) {
	count, err := strconv.Atoi(topic)
	return make([]int32, count), err
}
func (u unequal) EnsureStreamExists(topic string, npar int) error {
	u.created[topic] = npar
	return nil
}
func (u unequal) EnsureTableExists(topic string, npar int) error { u.created[topic] = npar; return nil }
func (unequal) Close() error                                     { return nil }

// TestCreatedTopicsHavePartitionsLikeTheFirstInput compares NewProcessor with the topology, which Serve gives the
// runtime.
func TestCreatedTopicsHavePartitionsLikeTheFirstInput(t *testing.T) {
	for range 50 {
		ignore, edges := func(Context, any) {}, []Edge{Loop(new(codec.String), func(Context, any) {}), Persist(new(codec.Int64))}
		for _, count := range rand.Perm(9)[:1+rand.IntN(5)] {
			edges = append(edges, Input(Stream(strconv.Itoa(count+1)), new(codec.String), ignore))
		}
		made := unequal{created: map[string]int{}}
		manager := WithTopicManagerBuilder(func([]string) (TopicManager, error) { return made, nil })
		processor, err := NewProcessor(nil, DefineGroup("g", edges...), manager)
		if err != nil {
			t.Fatal(err)
		}
		like := processor.group.creation("delete").Like
		if want := fmt.Sprintf("map[g-loop:%s g-table:%s]", like, like); fmt.Sprint(made.created) != want {
			t.Errorf("%v instead of %s", made.created, want)
		}
	}
}

// TestMoreCopiesThanBrokers checks that the error has Goka's text and a remedy.
func TestMoreCopiesThanBrokers(t *testing.T) {
	manager := WithTopicManagerBuilder(func([]string) (TopicManager, error) { return refusing{}, nil })
	_, err := NewProcessor([]string{"127.0.0.1:9092"}, counted(), manager)
	want := fmt.Sprintf(refused, "g-loop", 1) + "; fix: give NewProcessor the option goka.WithReplicas(1) where there is one broker"
	if err == nil || err.Error() != want {
		t.Errorf("%v instead of %s", err, want)
	}
	if other := errors.New("error checking topic: timeout"); withRemedy(other) != other {
		t.Error("a remedy for another error")
	}
}
