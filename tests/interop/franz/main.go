// What a user of franz-go does, against a broker: `franz HOST:PORT`. Prints what it saw, one line each.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	seed string
	ctx  context.Context
)

func main() {
	seed = os.Args[1]
	var cancel context.CancelFunc
	ctx, cancel = context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	admin := kadm.NewClient(client())
	defer admin.Close()
	for _, topic := range []string{"records", "transactions", "in", "out", "grouped", "shared"} {
		must1(admin.CreateTopic(ctx, 4, 1, nil, topic))
	}
	records()
	transactions(admin)
	exactlyOnce(admin)
	group(admin, "classic")
	group(admin, "consumer", kgo.ServerSideBalancer())
	offsets(admin)
	share()
}

func client(options ...kgo.Opt) *kgo.Client {
	options = append([]kgo.Opt{kgo.SeedBrokers(seed), kgo.FetchMaxWait(200 * time.Millisecond)}, options...)
	return must1(kgo.NewClient(options...))
}

// records sends with every codec, keys and headers, and reads all of it back.
func records() {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	sent := map[string]bool{}
	for name, codec := range codecs {
		producer := client(kgo.ProducerBatchCompression(codec), kgo.DefaultProduceTopic("records"))
		for i := 0; i < 200; i++ {
			value := fmt.Sprintf("%s %d", name, i)
			sent[value] = true
			producer.Produce(ctx, &kgo.Record{
				Key: []byte(fmt.Sprint(i)), Value: []byte(value),
				Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(name)}, {Key: "null"}},
			}, func(_ *kgo.Record, err error) { must(err) })
		}
		must(producer.Flush(ctx))
		producer.Close()
	}
	consumer := client(kgo.ConsumeTopics("records"))
	defer consumer.Close()
	for _, record := range take(consumer, len(sent)) {
		codec := string(record.Headers[0].Value)
		if !sent[string(record.Value)] || string(record.Value[:len(codec)]) != codec || record.Headers[1].Value != nil {
			panic(fmt.Sprintf("never sent: %v", record))
		}
		delete(sent, string(record.Value))
	}
	fmt.Println("records: missing", len(sent))
}

func transactions(admin *kadm.Client) {
	producer := client(kgo.TransactionalID("franz"), kgo.DefaultProduceTopic("transactions"))
	defer producer.Close()
	for round := 0; round < 6; round++ {
		must(producer.BeginTransaction())
		for i := 0; i < 20; i++ {
			must(producer.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("%d %d", round, i))).FirstErr())
		}
		must(producer.EndTransaction(ctx, kgo.TransactionEndTry(round%2 == 0)))
	}
	committed := client(kgo.ConsumeTopics("transactions"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer committed.Close()
	for _, record := range take(committed, 60) {
		if (record.Value[0]-'0')%2 != 0 {
			panic("aborted, and seen: " + string(record.Value))
		}
	}
	uncommitted := client(kgo.ConsumeTopics("transactions"))
	defer uncommitted.Close()
	take(uncommitted, 120)
	// Another of the same id fences the first.
	must(producer.BeginTransaction())
	must(producer.ProduceSync(ctx, kgo.StringRecord("fenced")).FirstErr())
	second := client(kgo.TransactionalID("franz"), kgo.DefaultProduceTopic("transactions"))
	defer second.Close()
	must(second.BeginTransaction())
	must(second.ProduceSync(ctx, kgo.StringRecord("of the second")).FirstErr())
	err := producer.EndTransaction(ctx, kgo.TryCommit)
	fenced := errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced)
	must(second.EndTransaction(ctx, kgo.TryCommit))
	described := must1(admin.DescribeTransactions(ctx, "franz"))["franz"]
	for described.State != "CompleteCommit" {
		described = must1(admin.DescribeTransactions(ctx, "franz"))["franz"]
	}
	fmt.Println("transactions: fenced", fenced, "state", described.State)
}

// exactlyOnce copies in transactions that carry the offsets of a group; every third is given up.
func exactlyOnce(admin *kadm.Client) {
	producer := client(kgo.DefaultProduceTopic("in"))
	for i := 0; i < 300; i++ {
		producer.Produce(ctx, kgo.StringRecord(fmt.Sprint(i)), func(_ *kgo.Record, err error) { must(err) })
	}
	must(producer.Flush(ctx))
	producer.Close()
	session := must1(kgo.NewGroupTransactSession(
		kgo.SeedBrokers(seed), kgo.TransactionalID("franz-copy"), kgo.ConsumerGroup("franz-copy"), kgo.ConsumeTopics("in"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.DefaultProduceTopic("out"), kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	))
	defer session.Close()
	copied := 0
	for round := 1; copied < 300; round++ {
		fetches := session.PollRecords(ctx, 25)
		must(fetches.Err())
		must(session.Begin())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(ctx, &kgo.Record{Value: record.Value}, func(_ *kgo.Record, err error) { must(err) })
		})
		must(session.Client().Flush(ctx)) // else an abort would not send what waits
		committed := must1(session.End(ctx, kgo.TransactionEndTry(round%3 != 0)))
		if committed {
			copied += fetches.NumRecords()
		}
	}
	consumer := client(kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer consumer.Close()
	different := map[string]bool{}
	for _, record := range take(consumer, 300) {
		different[string(record.Value)] = true
	}
	fmt.Println("copied", copied, "different", len(different), "lag", lag(admin, "franz-copy", "in"))
}

