package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/couchbase/gocb/v2"
)

var durabilityCases = []testCase{
	{"durable-writes-are-committed", durableWritesAreCommitted},
	{"persist-to-active", persistToActive},
	{"restart-keeps-everything", restartKeepsEverything},
	{"restart-goes-on-in-the-same-branch", restartGoesOnInTheSameBranch},
}

const restartCount = 500

// durableWritesAreCommitted asks for every level of every mutation: one node is its own majority.
func durableWritesAreCommitted(s *sdk) error {
	for _, level := range []gocb.DurabilityLevel{
		gocb.DurabilityLevelMajority,
		gocb.DurabilityLevelMajorityAndPersistOnMaster,
		gocb.DurabilityLevelPersistToMajority,
	} {
		if err := s.durableLife(level); err != nil {
			return fmt.Errorf("level %d: %w", level, err)
		}
	}
	return nil
}

// durableLife takes a document from its insertion to its removal.
func (s *sdk) durableLife(level gocb.DurabilityLevel) error {
	key, count := s.key(), s.key()
	first, err := s.collection.Insert(key, numbered{1}, &gocb.InsertOptions{DurabilityLevel: level})
	if err != nil {
		return err
	}
	second, err := s.collection.Upsert(key, numbered{2}, &gocb.UpsertOptions{DurabilityLevel: level})
	if err != nil {
		return err
	}
	_, err = s.collection.Replace(
		key, numbered{3}, &gocb.ReplaceOptions{DurabilityLevel: level, Cas: first.Cas()})
	if err := expectError(err, gocb.ErrCasMismatch); err != nil {
		return err
	}
	third, err := s.collection.Replace(
		key, numbered{3}, &gocb.ReplaceOptions{DurabilityLevel: level, Cas: second.Cas()})
	if err != nil {
		return err
	}
	_, err = s.collection.Insert(key, numbered{4}, &gocb.InsertOptions{DurabilityLevel: level})
	if err := expectError(err, gocb.ErrDocumentExists); err != nil {
		return err
	}
	read, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	for _, number := range []uint64{41, 42} {
		counted, err := s.collection.Binary().Increment(
			count, &gocb.IncrementOptions{Initial: 41, Delta: 1, DurabilityLevel: level})
		if err != nil {
			return err
		}
		if err := expectEqual(counted.Content(), number, "counter"); err != nil {
			return err
		}
	}
	order := third.MutationToken().SequenceNumber() > second.MutationToken().SequenceNumber()
	_, err = s.collection.Remove(key, &gocb.RemoveOptions{DurabilityLevel: level})
	return steps(
		func() error { return err },
		func() error { return expectEqual(read.Cas(), third.Cas(), "CAS") },
		func() error { return expect(order, "seqnos of commits rise") },
		func() error { return expect(s.isGone(key), "removed") },
	)
}

// persistToActive has the SDK ask with OBSERVE_SEQNO until the active node persisted.
func persistToActive(s *sdk) error {
	key, _, err := s.stored(1, &gocb.UpsertOptions{PersistTo: 1, Timeout: readyIn})
	if err != nil {
		return err
	}
	_, err = s.collection.Replace(
		key, numbered{2}, &gocb.ReplaceOptions{PersistTo: 1, Timeout: readyIn})
	if err != nil {
		return err
	}
	if err := s.expectNumber(key, 2); err != nil {
		return err
	}
	_, err = s.collection.Remove(key, &gocb.RemoveOptions{PersistTo: 1, Timeout: readyIn})
	return err
}

// answers tells whether an operation succeeds within a second.
func (s *sdk) answers() bool {
	_, err := s.collection.Exists("restart-0", &gocb.ExistsOptions{Timeout: time.Second})
	return err == nil
}

func restartKeepsEverything(s *sdk) error {
	cas := make(map[string]gocb.Cas)
	for number := range restartCount {
		key := fmt.Sprintf("restart-%d", number)
		result, err := s.collection.Upsert(key, numbered{number}, nil)
		if err != nil {
			return err
		}
		cas[key] = result.Cas()
	}
	removed, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if _, err := s.collection.Remove(removed, nil); err != nil {
		return err
	}
	counter, err := s.counter(41)
	if err != nil {
		return err
	}
	expiring, _, err := s.stored(1, &gocb.UpsertOptions{Expiry: lifetime})
	if err != nil {
		return err
	}
	value := noise(1 << 20)
	large, err := s.storedBytes(value)
	if err != nil {
		return err
	}

	if err := s.restartNode(); err != nil {
		return err
	}

	if err := waitUntil(s.answers, 15*time.Second, "the same SDK object works"); err != nil {
		return err
	}
	for number := range restartCount {
		if err := s.expectUnchanged(number, cas); err != nil {
			return err
		}
	}
	read, err := s.bytesOf(large)
	if err != nil {
		return err
	}
	isGone := func() bool { return s.isGone(expiring) }
	return steps(
		func() error { return expect(bytes.Equal(read, value), "1 MiB comes back unchanged") },
		func() error { return expect(s.isGone(removed), "a removed document stays removed") },
		func() error { return s.expectIncrement(counter, 1, 42) },
		func() error { return waitUntil(isGone, lifetimeMax, "the expiry is kept") },
	)
}

// expectUnchanged reads a document from before the restart.
func (s *sdk) expectUnchanged(number int, cas map[string]gocb.Cas) error {
	key := fmt.Sprintf("restart-%d", number)
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	if err := expectEqual(result.Cas(), cas[key], "CAS of "+key); err != nil {
		return err
	}
	return s.expectNumber(key, number)
}

func restartGoesOnInTheSameBranch(s *sdk) error {
	key, before, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if err := s.restartNode(); err != nil {
		return err
	}
	after, err := s.collection.Upsert(key, numbered{2}, &gocb.UpsertOptions{Timeout: readyIn})
	if err != nil {
		return err
	}
	old, young := before.MutationToken(), after.MutationToken()
	return steps(
		func() error { return expect(after.Cas() > before.Cas(), "the CAS grows") },
		func() error { return expectEqual(young.PartitionUUID(), old.PartitionUUID(), "uuid") },
		func() error {
			return expect(young.SequenceNumber() > old.SequenceNumber(), "seqnos go on")
		},
	)
}
