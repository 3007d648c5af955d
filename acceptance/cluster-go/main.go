// Command cluster drives two nodes with the Go SDK, unmodified, and prints a line for its case.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/couchbase/gocb/v2"
)

const (
	bucketName = "default"
	readyIn    = 20 * time.Second
	count      = 40
)

var levels = []gocb.DurabilityLevel{
	gocb.DurabilityLevelMajority,
	gocb.DurabilityLevelMajorityAndPersistOnMaster,
	gocb.DurabilityLevelPersistToMajority,
}

var cases = map[string]func(*sdk) error{
	"sdk-durable-writes-at-every-level":                  durableWritesAtEveryLevel,
	"sdk-replicas-can-be-read":                           replicasCanBeRead,
	"sdk-stopped-replica-makes-durable-writes-ambiguous": stoppedReplicaMakesWritesAmbiguous,
	"sdk-failover-keeps-the-sdk-working":                 failoverKeepsTheSdkWorking,
	"tls-two-nodes":                                      tlsTwoNodes,
}

func main() {
	name := os.Args[1]
	started := time.Now()
	sdk, err := connect()
	if err == nil {
		err = cases[name](sdk)
		_ = sdk.cluster.Close(nil)
	}
	if err != nil {
		line := strings.Join(strings.Fields(err.Error()), " ")
		fmt.Printf("CASE %s FAIL %s\n", name, line[:min(len(line), 400)])
		os.Exit(1)
	}
	fmt.Printf("CASE %s ok (%.1f s)\n", name, time.Since(started).Seconds())
}

// sdk holds the objects that a case uses, and the way to whoever runs the cluster.
type sdk struct {
	cluster    *gocb.Cluster
	collection *gocb.Collection
	runner     *bufio.Scanner
}

func connect() (*sdk, error) {
	cluster, err := gocb.Connect(os.Getenv("SETTEE_CONNECT"), gocb.ClusterOptions{
		Authenticator: gocb.PasswordAuthenticator{
			Username: os.Getenv("SETTEE_USER"), Password: os.Getenv("SETTEE_PASSWORD"),
		},
		TimeoutsConfig: gocb.TimeoutsConfig{
			ConnectTimeout: readyIn, KVTimeout: 5 * time.Second, KVDurableTimeout: 5 * time.Second,
		},
	})
	if err != nil {
		return nil, err
	}
	bucket := cluster.Bucket(bucketName)
	if err := bucket.WaitUntilReady(readyIn, nil); err != nil {
		return nil, err
	}
	return &sdk{cluster, bucket.DefaultCollection(), bufio.NewScanner(os.Stdin)}, nil
}

// order has the cluster do something and waits until it is done.
func (s *sdk) order(order string) error {
	fmt.Printf("CLUSTER %s\n", order)
	if !s.runner.Scan() || s.runner.Text() != "CLUSTER done" {
		return errors.New("the cluster did not do " + order)
	}
	return nil
}

// number is the document that the cases store.
type number struct {
	N int `json:"n"`
}

func (s *sdk) expectNumber(key string, wanted int) error {
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	var got number
	if err := result.Content(&got); err != nil {
		return err
	}
	if got.N != wanted {
		return fmt.Errorf("%s: expected %d, got %d", key, wanted, got.N)
	}
	return nil
}

func (s *sdk) put(key string, n int, level gocb.DurabilityLevel) error {
	options := &gocb.UpsertOptions{DurabilityLevel: level}
	_, err := s.collection.Upsert(key, number{n}, options)
	return err
}

func waitUntil(question func() bool, what string) error {
	deadline := time.Now().Add(readyIn)
	for !question() {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s", readyIn, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}
