package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/couchbase/gocb/v2"
)

var bulkCases = []testCase{
	{"multi-operations", multiOperations},
	{"multi-get-with-missing", multiGetWithMissing},
	{"parallel-operations", parallelOperations},
	{"parallel-increments", parallelIncrements},
}

const (
	bulkCount     = 1000
	parallelCount = 500
)

var bulkOptions = &gocb.BulkOpOptions{Timeout: 20 * time.Second}

func multiOperations(s *sdk) error {
	var upserts, gets, removes []gocb.BulkOp
	for number := range bulkCount {
		key := fmt.Sprintf("multi-%d", number)
		upserts = append(upserts, &gocb.UpsertOp{ID: key, Value: numbered{number}})
		gets = append(gets, &gocb.GetOp{ID: key})
		removes = append(removes, &gocb.RemoveOp{ID: key})
	}
	for _, operations := range [][]gocb.BulkOp{upserts, gets, removes} {
		if err := s.collection.Do(operations, bulkOptions); err != nil {
			return err
		}
	}
	for number := range bulkCount {
		var got numbered
		get := gets[number].(*gocb.GetOp)
		if err := errors.Join(upserts[number].(*gocb.UpsertOp).Err, get.Err,
			removes[number].(*gocb.RemoveOp).Err); err != nil {
			return err
		}
		if err := get.Result.Content(&got); err != nil {
			return err
		}
		if err := expectEqual(got.N, number, "value"); err != nil {
			return err
		}
	}
	return nil
}

func multiGetWithMissing(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	present, missing := &gocb.GetOp{ID: key}, &gocb.GetOp{ID: s.key()}
	if err := s.collection.Do([]gocb.BulkOp{present, missing}, bulkOptions); err != nil {
		return err
	}
	if present.Err != nil {
		return present.Err
	}
	return expectError(missing.Err, gocb.ErrDocumentNotFound)
}

// inParallel runs a function with the numbers below parallelCount, all at the same time.
func inParallel(body func(number int) error) error {
	outcomes := make([]error, parallelCount)
	var group sync.WaitGroup
	for number := range parallelCount {
		group.Add(1)
		go func() {
			defer group.Done()
			outcomes[number] = body(number)
		}()
	}
	group.Wait()
	return errors.Join(outcomes...)
}

func parallelOperations(s *sdk) error {
	return inParallel(func(number int) error {
		key, _, err := s.stored(number, nil)
		if err != nil {
			return err
		}
		return s.expectNumber(key, number)
	})
}

func parallelIncrements(s *sdk) error {
	key := s.key()
	numbers := make([]uint64, parallelCount)
	err := inParallel(func(number int) error {
		options := &gocb.IncrementOptions{Initial: 1, Delta: 1}
		result, err := s.collection.Binary().Increment(key, options)
		if err == nil {
			numbers[number] = result.Content()
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	for index, number := range numbers {
		if err := expectEqual(number, uint64(index+1), "every number once"); err != nil {
			return err
		}
	}
	return nil
}
