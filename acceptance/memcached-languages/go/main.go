// Command acceptance drives the memcached port with gomemcache and prints a line a case.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	mib             = 1 << 20
	valueSizeMax    = 20 * mib
	keySizeMax      = 250
	connectionCount = 200
	patience        = 20 * time.Second
)

type client = memcache.Client

// A test case.
type testCase struct {
	name string
	run  func(*client) error
}

var cases = []testCase{
	{"documents", documents},
	{"cas", cas},
	{"counters", counters},
	{"expiry", expiry},
	{"many-keys", manyKeys},
	{"sizes", sizes},
	{"many-connections", manyConnections},
	{"flush", flush},
	{"restart", restart},
}

func main() {
	client := memcache.New("127.0.0.1:" + os.Getenv("SETTEE_MEMCACHED_PORT"))
	client.Timeout = patience
	client.MaxIdleConns = connectionCount
	failed := false
	for _, each := range cases {
		name := "gomemcache-" + each.name
		if chosen := os.Args[1:]; len(chosen) > 0 && !slices.Contains(chosen, name) {
			continue
		}
		if err := each.run(client); err != nil {
			failed = true
			fmt.Printf("CASE %s FAIL %s\n", name, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("CASE %s ok\n", name)
		}
	}
	if failed {
		os.Exit(1)
	}
}

// first is the first error.
func first(each ...error) error {
	for _, err := range each {
		if err != nil {
			return err
		}
	}
	return nil
}

// want says which error was expected when it is another or none.
func want(got, wanted error, what string) error {
	if !errors.Is(got, wanted) {
		return fmt.Errorf("%s: expected %v, got %v", what, wanted, got)
	}
	return nil
}

// has says what is stored when it is something else.
func has(c *client, key, value string, flags uint32) error {
	item, err := c.Get(key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if string(item.Value) != value || item.Flags != flags {
		return fmt.Errorf("%s: got %.100q with flags %d", key, item.Value, item.Flags)
	}
	return nil
}

func lacks(c *client, key string) error {
	_, err := c.Get(key)
	return want(err, memcache.ErrCacheMiss, "get of "+key)
}

func item(key, value string, flags uint32, seconds int32) *memcache.Item {
	return &memcache.Item{Key: key, Value: []byte(value), Flags: flags, Expiration: seconds}
}

func documents(c *client) error {
	_ = c.Delete("go")
	return first(
		want(c.Replace(item("go", "x", 0, 0)), memcache.ErrNotStored, "replace of a missing key"),
		want(c.Append(item("go", "x", 0, 0)), memcache.ErrNotStored, "append to a missing key"),
		want(c.Prepend(item("go", "x", 0, 0)), memcache.ErrNotStored, "prepend to a missing key"),
		c.Add(item("go", "one", 0, 0)),
		want(c.Add(item("go", "x", 0, 0)), memcache.ErrNotStored, "add of a present key"),
		c.Replace(item("go", "two", 1<<32-1, 0)),
		c.Append(item("go", "!", 3, 0)),
		c.Prepend(item("go", "?", 4, 0)),
		has(c, "go", "?two!", 1<<32-1),
		c.Set(item("go", "", 5, 0)),
		has(c, "go", "", 5),
		c.Set(item("go", "\r\nEND\r\n\x00", 0, 0)),
		has(c, "go", "\r\nEND\r\n\x00", 0),
		c.Delete("go"),
		want(c.Delete("go"), memcache.ErrCacheMiss, "delete of a missing key"),
		lacks(c, "go"),
		c.Ping(),
	)
}

func cas(c *client) error {
	if err := c.Set(item("go-cas", "one", 7, 0)); err != nil {
		return err
	}
	old, err := c.Get("go-cas")
	if err != nil {
		return err
	}
	fresh := *old
	fresh.Value, old.Value = []byte("two"), []byte("three")
	return first(
		c.CompareAndSwap(&fresh),
		want(c.CompareAndSwap(old), memcache.ErrCASConflict, "cas with an old version"),
		has(c, "go-cas", "two", 7),
		c.Delete("go-cas"),
		want(c.CompareAndSwap(old), memcache.ErrCacheMiss, "cas of a missing key"),
	)
}

func counters(c *client) error {
	_ = c.Delete("go-count")
	_, missing := c.Increment("go-count", 1)
	if err := first(
		want(missing, memcache.ErrCacheMiss, "incr of a missing key"),
		c.Set(item("go-count", "18446744073709551615", 9, 0)),
	); err != nil {
		return err
	}
	steps := []struct {
		change func(string, uint64) (uint64, error)
		delta  uint64
		wanted uint64
	}{{c.Increment, 3, 2}, {c.Increment, 8, 10}, {c.Decrement, 4, 6}, {c.Decrement, 7, 0}}
	for _, step := range steps {
		if got, err := step.change("go-count", step.delta); err != nil || got != step.wanted {
			return fmt.Errorf("expected %d, got %d, %v", step.wanted, got, err)
		}
	}
	if err := first(has(c, "go-count", "0", 9), c.Set(item("go-word", "two", 0, 0))); err != nil {
		return err
	}
	if _, err := c.Increment("go-word", 1); err == nil ||
		!strings.Contains(err.Error(), "non-numeric") {
		return fmt.Errorf("incr of a word: %v", err)
	}
	return has(c, "go-word", "two", 0)
}

func expiry(c *client) error {
	soon := int32(time.Now().Unix()) + 100
	if err := first(
		c.Set(item("go-over", "x", 0, -1)),
		lacks(c, "go-over"),
		c.Set(item("go-brief", "x", 0, 1)),
		c.Set(item("go-got", "x", 0, 1)),
		c.Set(item("go-touched", "x", 0, 1)),
		c.Set(item("go-absolute", "x", 0, soon)),
		c.Touch("go-touched", 100),
		want(c.Touch("go-none", 100), memcache.ErrCacheMiss, "touch of a missing key"),
	); err != nil {
		return err
	}
	if got, err := c.GetAndTouch("go-got", 100); err != nil || string(got.Value) != "x" {
		return fmt.Errorf("get and touch: %v, %v", got, err)
	}
	_, missing := c.GetAndTouch("go-none", 100)
	deadline := time.Now().Add(4 * time.Second)
	for lacks(c, "go-brief") != nil && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	return first(
		want(missing, memcache.ErrCacheMiss, "get and touch of a missing key"),
		lacks(c, "go-brief"),
		has(c, "go-got", "x", 0),
		has(c, "go-touched", "x", 0),
		has(c, "go-absolute", "x", 0),
	)
}

func manyKeys(c *client) error {
	keys := []string{"go-none"}
	for number := range 5000 {
		keys = append(keys, fmt.Sprintf("go-many-%d", number))
	}
	for _, key := range keys[1:] {
		if err := c.Set(item(key, key, 2, 0)); err != nil {
			return err
		}
	}
	found, err := c.GetMulti(keys)
	if err != nil || len(found) != len(keys)-1 {
		return fmt.Errorf("%d values of one get, %v", len(found), err)
	}
	for key, each := range found {
		if string(each.Value) != key || each.Flags != 2 {
			return fmt.Errorf("value of %s: %q", key, each.Value)
		}
	}
	return nil
}

func sizes(c *client) error {
	for _, size := range []int{4095, 64 << 10, mib, valueSizeMax} {
		value := bytes.Repeat([]byte{'v'}, size)
		if err := first(
			c.Set(&memcache.Item{Key: "go-large", Value: value}),
			has(c, "go-large", string(value), 0),
		); err != nil {
			return err
		}
	}
	larger := &memcache.Item{Key: "go-larger", Value: make([]byte, valueSizeMax+1)}
	if err := c.Set(larger); err == nil || !strings.Contains(err.Error(), "too large") {
		return fmt.Errorf("a value that is too large: %v", err)
	}
	long := strings.Repeat("k", keySizeMax)
	tooLong := c.Set(item(long+"k", "x", 0, 0))
	return first(
		lacks(c, "go-larger"),
		c.Set(item(long, "long", 0, 0)),
		has(c, long, "long", 0),
		want(tooLong, memcache.ErrMalformedKey, "a key that is too long"),
		has(c, long, "long", 0),
	)
}

func manyConnections(c *client) error {
	errs := make([]error, connectionCount)
	var all sync.WaitGroup
	for number := range connectionCount {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := range 50 {
				key, value := fmt.Sprintf("go-wide-%d", number), fmt.Sprint(round)
				if err := first(c.Set(item(key, value, 0, 0)), has(c, key, value, 0)); err != nil {
					errs[number] = err
				}
			}
		}()
	}
	all.Wait()
	return first(errs...)
}

func flush(c *client) error {
	return first(
		c.Set(item("go-flushed", "x", 0, 0)),
		c.FlushAll(),
		lacks(c, "go-flushed"),
		c.Set(item("go-flushed", "y", 0, 0)),
		has(c, "go-flushed", "y", 0),
	)
}

func restart(c *client) error {
	if err := c.Set(item("go-kept", "x", 6, 0)); err != nil {
		return err
	}
	fmt.Println("NODE restart")
	if line, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("heard %q, %w", line, err)
	}
	// Connections from before the restart each fail once.
	for range connectionCount {
		if has(c, "go-kept", "x", 6) == nil {
			break
		}
	}
	return has(c, "go-kept", "x", 6)
}
