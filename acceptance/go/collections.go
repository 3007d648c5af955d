package main

import (
	"errors"
	"slices"
	"time"

	"github.com/couchbase/gocb/v2"
)

// Scopes and collections, and documents in them.
var collectionCases = []testCase{
	{"collections-come-and-go", collectionsComeAndGo},
	{"documents-in-collections", documentsInCollections},
	{"dropped-collection", droppedCollection},
	{"collection-expiry", collectionExpiry},
	{"collection-expiry-changes", collectionExpiryChanges},
	{"unknown-collection", unknownCollection},
}

// listed tells the names of a scope's collections; `nil` of a scope that is not there.
func listed(s *sdk, scope string) ([]string, error) {
	scopes, err := s.bucket.CollectionsV2().GetAllScopes(nil)
	if err != nil {
		return nil, err
	}
	for _, each := range scopes {
		if each.Name == scope {
			names := []string{}
			for _, collection := range each.Collections {
				names = append(names, collection.Name)
			}
			slices.Sort(names)
			return names, nil
		}
	}
	return nil, nil
}

// created makes a collection, which can be used.
func created(
	s *sdk, name string, settings *gocb.CreateCollectionSettings,
) (*gocb.Collection, error) {
	manager := s.bucket.CollectionsV2()
	err := manager.CreateScope("shop", nil)
	if err != nil && !errors.Is(err, gocb.ErrScopeExists) {
		return nil, err
	}
	err = manager.CreateCollection("shop", name, settings, nil)
	return s.bucket.Scope("shop").Collection(name), err
}

// expectUnknown reads and writes where no collection is known: refused, or in vain.
func expectUnknown(collection *gocb.Collection) error {
	_, read := collection.Get("k", &gocb.GetOptions{Timeout: briefly})
	_, stored := collection.Upsert("k", numbered{2}, &gocb.UpsertOptions{Timeout: briefly})
	for _, err := range []error{read, stored} {
		if err := expectError(
			err, gocb.ErrCollectionNotFound, gocb.ErrScopeNotFound, gocb.ErrTimeout,
		); err != nil {
			return err
		}
	}
	return nil
}

func collectionsComeAndGo(s *sdk) error {
	manager := s.bucket.CollectionsV2()
	fruit := func(scope string) error {
		return manager.CreateCollection(scope, "fruit", nil, nil)
	}
	if err := steps(
		func() error { return manager.CreateScope("market", nil) },
		func() error {
			return expectError(manager.CreateScope("market", nil), gocb.ErrScopeExists)
		},
		func() error { return fruit("market") },
		func() error { return expectError(fruit("market"), gocb.ErrCollectionExists) },
		func() error { return expectError(fruit("nowhere"), gocb.ErrScopeNotFound) },
		func() error {
			return expect(manager.CreateScope("_mine", nil) != nil, "a name of the system's")
		},
	); err != nil {
		return err
	}
	names, err := listed(s, "market")
	if err != nil {
		return err
	}
	drop := func() error { return manager.DropCollection("market", "fruit", nil) }
	if err := steps(
		func() error { return expect(slices.Equal(names, []string{"fruit"}), "collections") },
		drop,
		func() error { return expectError(drop(), gocb.ErrCollectionNotFound) },
		func() error { return manager.DropScope("market", nil) },
		func() error {
			return expectError(manager.DropScope("market", nil), gocb.ErrScopeNotFound)
		},
	); err != nil {
		return err
	}
	names, err = listed(s, "market")
	return errors.Join(err, expect(names == nil, "the scope is gone"))
}

func documentsInCollections(s *sdk) error {
	fruit, err := created(s, "fruit", nil)
	if err != nil {
		return err
	}
	nuts, err := created(s, "nuts", nil)
	if err != nil {
		return err
	}
	key := s.key()
	if err := errors.Join(upsert(fruit, key, 1), upsert(nuts, key, 2)); err != nil {
		return err
	}
	_, elsewhere := s.collection.Get(key, nil)
	if _, err := fruit.Remove(key, nil); err != nil {
		return err
	}
	counted, err := nuts.Binary().Increment("count", &gocb.IncrementOptions{Initial: 7, Delta: 1})
	if err != nil {
		return err
	}
	return steps(
		func() error { return expectError(elsewhere, gocb.ErrDocumentNotFound) },
		func() error { return expectExists(fruit, key, false) },
		func() error { return expectExists(nuts, key, true) },
		func() error { return expectEqual(counted.Content(), 7, "counter") },
	)
}

func droppedCollection(s *sdk) error {
	collection, err := created(s, "short", nil)
	if err != nil {
		return err
	}
	if err := steps(
		func() error { return upsert(collection, "k", 1) },
		func() error { return s.bucket.CollectionsV2().DropCollection("shop", "short", nil) },
		func() error { return expectUnknown(collection) },
	); err != nil {
		return err
	}
	again, err := created(s, "short", nil)
	if err != nil {
		return err
	}
	return steps(
		func() error { return expectExists(again, "k", false) },
		func() error { return upsert(again, "k", 3) },
		func() error { return expectExists(again, "k", true) },
	)
}

// waitUntilOver waits until a document is gone.
func waitUntilOver(collection *gocb.Collection) error {
	isOver := func() bool {
		result, err := collection.Exists("k", nil)
		return err == nil && !result.Exists()
	}
	return waitUntil(isOver, readyIn, "it is over by itself")
}

func collectionExpiry(s *sdk) error {
	brief := &gocb.CreateCollectionSettings{MaxExpiry: 2 * time.Second}
	collection, err := created(s, "fresh", brief)
	if err != nil {
		return err
	}
	if err := upsert(collection, "k", 1); err != nil {
		return err
	}
	return steps(
		func() error { return expectExists(collection, "k", true) },
		func() error { return waitUntilOver(collection) },
	)
}

func collectionExpiryChanges(s *sdk) error {
	collection, err := created(s, "changing", nil)
	if err != nil {
		return err
	}
	settings := gocb.UpdateCollectionSettings{MaxExpiry: time.Second}
	update := func(name string) error {
		return s.bucket.CollectionsV2().UpdateCollection("shop", name, settings, nil)
	}
	return steps(
		func() error { return update("changing") },
		func() error { return upsert(collection, "k", 1) },
		func() error { return waitUntilOver(collection) },
		func() error { return expectError(update("none"), gocb.ErrCollectionNotFound) },
	)
}

func unknownCollection(s *sdk) error {
	return steps(
		func() error { return expectUnknown(s.bucket.Scope("_default").Collection("unknown")) },
		func() error { return expectUnknown(s.bucket.Scope("unknown").Collection("c")) },
	)
}
