// franz-go at work: `franz NAME BOOTSTRAP READ SEED`. What it prints is described in worker.py.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	partitions = 2
	keptTopics = 3
)

var (
	name, bootstrap, read string
	resting               = make(chan struct{})
	ending                = make(chan struct{})
	line                  sync.Mutex
	ctx                   = context.Background()
)

func main() {
	name, bootstrap, read = os.Args[1], os.Args[2], os.Args[3]
	seed, _ := strconv.ParseInt(os.Args[4], 10, 64)
	var work, members sync.WaitGroup
	for number, job := range []func(*rand.Rand){produce, transact, administer} {
		work.Add(1)
		go func() { defer work.Done(); job(rand.New(rand.NewSource(seed + int64(number)))) }()
	}
	for _, comesAndGoes := range []bool{false, true} {
		members.Add(1)
		go func() { defer members.Done(); member(comesAndGoes, rand.New(rand.NewSource(seed+9))) }()
	}
	rested := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "rest" && !rested {
			rested = true
			close(resting)
			work.Wait()
			say("rests")
		}
	}
	if !rested {
		close(resting)
	}
	close(ending)
	members.Wait()
}

func say(words ...any) {
	line.Lock()
	defer line.Unlock()
	fmt.Println(words...)
}

func goesOn(until chan struct{}, wait time.Duration) bool {
	select {
	case <-until:
		return false
	case <-time.After(wait):
		return true
	}
}

func failed(doing string, err error) {
	text := strings.ReplaceAll(fmt.Sprintf("%s: %v", doing, err), "\n", " ")
	say("E", text[:min(300, len(text))])
	goesOn(ending, 500*time.Millisecond)
}

// content returns the same bytes as `content` of tests/crash/loads.py.
func content(number int) []byte {
	all := []byte(fmt.Sprintf("%d:", number))
	for i := 0; i < number*7919%700; i++ {
		all = append(all, byte(i%256))
	}
	return all
}

func client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner())}, options...)...)
}

func produce(random *rand.Rand) {
	producer, err := client(kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	if err != nil {
		say("V", err)
		return
	}
	defer producer.Close()
	for number := 0; goesOn(resting, 500*time.Millisecond); {
		records := []*kgo.Record{}
		for range 1 + random.Intn(40) {
			records = append(records, &kgo.Record{Topic: name + "-once", Partition: int32(number % partitions), Value: content(number)})
			number++
		}
		words := []any{"A"}
		for _, result := range producer.ProduceSync(ctx, records...) {
			if result.Err != nil {
				failed("producing", result.Err)
				continue
			}
			text := string(result.Record.Value)
			words = append(words, fmt.Sprintf("%d:%d:%s", result.Record.Partition, result.Record.Offset, text[:strings.Index(text, ":")]))
		}
		say(words...)
	}
}

func transact(random *rand.Rand) {
	var producer *kgo.Client
	for number := 1; goesOn(resting, time.Second); number++ {
		count := 1 + random.Intn(10)
		outcome := "a"
		err := func() (err error) {
			if producer == nil {
				if producer, err = client(kgo.TransactionalID(name + "-txn")); err != nil {
					return err
				}
			}
			if err = producer.BeginTransaction(); err != nil {
				return err
			}
			records := []*kgo.Record{}
			for i := range count {
				value := []byte(fmt.Sprintf("%d:%d:%d", number, i, count))
				records = append(records, &kgo.Record{Topic: name + "-txn", Partition: int32(i % partitions), Value: value})
			}
			if err = producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
				return err
			}
			if random.Float64() < 0.3 {
				return producer.EndTransaction(ctx, kgo.TryAbort)
			}
			outcome = "u"
			if err = producer.EndTransaction(ctx, kgo.TryCommit); err == nil {
				outcome = "c"
			}
			return err
		}()
		if err != nil {
			failed("transacting", err)
			if producer != nil {
				producer.Close()
				producer = nil
			}
		}
		say("T", number, outcome, count)
	}
	if producer != nil {
		producer.Close()
	}
}

func member(comesAndGoes bool, random *rand.Rand) {
	for goesOn(ending, 500*time.Millisecond) {
		until := time.Now().Add(24 * time.Hour)
		if comesAndGoes {
			until = time.Now().Add(time.Duration(20+random.Intn(40)) * time.Second)
		}
		consumer, err := client(
			kgo.ConsumerGroup(name), kgo.ConsumeTopics(read), kgo.DisableAutoCommit(), kgo.SessionTimeout(10*time.Second),
			kgo.HeartbeatInterval(time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(),
		)
		if err != nil {
			failed("reading", err)
			continue
		}
		for goesOn(ending, 0) {
			rests := !goesOn(resting, 0)
			if time.Now().After(until) && !rests {
				break
			}
			poll(consumer)
			consumer.AllowRebalance()
		}
		consumer.CloseAllowingRebalance()
	}
}

func poll(consumer *kgo.Client) {
	short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	fetches := consumer.PollRecords(short, 500)
	cancel()
	records := fetches.Records()
	if len(records) == 0 {
		return
	}
	ends := map[int32]int64{}
	for _, record := range records {
		ends[record.Partition] = record.Offset + 1
		at := bytes.IndexByte(record.Value, ':')
		number, err := strconv.Atoi(string(record.Value[:max(at, 0)]))
		if err != nil || int32(number%partitions) != record.Partition || !bytes.Equal(record.Value, content(number)) {
			say("V", fmt.Sprintf("%s-%d has at %d what nobody sent", record.Topic, record.Partition, record.Offset))
		}
	}
	say("R", len(records))
	late, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := consumer.CommitRecords(late, records...); err != nil {
		failed("committing", err)
		return
	}
	words := []any{"C"}
	for partition, offset := range ends {
		words = append(words, fmt.Sprintf("%d:%d", partition, offset))
	}
	say(words...)
}

func administer(random *rand.Rand) {
	for count := 1; goesOn(resting, time.Duration(4000+random.Intn(8000))*time.Millisecond); count++ {
		change("N", count)
		if count > keptTopics {
			change("D", count-keptTopics)
		}
	}
}

func change(sign string, number int) {
	topic := fmt.Sprintf("%s-admin-%d", name, number)
	err := func() error {
		made, err := client()
		if err != nil {
			return err
		}
		admin := kadm.NewClient(made)
		defer admin.Close()
		late, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if sign == "N" {
			_, err = admin.CreateTopic(late, 1, 1, nil, topic)
		} else {
			_, err = admin.DeleteTopic(late, topic)
		}
		return err
	}()
	if err != nil {
		failed("administering", err)
		sign = "X"
	}
	say(sign, topic)
}
