package main

import (
	"errors"

	"github.com/couchbase/gocb/v2"
	"github.com/couchbase/gocbcore/v10"
)

var numberCases = []testCase{
	{"append", appendBytes},
	{"prepend", prependBytes},
	{"append-missing", appendMissing},
	{"increment-creates", incrementCreates},
	{"increment", increment},
	{"decrement", decrement},
	{"decrement-stops-at-zero", decrementStopsAtZero},
	{"increment-missing", incrementMissing},
	{"increment-not-a-number", incrementNotANumber},
	{"counter-is-a-document", counterIsADocument},
}

var binary = gocb.NewRawBinaryTranscoder()

// storedBytes makes a document of bytes.
func (s *sdk) storedBytes(value []byte) (string, error) {
	key := s.key()
	_, err := s.collection.Upsert(key, value, &gocb.UpsertOptions{Transcoder: binary})
	return key, err
}

// bytesOf reads a document of bytes.
func (s *sdk) bytesOf(key string) ([]byte, error) {
	result, err := s.collection.Get(key, &gocb.GetOptions{Transcoder: binary})
	if err != nil {
		return nil, err
	}
	var value []byte
	err = result.Content(&value)
	return value, err
}

func (s *sdk) expectBytes(key, wanted string) error {
	value, err := s.bytesOf(key)
	if err != nil {
		return err
	}
	return expectEqual(string(value), wanted, "value")
}

func appendBytes(s *sdk) error {
	key, err := s.storedBytes([]byte("hello"))
	if err != nil {
		return err
	}
	if _, err := s.collection.Binary().Append(key, []byte(" world"), nil); err != nil {
		return err
	}
	return s.expectBytes(key, "hello world")
}

func prependBytes(s *sdk) error {
	key, err := s.storedBytes([]byte("world"))
	if err != nil {
		return err
	}
	if _, err := s.collection.Binary().Prepend(key, []byte("hello "), nil); err != nil {
		return err
	}
	return s.expectBytes(key, "hello world")
}

func appendMissing(s *sdk) error {
	_, appendErr := s.collection.Binary().Append(s.key(), []byte("x"), nil)
	_, prependErr := s.collection.Binary().Prepend(s.key(), []byte("x"), nil)
	missing := []error{gocb.ErrDocumentNotFound, gocbcore.ErrNotStored}
	if err := expectError(appendErr, missing...); err != nil {
		return err
	}
	return expectError(prependErr, missing...)
}

// counter makes one with this value.
func (s *sdk) counter(initial int64) (string, error) {
	key := s.key()
	options := &gocb.IncrementOptions{Initial: initial, Delta: 1}
	result, err := s.collection.Binary().Increment(key, options)
	if err != nil {
		return "", err
	}
	return key, expectEqual(result.Content(), uint64(initial), "initial value")
}

// expectIncrement adds to a counter, which must exist.
func (s *sdk) expectIncrement(key string, delta, wanted uint64) error {
	options := &gocb.IncrementOptions{Initial: -1, Delta: delta}
	result, err := s.collection.Binary().Increment(key, options)
	if err != nil {
		return err
	}
	if err := expect(result.Cas() != 0, "a counter returns a CAS"); err != nil {
		return err
	}
	return expectEqual(result.Content(), wanted, "counter")
}

// expectDecrement takes from a counter, which must exist.
func (s *sdk) expectDecrement(key string, delta, wanted uint64) error {
	options := &gocb.DecrementOptions{Initial: -1, Delta: delta}
	result, err := s.collection.Binary().Decrement(key, options)
	if err != nil {
		return err
	}
	return expectEqual(result.Content(), wanted, "counter")
}

// expectDocument reads the document of a counter.
func (s *sdk) expectDocument(key string, wanted int) error {
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	var got int
	if err := result.Content(&got); err != nil {
		return err
	}
	return expectEqual(got, wanted, "value of the document")
}

func incrementCreates(s *sdk) error {
	key, err := s.counter(100)
	if err != nil {
		return err
	}
	return s.expectDocument(key, 100)
}

func increment(s *sdk) error {
	key, err := s.counter(1)
	if err != nil {
		return err
	}
	return steps(
		func() error { return s.expectIncrement(key, 1, 2) },
		func() error { return s.expectIncrement(key, 40, 42) },
	)
}

func decrement(s *sdk) error {
	key, err := s.counter(42)
	if err != nil {
		return err
	}
	return steps(
		func() error { return s.expectDecrement(key, 1, 41) },
		func() error { return s.expectDecrement(key, 40, 1) },
	)
}

func decrementStopsAtZero(s *sdk) error {
	key, err := s.counter(2)
	if err != nil {
		return err
	}
	return s.expectDecrement(key, 10, 0)
}

func incrementMissing(s *sdk) error {
	key := s.key()
	options := &gocb.IncrementOptions{Initial: -1, Delta: 1}
	_, err := s.collection.Binary().Increment(key, options)
	if err := expectError(err, gocb.ErrDocumentNotFound); err != nil {
		return err
	}
	return expect(s.isGone(key), "a counter without an initial value is not created")
}

func incrementNotANumber(s *sdk) error {
	key, err := s.storedBytes([]byte("twelve"))
	if err != nil {
		return err
	}
	_, err = s.collection.Binary().Increment(key, nil)
	if err == nil || errors.Is(err, gocb.ErrTimeout) {
		return errors.New("a text is refused as a counter")
	}
	return s.expectBytes(key, "twelve")
}

func counterIsADocument(s *sdk) error {
	key := s.key()
	if _, err := s.collection.Upsert(key, 41, nil); err != nil {
		return err
	}
	return steps(
		func() error { return s.expectIncrement(key, 1, 42) },
		func() error { return s.expectDocument(key, 42) },
	)
}
