package main

import (
	"fmt"
	"time"

	"github.com/couchbase/gocb/v2"
)

var expiryCases = []testCase{
	{"touch", touch},
	{"touch-missing", touchMissing},
	{"get-and-touch", getAndTouch},
	{"expiry", expiry},
	{"expiry-is-removed-by-upsert", expiryIsRemovedByUpsert},
	{"preserve-expiry", preserveExpiry},
	{"expired-can-be-inserted", expiredCanBeInserted},
}

// Expiry is counted in whole seconds of the clock, so a document may live a second less.
const (
	lifetime    = 2 * time.Second
	lifetimeMin = 900 * time.Millisecond
	lifetimeMax = 4 * time.Second
)

// expectLifetime watches a document with that lifetime, which has just been stored, until it is
// gone.
func (s *sdk) expectLifetime(key string, started time.Time) error {
	stored := time.Now()
	for {
		isGone := s.isGone(key)
		if time.Since(started) >= lifetimeMin {
			break
		}
		if isGone {
			return fmt.Errorf("%s is gone after %v", key, time.Since(started))
		}
		time.Sleep(50 * time.Millisecond)
	}
	left := lifetimeMax - time.Since(stored)
	return waitUntil(func() bool { return s.isGone(key) }, left, key+" expires")
}

func touch(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	started := time.Now()
	touched, err := s.collection.Touch(key, lifetime, nil)
	if err != nil {
		return err
	}
	isMutation := touched.Cas() != 0 && touched.Cas() != stored.Cas()
	if err := expect(isMutation, "a new expiry is a mutation"); err != nil {
		return err
	}
	return s.expectLifetime(key, started)
}

func touchMissing(s *sdk) error {
	_, err := s.collection.Touch(s.key(), lifetime, nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func getAndTouch(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	started := time.Now()
	if _, err := s.collection.GetAndTouch(key, lifetime, nil); err != nil {
		return err
	}
	if err := s.expectLifetime(key, started); err != nil {
		return err
	}
	_, err = s.collection.GetAndTouch(key, lifetime, nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func expiry(s *sdk) error {
	key, _, err := s.stored(1, &gocb.UpsertOptions{Expiry: lifetime})
	if err != nil {
		return err
	}
	if err := s.expectLifetime(key, time.Now()); err != nil {
		return err
	}
	_, getErr := s.collection.Get(key, nil)
	_, replaceErr := s.collection.Replace(key, numbered{2}, nil)
	_, removeErr := s.collection.Remove(key, nil)
	for _, err := range []error{getErr, replaceErr, removeErr} {
		if err := expectError(err, gocb.ErrDocumentNotFound); err != nil {
			return err
		}
	}
	return nil
}

func expiryIsRemovedByUpsert(s *sdk) error {
	options := &gocb.UpsertOptions{Expiry: time.Second}
	passing, _, err := s.stored(1, options)
	if err != nil {
		return err
	}
	lasting, _, err := s.stored(1, options)
	if err != nil {
		return err
	}
	if _, err := s.collection.Upsert(lasting, numbered{2}, nil); err != nil {
		return err
	}
	isGone := func() bool { return s.isGone(passing) }
	if err := waitUntil(isGone, lifetimeMax, "the other document expires"); err != nil {
		return err
	}
	return s.expectNumber(lasting, 2)
}

func preserveExpiry(s *sdk) error {
	started := time.Now()
	key, _, err := s.stored(1, &gocb.UpsertOptions{Expiry: lifetime})
	if err != nil {
		return err
	}
	options := &gocb.UpsertOptions{PreserveExpiry: true}
	if _, err := s.collection.Upsert(key, numbered{2}, options); err != nil {
		return err
	}
	if err := s.expectNumber(key, 2); err != nil {
		return err
	}
	return s.expectLifetime(key, started)
}

func expiredCanBeInserted(s *sdk) error {
	key, _, err := s.stored(1, &gocb.UpsertOptions{Expiry: time.Second})
	if err != nil {
		return err
	}
	isGone := func() bool { return s.isGone(key) }
	if err := waitUntil(isGone, lifetimeMax, "the document expires"); err != nil {
		return err
	}
	if _, err := s.collection.Insert(key, numbered{2}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}
