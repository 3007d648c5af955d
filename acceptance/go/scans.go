package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/couchbase/gocb/v2"
)

var scanCases = []testCase{
	{"scans-of-many-documents", scansOfManyDocuments},
}

const scannedCount = 1000

func scansOfManyDocuments(s *sdk) error {
	var stores []gocb.BulkOp
	for number := range scannedCount {
		stores = append(stores, &gocb.UpsertOp{ID: scannedName(number), Value: numbered{number}})
	}
	if err := s.collection.Do(stores, bulkOptions); err != nil {
		return err
	}
	state := gocb.NewMutationState()
	for _, store := range stores {
		upsert := store.(*gocb.UpsertOp)
		if upsert.Err != nil {
			return upsert.Err
		}
		state.Add(*upsert.Result.MutationToken())
	}
	for _, each := range []struct {
		what     string
		scan     gocb.ScanType
		from, to int
		idsOnly  bool
	}{
		{"all keys", gocb.NewRangeScanForPrefix("scanned-"), 0, scannedCount, true},
		{"all documents", gocb.NewRangeScanForPrefix("scanned-"), 0, scannedCount, false},
		{"a range", gocb.RangeScan{
			From: &gocb.ScanTerm{Term: scannedName(100)},
			To:   &gocb.ScanTerm{Term: scannedName(200), Exclusive: true},
		}, 100, 200, false},
		{"nothing", gocb.NewRangeScanForPrefix("absent-"), 0, 0, false},
	} {
		numbers, err := scanned(s, each.scan, each.idsOnly, state)
		if err != nil {
			return fmt.Errorf("%s: %w", each.what, err)
		}
		var expected []int
		for number := each.from; number < each.to; number++ {
			expected = append(expected, number)
		}
		if err := expect(slices.Equal(numbers, expected), each.what+" are found once"); err != nil {
			return err
		}
	}
	numbers, err := scanned(s, gocb.SamplingScan{Limit: 20, Seed: 5}, true, state)
	if err != nil {
		return err
	}
	return expect(len(numbers) > 0 && len(numbers) <= 20, "a sample is a part")
}

func scannedName(number int) string {
	return fmt.Sprintf("scanned-%04d", number)
}

// scanned returns the numbers of the documents that were found, in order.
func scanned(s *sdk, scan gocb.ScanType, idsOnly bool, state *gocb.MutationState) ([]int, error) {
	result, err := s.collection.Scan(scan, &gocb.ScanOptions{
		IDsOnly:        idsOnly,
		ConsistentWith: state,
		Concurrency:    8,
		Timeout:        time.Minute,
	})
	if err != nil {
		return nil, err
	}
	var numbers []int
	for item := result.Next(); item != nil; item = result.Next() {
		var number int
		if _, err := fmt.Sscanf(item.ID(), "scanned-%d", &number); err != nil {
			// Documents of other cases may be in a sample.
			number = -1
		}
		var value numbered
		if !idsOnly {
			if err := item.Content(&value); err != nil {
				return nil, err
			}
			if err := expectEqual(value.N, number, "value"); err != nil {
				return nil, err
			}
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers, result.Err()
}
