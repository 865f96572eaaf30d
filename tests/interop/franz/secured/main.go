// What a user of franz-go does on a secured listener: `secured HOST:PORT CA MECHANISM USER PASSWORD`, or instead of a mechanism
// `certificate` with the files of a certificate and its key. An empty CA means no TLS. Prints what it has read.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
	seed, authority, kind, user, password := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	options := []kgo.Opt{kgo.SeedBrokers(seed), kgo.DefaultProduceTopic("t"), kgo.ConsumeTopics("t"), kgo.ConsumerGroup("g")}
	if authority != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(must1(os.ReadFile(authority)))
		config := &tls.Config{RootCAs: roots}
		if kind == "certificate" {
			config.Certificates = []tls.Certificate{must1(tls.LoadX509KeyPair(user, password))}
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if mechanism := login(kind, user, password); mechanism != nil {
		options = append(options, kgo.SASL(mechanism))
	}
	client := must1(kgo.NewClient(options...))
	defer client.Close()
	must(client.Ping(ctx)) // says what is wrong, where others try again
	for i := 0; i < 4; i++ {
		must(client.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint("franz ", i))).FirstErr())
		time.Sleep(time.Second) // a session that ends soon is renewed in between
	}
	for seen := 0; seen < 4; {
		fetches := client.PollFetches(ctx)
		must(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { fmt.Println(string(record.Value)); seen++ })
	}
}

func login(kind, user, password string) sasl.Mechanism {
	switch kind {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: password}.AsMechanism()
	}
	return nil
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must1[T any](value T, err error) T {
	must(err)
	return value
}
