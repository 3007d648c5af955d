// Command acceptance drives a node with the Go SDK, unmodified, and prints a line a case.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/couchbase/gocb/v2"
)

// A test case: its name is the same in every language.
type testCase struct {
	name string
	run  func(*sdk) error
}

func main() {
	sdk, err := newSdk()
	if err != nil {
		fmt.Printf("CASE connect FAIL %v\n", oneLine(err))
		os.Exit(1)
	}
	cases := slices.Concat(
		connectingCases, documentCases, lockCases, expiryCases, numberCases, valueCases, bulkCases,
		scanCases, collectionCases, bucketCases, userCases, encryptionCases, durabilityCases)
	failed := false
	for _, each := range cases {
		if chosen := os.Args[1:]; len(chosen) == 0 || slices.Contains(chosen, each.name) {
			failed = !runOne(sdk, each) || failed
		}
	}
	sdk.close()
	if failed {
		os.Exit(1)
	}
}

func runOne(sdk *sdk, each testCase) bool {
	started := time.Now()
	err := each.run(sdk)
	if err != nil {
		fmt.Printf("CASE %s FAIL %s\n", each.name, oneLine(err))
		return false
	}
	took := ""
	if seconds := time.Since(started).Seconds(); seconds >= 1 {
		took = fmt.Sprintf(" (%.1f s)", seconds)
	}
	fmt.Printf("CASE %s ok%s\n", each.name, took)
	return true
}

func oneLine(err error) string {
	line := strings.Join(strings.Fields(err.Error()), " ")
	return line[:min(len(line), 400)]
}

// expectEqual says what should have held when it does not.
func expectEqual[T comparable](got, wanted T, what string) error {
	if got != wanted {
		return fmt.Errorf("%s: expected %.200v, got %.200v", what, wanted, got)
	}
	return nil
}

// expect says what should have held when it does not.
func expect(holds bool, sentence string) error {
	if !holds {
		return errors.New(sentence)
	}
	return nil
}

// expectError says which error was expected when it is another or none.
func expectError(got error, wanted ...error) error {
	for _, each := range wanted {
		if errors.Is(got, each) {
			return nil
		}
	}
	return fmt.Errorf("expected the error %v, got %v", wanted, got)
}

// steps runs functions until one fails.
func steps(each ...func() error) error {
	for _, step := range each {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// waitUntil asks until the answer is true or the time is over.
func waitUntil(question func() bool, limit time.Duration, what string) error {
	deadline := time.Now().Add(limit)
	// An answer that comes late says nothing: what counts is when it was asked for.
	for asked := time.Now(); !question(); asked = time.Now() {
		if asked.After(deadline) {
			return fmt.Errorf("not within %v: %s", limit, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// isGone tells whether no document has this key.
func (s *sdk) isGone(key string) bool {
	result, err := s.collection.Exists(key, nil)
	return err == nil && !result.Exists()
}

// numbered is the document that most cases store.
type numbered struct {
	N int `json:"n"`
}

// stored makes a new document.
func (s *sdk) stored(n int, options *gocb.UpsertOptions) (string, *gocb.MutationResult, error) {
	key := s.key()
	result, err := s.collection.Upsert(key, numbered{n}, options)
	return key, result, err
}

// expectNumber reads a document that `stored` made.
func (s *sdk) expectNumber(key string, wanted int) error {
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	var got numbered
	if err := result.Content(&got); err != nil {
		return err
	}
	return expectEqual(got.N, wanted, "value of "+key)
}
