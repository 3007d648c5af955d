package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/couchbase/gocb/v2"
)

const (
	bucketName = "default"
	readyIn    = 10 * time.Second
)

// sdk holds the objects that all cases share; they are connected once.
type sdk struct {
	cluster    *gocb.Cluster
	bucket     *gocb.Bucket
	collection *gocb.Collection
	keys       atomic.Int64
	node       *bufio.Scanner
}

func newSdk() (*sdk, error) {
	cluster, err := connect(os.Getenv("SETTEE_USER"), os.Getenv("SETTEE_PASSWORD"))
	if err != nil {
		return nil, err
	}
	bucket := cluster.Bucket(bucketName)
	if err := bucket.WaitUntilReady(readyIn, nil); err != nil {
		return nil, err
	}
	return &sdk{
		cluster:    cluster,
		bucket:     bucket,
		collection: bucket.DefaultCollection(),
		node:       bufio.NewScanner(os.Stdin),
	}, nil
}

// connect makes a cluster object; the SDK connects in the background.
func connect(user, password string) (*gocb.Cluster, error) {
	return gocb.Connect(os.Getenv("SETTEE_CONNECT"), gocb.ClusterOptions{
		Authenticator: gocb.PasswordAuthenticator{Username: user, Password: password},
		TimeoutsConfig: gocb.TimeoutsConfig{
			ConnectTimeout:   readyIn,
			KVTimeout:        10 * time.Second,
			KVDurableTimeout: readyIn,
		},
	})
}

func (s *sdk) close() {
	_ = s.cluster.Close(nil)
}

// key returns one that no other case uses.
func (s *sdk) key() string {
	return fmt.Sprintf("key-%d", s.keys.Add(1))
}

// restartNode asks the program that started the node, and waits for its answer.
func (s *sdk) restartNode() error {
	fmt.Println("NODE restart")
	if !s.node.Scan() || s.node.Text() != "NODE ready" {
		return errors.New("the node was not restarted")
	}
	return nil
}