// group has three members, one after the other, then two: together they see every record.
func group(admin *kadm.Client, kind string, options ...kgo.Opt) {
	name := "franz-" + kind
	seen := map[string]bool{}
	member := func() *kgo.Client {
		return client(append(options,
			kgo.ConsumerGroup(name), kgo.ConsumeTopics("grouped"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.DisableAutoCommit(), kgo.HeartbeatInterval(300*time.Millisecond),
		)...)
	}
	members := []*kgo.Client{}
	poll := func() {
		for _, each := range members {
			short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			each.PollFetches(short).EachRecord(func(record *kgo.Record) { seen[string(record.Value)] = true })
			cancel()
			must(each.CommitUncommittedOffsets(ctx))
		}
	}
	for count := 1; count <= 3; count++ {
		members = append(members, member())
		for balance(admin, name) != fmt.Sprint(map[int]string{1: "[4]", 2: "[2 2]", 3: "[1 1 2]"}[count]) {
			poll()
		}
	}
	producer := client(kgo.DefaultProduceTopic("grouped"))
	for i := 0; i < 200; i++ {
		must(producer.ProduceSync(ctx, kgo.StringRecord(fmt.Sprintf("%s %d", kind, i))).FirstErr())
	}
	producer.Close()
	members[0].Close()
	members = members[1:]
	for balance(admin, name) != "[2 2]" || lag(admin, name, "grouped") != 0 {
		poll()
	}
	count := 0
	for value := range seen {
		if value[:len(kind)] == kind {
			count++
		}
	}
	fmt.Println(kind, "group: seen", count, "of the new protocol", isNew(admin, name))
	for _, each := range members {
		each.Close()
	}
}

// balance tells how many partitions each member has, whichever kind of group it is.
func balance(admin *kadm.Client, group string) string {
	counts := []int{}
	if described, err := admin.DescribeConsumerGroups(ctx, group); err == nil && described[group].Err == nil {
		for _, member := range described[group].Members {
			count := 0
			for _, partitions := range member.Assignment {
				count += len(partitions)
			}
			counts = append(counts, count)
		}
	} else {
		described := must1(admin.DescribeGroups(ctx, group))[group]
		for _, member := range described.Members {
			if assigned, ok := member.Assigned.AsConsumer(); ok {
				count := 0
				for _, topic := range assigned.Topics {
					count += len(topic.Partitions)
				}
				counts = append(counts, count)
			}
		}
	}
	sort.Ints(counts)
	return fmt.Sprint(counts)
}

func isNew(admin *kadm.Client, group string) bool {
	described, err := admin.DescribeConsumerGroups(ctx, group)
	return err == nil && described[group].Err == nil
}

func lag(admin *kadm.Client, group, topic string) int64 {
	offsets := must1(admin.FetchOffsets(ctx, group))
	ends := must1(admin.ListCommittedOffsets(ctx, topic))
	total := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		at, found := offsets.Lookup(topic, end.Partition)
		if found {
			total += end.Offset - at.At
		} else {
			total += end.Offset
		}
	})
	return total
}

func offsets(admin *kadm.Client) {
	starts := must1(admin.ListStartOffsets(ctx, "records"))
	ends := must1(admin.ListEndOffsets(ctx, "records"))
	total := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup("records", end.Partition)
		total += end.Offset - start.Offset
	})
	deleted := must1(admin.DeleteRecords(ctx, ends.Offsets()))
	must(deleted.Error())
	late := must1(admin.ListOffsetsAfterMilli(ctx, time.Now().Add(time.Hour).UnixMilli(), "records"))
	must(late.Error())
	starts = must1(admin.ListStartOffsets(ctx, "records"))
	left := int64(0)
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup("records", end.Partition)
		left += end.Offset - start.Offset
	})
	fmt.Println("offsets: records", total, "left", left)
}

// share has two members of a share group, which begins at the start. They release every fifth record once.
func share() {
	const count = 200
	producer := client(kgo.DefaultProduceTopic("shared"))
	for i := 0; i < count; i++ {
		must(producer.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(i))).FirstErr())
	}
	producer.Close()
	refused := 0
	members := []*kgo.Client{}
	for i := 0; i < 2; i++ {
		members = append(members, client(
			kgo.ShareGroup("franz-share"), kgo.ConsumeTopics("shared"), kgo.ShareMaxRecords(20), kgo.ShareMaxRecordsStrict(),
			kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
				if results.Error() != nil {
					refused++
				}
			}),
		))
	}
	accepted := map[string]int{}
	again := 0
	for len(accepted) < count {
		for _, each := range members {
			short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			each.PollFetches(short).EachRecord(func(record *kgo.Record) {
				if record.DeliveryCount() == 1 && record.Offset%5 == 0 {
					record.Ack(kgo.AckRelease)
					again++
					return
				}
				accepted[string(record.Value)]++
				record.Ack(kgo.AckAccept)
			})
			cancel()
			must(each.FlushAcks(ctx))
		}
	}
	twice := 0
	for _, times := range accepted {
		if times > 1 {
			twice++
		}
	}
	for _, each := range members {
		each.Close()
	}
	fmt.Println("share group: accepted", len(accepted), "twice", twice, "released some", again > 0, "refused", refused)
}

func take(consumer *kgo.Client, count int) []*kgo.Record {
	all := []*kgo.Record{}
	for len(all) < count {
		fetches := consumer.PollFetches(ctx)
		must(fetches.Err())
		all = append(all, fetches.Records()...)
	}
	if len(all) != count {
		panic(fmt.Sprintf("%d records, not %d", len(all), count))
	}
	return all
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func must1[T any](value T, err error) T {
	must(err)
	return value
}
