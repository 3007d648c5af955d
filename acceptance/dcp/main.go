// Command acceptance streams from a node with gocbcore's DCP agent, unmodified, and prints a line a
// case.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A test case.
type testCase struct {
	name string
	run  func(*bench) error
}

// bench is what all cases share: a client that writes, and what it has written.
type bench struct {
	writer *writer
	node   *bufio.Scanner
}

var cases = []testCase{
	{"connects-with-collections-noop-and-flow-control", connects},
	{"streams-from-the-beginning", fromTheBeginning},
	{"streams-while-it-is-written", whileItIsWritten},
	{"goes-on-from-the-middle", fromTheMiddle},
	{"a-small-buffer-bounds-what-is-under-way", smallBuffer},
	{"deletions-and-expirations-are-told-apart", expirations},
	{"an-unknown-branch-rolls-back-to-the-beginning", unknownBranch},
	{"a-seqno-beyond-the-end-rolls-back-to-it", beyondTheEnd},
	{"the-failover-log-is-told", failoverLog},
	{"several-streams-of-a-vbucket-have-ids", streamIds},
	{"streams-from-files-after-a-restart", afterRestart},
	{"a-filter-lets-one-collection-through", oneCollection},
}

func main() {
	writer, err := newWriter()
	if err != nil {
		fmt.Printf("CASE connect FAIL %v\n", oneLine(err))
		os.Exit(1)
	}
	bench := &bench{writer, bufio.NewScanner(os.Stdin)}
	failed := false
	for _, each := range cases {
		if chosen := os.Args[1:]; len(chosen) == 0 || slices.Contains(chosen, each.name) {
			failed = !runOne(bench, each) || failed
		}
	}
	if failed {
		os.Exit(1)
	}
}

func runOne(bench *bench, each testCase) bool {
	started := time.Now()
	if err := each.run(bench); err != nil {
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

// restartNode asks the program that started the node, and waits for its answer.
func (b *bench) restartNode() error {
	fmt.Println("NODE restart")
	if !b.node.Scan() || b.node.Text() != "NODE ready" {
		return errors.New("the node was not restarted")
	}
	return nil
}

// expect says what should have held when it does not.
func expect(holds bool, format string, arguments ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}
