package main

import (
	"errors"
	"time"

	"github.com/couchbase/gocb/v2"
)

const (
	ordersName  = "orders"
	quotaMB     = 100
	briefly     = time.Second
	emptyWithin = 20 * time.Second
)

// Buckets that are made, changed, emptied and deleted while the node runs.
var bucketCases = []testCase{
	{"buckets-are-made-listed-and-dropped", bucketsAreMadeListedAndDropped},
	{"buckets-are-changed", bucketsAreChanged},
	{"a-bucket-is-flushed-where-that-is-enabled", bucketIsFlushed},
	{"buckets-that-cannot-be-are-refused", bucketsThatCannotBe},
	{"a-dropped-bucket-is-gone-for-its-clients", droppedBucketIsGone},
}

// orders is what the bucket is made with.
func orders() gocb.BucketSettings {
	return gocb.BucketSettings{
		Name: ordersName, BucketType: gocb.CouchbaseBucketType, RAMQuotaMB: quotaMB,
	}
}

func create(s *sdk, settings gocb.BucketSettings) error {
	created := gocb.CreateBucketSettings{BucketSettings: settings}
	return s.cluster.Buckets().CreateBucket(created, nil)
}

// withBucket runs a body with a new bucket, which is dropped in the end.
func withBucket(
	s *sdk, settings gocb.BucketSettings, body func(*gocb.BucketManager, *gocb.Collection) error,
) error {
	if err := create(s, settings); err != nil {
		return err
	}
	manager := s.cluster.Buckets()
	documents := s.cluster.Bucket(settings.Name).DefaultCollection()
	// Of a name whose bucket was dropped the SDK waits 5 s before it connects again.
	_, err := documents.Exists("k", &gocb.ExistsOptions{Timeout: emptyWithin})
	if err == nil {
		err = body(manager, documents)
	}
	return errors.Join(err, manager.DropBucket(settings.Name, nil))
}

func expectBuckets(manager *gocb.BucketManager, wanted ...string) error {
	all, err := manager.GetAllBuckets(nil)
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if _, isListed := all[name]; !isListed {
			return errors.New(name + " is listed")
		}
	}
	return expectEqual(len(all), len(wanted), "number of buckets")
}

func expectExists(collection *gocb.Collection, key string, wanted bool) error {
	result, err := collection.Exists(key, nil)
	if err != nil {
		return err
	}
	return expectEqual(result.Exists(), wanted, key+" exists")
}

func upsert(collection *gocb.Collection, key string, n int) error {
	_, err := collection.Upsert(key, numbered{n}, nil)
	return err
}

func bucketsAreMadeListedAndDropped(s *sdk) error {
	manager := s.cluster.Buckets()
	key, _, err := s.stored(7, nil)
	if err != nil {
		return err
	}
	for _, kind := range []gocb.BucketType{gocb.CouchbaseBucketType, gocb.EphemeralBucketType} {
		settings := orders()
		settings.BucketType = kind
		err := withBucket(s, settings, func(_ *gocb.BucketManager, documents *gocb.Collection) error {
			found, err := manager.GetBucket(ordersName, nil)
			if err != nil {
				return err
			}
			_, missing := documents.Get("k", nil)
			return steps(
				func() error { return expectError(create(s, settings), gocb.ErrBucketExists) },
				func() error { return expectEqual(found.RAMQuotaMB, quotaMB, "quota") },
				func() error { return expectEqual(found.BucketType, kind, "type") },
				func() error { return expectBuckets(manager, bucketName, ordersName) },
				func() error { return expectError(missing, gocb.ErrDocumentNotFound) },
				func() error { return upsert(documents, "k", 1) },
				func() error { return expectExists(documents, "k", true) },
			)
		})
		if err != nil {
			return err
		}
		_, err = manager.GetBucket(ordersName, nil)
		again := manager.DropBucket(ordersName, nil)
		if err := errors.Join(
			expectError(err, gocb.ErrBucketNotFound), expectError(again, gocb.ErrBucketNotFound),
		); err != nil {
			return err
		}
	}
	return s.expectNumber(key, 7)
}

