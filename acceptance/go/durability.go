package main

import (
	"bytes"
	"fmt"
	"time"

	"github.com/couchbase/gocb/v2"
)

var durabilityCases = []testCase{
	{"durable-writes-are-refused", durableWritesAreRefused},
	{"persist-to-active", persistToActive},
	{"restart-keeps-everything", restartKeepsEverything},
	{"restart-goes-on-in-the-same-branch", restartGoesOnInTheSameBranch},
}

const (
	restartCount = 500
	atOnce       = time.Second
)

// durableWritesAreRefused asks for every level: an error at once, and nothing is changed.
func durableWritesAreRefused(s *sdk) error {
	key, before, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	absent := s.key()
	for _, level := range []gocb.DurabilityLevel{
		gocb.DurabilityLevelMajority,
		gocb.DurabilityLevelMajorityAndPersistOnMaster,
		gocb.DurabilityLevelPersistToMajority,
	} {
		for _, target := range []string{key, absent} {
			started := time.Now()
			_, err := s.collection.Upsert(
				target, numbered{2}, &gocb.UpsertOptions{DurabilityLevel: level})
			if err := expectError(err, gocb.ErrFeatureNotAvailable); err != nil {
				return err
			}
			if err := expect(time.Since(started) < atOnce, "refused at once"); err != nil {
				return err
			}
		}
		_, err := s.collection.Remove(key, &gocb.RemoveOptions{DurabilityLevel: level})
		if err := expectError(err, gocb.ErrFeatureNotAvailable); err != nil {
			return err
		}
	}
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	return steps(
		func() error { return expect(s.isGone(absent), "nothing new is stored") },
		func() error { return s.expectNumber(key, 1) },
		func() error { return expectEqual(result.Cas(), before.Cas(), "CAS") },
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
