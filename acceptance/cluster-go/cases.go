package main

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/couchbase/gocb/v2"
)

// vbuckets is how many the clusters have; the active copies of the even ones are on the first node.
const vbuckets = 64

func durableWritesAtEveryLevel(s *sdk) error {
	for _, level := range levels {
		for n := range count {
			key := fmt.Sprintf("durable-%d-%d", level, n)
			insert := &gocb.InsertOptions{DurabilityLevel: level}
			if _, err := s.collection.Insert(key, number{0}, insert); err != nil {
				return err
			}
			replace := &gocb.ReplaceOptions{DurabilityLevel: level}
			if _, err := s.collection.Replace(key, number{1}, replace); err != nil {
				return err
			}
			if err := s.expectNumber(key, 1); err != nil {
				return err
			}
			if n%2 == 0 {
				continue
			}
			remove := &gocb.RemoveOptions{DurabilityLevel: level}
			if _, err := s.collection.Remove(key, remove); err != nil {
				return err
			}
			if _, err := s.collection.Get(key, nil); !errors.Is(err, gocb.ErrDocumentNotFound) {
				return fmt.Errorf("%s was removed, and a read says %v", key, err)
			}
		}
	}
	return s.order("replicated")
}

func replicasCanBeRead(s *sdk) error {
	for n := range count {
		if err := s.put(fmt.Sprintf("replica-%d", n), n, gocb.DurabilityLevelNone); err != nil {
			return err
		}
	}
	if err := s.order("replicated"); err != nil {
		return err
	}
	for n := range count {
		all, err := s.collection.GetAllReplicas(fmt.Sprintf("replica-%d", n), nil)
		if err != nil {
			return err
		}
		copies, replicas := 0, 0
		for result := all.Next(); result != nil; result = all.Next() {
			var got number
			if err := result.Content(&got); err != nil || got.N != n {
				return fmt.Errorf("a copy is %v (%v), expected %d", got, err, n)
			}
			copies++
			if result.IsReplica() {
				replicas++
			}
		}
		if copies != 2 || replicas != 1 {
			return fmt.Errorf("%d copies and %d replicas, expected 2 and 1", copies, replicas)
		}
		if _, err := s.collection.GetAnyReplica(fmt.Sprintf("replica-%d", n), nil); err != nil {
			return err
		}
	}
	return nil
}

func stoppedReplicaMakesWritesAmbiguous(s *sdk) error {
	var keys []string
	for n := 0; len(keys) < 3; n++ {
		key := fmt.Sprintf("stopped-%d", n)
		vbucket := (crc32.ChecksumIEEE([]byte(key)) >> 16 & 0x7fff) % vbuckets
		if vbucket%2 == 0 {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if err := s.put(key, 1, gocb.DurabilityLevelNone); err != nil {
			return err
		}
	}
	if err := s.order("pause 1"); err != nil {
		return err
	}
	err := s.put(keys[0], 2, gocb.DurabilityLevelMajority)
	if !errors.Is(err, gocb.ErrDurabilityAmbiguous) && !errors.Is(err, gocb.ErrAmbiguousTimeout) {
		return fmt.Errorf("a durable write without its replica ended with %v", err)
	}
	if err := s.expectNumber(keys[0], 1); err != nil {
		return fmt.Errorf("what is not committed is not seen: %w", err)
	}
	if err := s.put(keys[1], 3, gocb.DurabilityLevelNone); err != nil {
		return fmt.Errorf("an ordinary write: %w", err)
	}
	if err := s.order("resume 1"); err != nil {
		return err
	}
	written := func() bool { return s.put(keys[0], 4, gocb.DurabilityLevelMajority) == nil }
	if err := waitUntil(written, "durable writes go on"); err != nil {
		return err
	}
	return s.expectNumber(keys[0], 4)
}

func failoverKeepsTheSdkWorking(s *sdk) error {
	key := func(n int) string { return fmt.Sprintf("failover-%d", n) }
	for n := range count {
		if err := s.put(key(n), n, gocb.DurabilityLevelPersistToMajority); err != nil {
			return err
		}
	}
	if err := errors.Join(s.order("kill 0"), s.order("failover 0")); err != nil {
		return err
	}
	for n := range count {
		readable := func() bool { return s.expectNumber(key(n), n) == nil }
		if err := waitUntil(readable, key(n)+" can be read"); err != nil {
			return err
		}
		if err := s.put(key(n), n+1000, gocb.DurabilityLevelNone); err != nil {
			return err
		}
	}
	// One of two copies is missing: no majority can be reached.
	err := s.put(key(0), 0, gocb.DurabilityLevelMajority)
	if !errors.Is(err, gocb.ErrDurabilityImpossible) {
		return fmt.Errorf("a durable write without a majority ended with %v", err)
	}
	if err := errors.Join(s.order("recover 0"), s.order("replicated")); err != nil {
		return err
	}
	written := func() bool { return s.put(key(0), 1000, gocb.DurabilityLevelMajority) == nil }
	if err := waitUntil(written, "durable writes go on"); err != nil {
		return err
	}
	// The SDK panics if it scans while it is not connected to a node of the map yet.
	isConnected := func() bool { return s.copies(key(0)) == 2 }
	if err := waitUntil(isConnected, "the replica is read"); err != nil {
		return err
	}
	// The node that has come back has nothing active.
	if err := s.expectScanned("failover-", count); err != nil {
		return err
	}
	for n := range count {
		if err := s.expectNumber(key(n), n+1000); err != nil {
			return err
		}
	}
	return nil
}

// copies says how many copies of a document can be read.
func (s *sdk) copies(key string) int {
	all, err := s.collection.GetAllReplicas(key, nil)
	if err != nil {
		return 0
	}
	count := 0
	for all.Next() != nil {
		count++
	}
	return count
}

// expectScanned scans the keys with the prefix on all nodes.
func (s *sdk) expectScanned(prefix string, wanted int) error {
	options := &gocb.ScanOptions{IDsOnly: true}
	result, err := s.collection.Scan(gocb.NewRangeScanForPrefix(prefix), options)
	if err != nil {
		return fmt.Errorf("a scan of %s: %w", prefix, err)
	}
	got := 0
	for result.Next() != nil {
		got++
	}
	if err := result.Err(); err != nil {
		return fmt.Errorf("a scan of %s: %w", prefix, err)
	}
	if got != wanted {
		return fmt.Errorf("a scan of %s has %d documents instead of %d", prefix, got, wanted)
	}
	return nil
}