func bucketsAreChanged(s *sdk) error {
	return withBucket(s, orders(), func(manager *gocb.BucketManager, documents *gocb.Collection) error {
		settings := orders()
		settings.RAMQuotaMB, settings.NumReplicas, settings.FlushEnabled = quotaMB+50, 1, true
		settings.CompressionMode = gocb.CompressionModeActive
		if err := steps(
			func() error { return upsert(documents, "k", 1) },
			func() error { return manager.UpdateBucket(settings, nil) },
		); err != nil {
			return err
		}
		found, err := manager.GetBucket(ordersName, nil)
		if err != nil {
			return err
		}
		unknown := orders()
		unknown.Name = "none"
		return steps(
			func() error { return expectEqual(found.RAMQuotaMB, quotaMB+50, "quota") },
			func() error { return expectEqual(found.NumReplicas, 1, "replicas") },
			func() error { return expect(found.FlushEnabled, "it may be flushed") },
			func() error {
				return expectEqual(found.CompressionMode, gocb.CompressionModeActive, "compression")
			},
			func() error { return expectExists(documents, "k", true) },
			func() error {
				return expectError(manager.UpdateBucket(unknown, nil), gocb.ErrBucketNotFound)
			},
		)
	})
}

func bucketIsFlushed(s *sdk) error {
	return withBucket(s, orders(), func(manager *gocb.BucketManager, documents *gocb.Collection) error {
		enabled := orders()
		enabled.FlushEnabled = true
		return steps(
			func() error { return upsert(documents, "k", 1) },
			func() error {
				refused := manager.FlushBucket(ordersName, nil)
				return expectError(refused, gocb.ErrBucketNotFlushable)
			},
			func() error { return expectExists(documents, "k", true) },
			func() error { return manager.UpdateBucket(enabled, nil) },
			func() error { return manager.FlushBucket(ordersName, nil) },
			func() error { return expectExists(documents, "k", false) },
			func() error { return upsert(documents, "k", 2) },
			func() error {
				return expectError(manager.FlushBucket("none", nil), gocb.ErrBucketNotFound)
			},
		)
	})
}

func bucketsThatCannotBe(s *sdk) error {
	for _, spoil := range []func(*gocb.BucketSettings){
		func(settings *gocb.BucketSettings) { settings.RAMQuotaMB = 1 << 24 },
		func(settings *gocb.BucketSettings) { settings.RAMQuotaMB = 99 },
		func(settings *gocb.BucketSettings) { settings.Name = "a/b" },
		func(settings *gocb.BucketSettings) { settings.MaxExpiry = (1 << 31) * time.Second },
	} {
		settings := orders()
		spoil(&settings)
		if create(s, settings) == nil {
			return errors.New("what cannot be is refused")
		}
	}
	return expectBuckets(s.cluster.Buckets(), bucketName)
}

func droppedBucketIsGone(s *sdk) error {
	return withBucket(s, orders(), func(manager *gocb.BucketManager, documents *gocb.Collection) error {
		if err := steps(
			func() error { return upsert(documents, "k", 1) },
			func() error { return manager.DropBucket(ordersName, nil) },
		); err != nil {
			return err
		}
		if _, err := documents.Get("k", &gocb.GetOptions{Timeout: briefly}); err == nil {
			return errors.New("nobody reads from a dropped bucket")
		}
		full := orders()
		full.EvictionPolicy = gocb.EvictionPolicyTypeFull
		if err := create(s, full); err != nil {
			return err
		}
		// The SDK keeps the connections of a bucket with its object: another one has new ones.
		cluster, err := connectAsAdministrator()
		if err != nil {
			return err
		}
		defer cluster.Close(nil)
		anew := cluster.Bucket(ordersName).DefaultCollection()
		isMissing := func() bool {
			result, err := anew.Exists("k", &gocb.ExistsOptions{Timeout: briefly})
			return err == nil && !result.Exists()
		}
		return steps(
			func() error { return waitUntil(isMissing, emptyWithin, "the new bucket is empty") },
			func() error { return upsert(anew, "k", 2) },
		)
	})
}
