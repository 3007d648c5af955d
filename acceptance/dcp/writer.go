package main

import (
	"fmt"
	"math/rand"
	"os"
	"sync"
	"time"

	"github.com/couchbase/gocbcore/v10"
)

const (
	bucketName = "default"
	patience   = 30 * time.Second
	// Requests under way at a time.
	pipelined = 200
)

// writer stores documents and remembers them.
type writer struct {
	agent *gocbcore.Agent
	lock  sync.Mutex
	// What there is: values by key.
	documents map[string]string
	random    *rand.Rand
}

func newWriter() (*writer, error) {
	config := gocbcore.AgentConfig{}
	if err := config.FromConnStr(os.Getenv("SETTEE_CONNECT")); err != nil {
		return nil, err
	}
	config.BucketName = bucketName
	config.IoConfig.UseCollections = true
	config.SecurityConfig.Auth = credentials()
	agent, err := gocbcore.CreateAgent(&config)
	if err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	_, err = agent.WaitUntilReady(time.Now().Add(patience), gocbcore.WaitUntilReadyOptions{},
		func(_ *gocbcore.WaitUntilReadyResult, err error) { ready <- err })
	if err == nil {
		err = <-ready
	}
	return &writer{
		agent:     agent,
		documents: map[string]string{},
		random:    rand.New(rand.NewSource(1)),
	}, err
}

func credentials() gocbcore.AuthProvider {
	return gocbcore.PasswordAuthProvider{
		Username: os.Getenv("SETTEE_USER"), Password: os.Getenv("SETTEE_PASSWORD"),
	}
}

// setIn stores a document of a named collection, which is not remembered.
func (w *writer) setIn(scope, collection, key, value string) error {
	done := make(chan error, 1)
	options := gocbcore.SetOptions{
		ScopeName: scope, CollectionName: collection,
		Key: []byte(key), Value: []byte(value), Deadline: time.Now().Add(patience),
	}
	_, err := w.agent.Set(options, func(_ *gocbcore.StoreResult, err error) { done <- err })
	if err == nil {
		err = <-done
	}
	return err
}

func (w *writer) set(key, value string, expirySeconds uint32) error {
	done := make(chan error, 1)
	options := gocbcore.SetOptions{
		Key: []byte(key), Value: []byte(value), Expiry: expirySeconds,
		Deadline: time.Now().Add(patience),
	}
	_, err := w.agent.Set(options, func(_ *gocbcore.StoreResult, err error) { done <- err })
	if err == nil {
		err = <-done
	}
	if err == nil && expirySeconds == 0 {
		w.lock.Lock()
		w.documents[key] = value
		w.lock.Unlock()
	}
	return err
}

func (w *writer) delete(key string) error {
	done := make(chan error, 1)
	options := gocbcore.DeleteOptions{Key: []byte(key), Deadline: time.Now().Add(patience)}
	_, err := w.agent.Delete(options, func(_ *gocbcore.DeleteResult, err error) { done <- err })
	if err == nil {
		err = <-done
	}
	if err == nil {
		w.lock.Lock()
		delete(w.documents, key)
		w.lock.Unlock()
	}
	return err
}

// get makes the node look at a document; whether it is there.
func (w *writer) get(key string) bool {
	done := make(chan error, 1)
	options := gocbcore.GetOptions{Key: []byte(key), Deadline: time.Now().Add(patience)}
	_, err := w.agent.Get(options, func(_ *gocbcore.GetResult, err error) { done <- err })
	return err == nil && <-done == nil
}

// churn stores, overwrites and deletes documents, many at a time, each key in order.
func (w *writer) churn(prefix string, keys, rounds, size int) error {
	places := make(chan struct{}, pipelined)
	errors := make(chan error, keys)
	for number := range keys {
		seed := w.random.Int63()
		places <- struct{}{}
		go func() {
			errors <- w.churnKey(fmt.Sprintf("%s-%d", prefix, number), seed, rounds, size)
			<-places
		}()
	}
	for range keys {
		if err := <-errors; err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) churnKey(key string, seed int64, rounds, size int) error {
	random := rand.New(rand.NewSource(seed))
	exists := false
	for round := range rounds {
		if exists && random.Intn(4) == 0 {
			exists = false
			if err := w.delete(key); err != nil {
				return err
			}
			continue
		}
		exists = true
		value := make([]byte, 1+random.Intn(size))
		for index := range value {
			value[index] = byte('a' + random.Intn(26))
		}
		if err := w.set(key, fmt.Sprintf("%d-%s", round, value), 0); err != nil {
			return err
		}
	}
	return nil
}
