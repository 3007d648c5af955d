package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/couchbase/gocbcore/v10"
)

func connects(*bench) error {
	consumer, err := newConsumer("connects", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	return expect(consumer.agent.HasCollectionsSupport(), "collections are negotiated")
}

// streamToEnd gets everything there is now through one connection.
func streamToEnd(name string, change func(*gocbcore.DCPAgentConfig)) (*consumer, error) {
	consumer, err := newConsumer(name, change)
	if err != nil {
		return nil, err
	}
	high, err := consumer.high()
	if err == nil {
		err = consumer.openAll(high)
	}
	if err == nil {
		err = consumer.wait(func(s *stream) bool { return s.ended }, "streams reach their end")
	}
	if err != nil {
		consumer.close()
	}
	return consumer, err
}

func fromTheBeginning(b *bench) error {
	if err := b.writer.churn("first", 5000, 4, 300); err != nil {
		return err
	}
	consumer, err := streamToEnd("from-the-beginning", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	markers := consumer.sum(func(s *stream) int { return s.markers })
	if err := expect(markers > 0, "there are snapshot markers"); err != nil {
		return err
	}
	return consumer.equals(b.writer.documents)
}

func whileItIsWritten(b *bench) error {
	consumer, err := newConsumer("while-written", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	if err := consumer.openAll(nil); err != nil {
		return err
	}
	if err := b.writer.churn("second", 5000, 6, 300); err != nil {
		return err
	}
	if err := consumer.catchUp(); err != nil {
		return err
	}
	return consumer.equals(b.writer.documents)
}

func fromTheMiddle(b *bench) error {
	consumer, err := newConsumer("from-the-middle", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	high, err := consumer.high()
	if err != nil {
		return err
	}
	for vbid := range high {
		high[vbid] /= 2
	}
	if err := consumer.openAll(high); err != nil {
		return err
	}
	err = consumer.wait(func(s *stream) bool { return s.ended }, "streams reach the middle")
	if err != nil {
		return err
	}
	if err := b.writer.churn("first", 1000, 3, 300); err != nil {
		return err
	}
	for round := range 3 {
		if err := consumer.openAll(nil); err != nil {
			return err
		}
		if err := b.writer.churn(fmt.Sprintf("third-%d", round), 300, 2, 300); err != nil {
			return err
		}
		if round == 2 {
			break
		}
		if err := consumer.closeAll(); err != nil {
			return err
		}
	}
	if err := consumer.catchUp(); err != nil {
		return err
	}
	return consumer.equals(b.writer.documents)
}

func smallBuffer(b *bench) error {
	if err := b.writer.churn("large", 200, 2, 200_000); err != nil {
		return err
	}
	consumer, err := streamToEnd("small-buffer", func(config *gocbcore.DCPAgentConfig) {
		config.DCPConfig.BufferSize = 64 << 10
	})
	if err != nil {
		return err
	}
	defer consumer.close()
	return consumer.equals(b.writer.documents)
}

func expirations(b *bench) error {
	const count = 50
	for number := range count {
		if err := b.writer.set(fmt.Sprintf("short-lived-%d", number), "value", 1); err != nil {
			return err
		}
	}
	time.Sleep(2200 * time.Millisecond)
	for number := range count {
		key := fmt.Sprintf("short-lived-%d", number)
		if err := expect(!b.writer.get(key), "%s has expired", key); err != nil {
			return err
		}
	}
	for _, useOpcode := range []bool{true, false} {
		change := func(config *gocbcore.DCPAgentConfig) {
			config.DCPConfig.UseExpiryOpcode = useOpcode
		}
		consumer, err := streamToEnd(fmt.Sprintf("expirations-%v", useOpcode), change)
		if err != nil {
			return err
		}
		defer consumer.close()
		expired := consumer.sum(func(s *stream) int { return s.expired })
		deleted := consumer.sum(func(s *stream) int { return s.deletions })
		err = errors.Join(
			expect(deleted > 0, "there are deletions"),
			expect((expired >= count) == useOpcode, "%d expirations have come", expired),
			consumer.equals(b.writer.documents))
		if err != nil {
			return err
		}
	}
	return nil
}

// busy returns a vBucket with some history.
func (c *consumer) busy() (uint16, uint64, error) {
	high, err := c.high()
	for vbid, seqno := range high {
		if seqno > 10 {
			return vbid, seqno, err
		}
	}
	return 0, 0, errors.Join(err, errors.New("no vBucket has a history"))
}

// expectRollback asks for a stream that cannot begin where it says, and then for one that can.
func (c *consumer) expectRollback(vbid uint16, uuid gocbcore.VbUUID, start, to uint64) error {
	seqno, into := gocbcore.SeqNo(start), &stream{documents: map[string]string{}}
	options := gocbcore.OpenStreamOptions{}
	err := c.request(vbid, uuid, seqno, endless, seqno, seqno, options, into)
	var rollback gocbcore.DCPRollbackError
	if !errors.As(err, &rollback) {
		return fmt.Errorf("expected a rollback, got %v", err)
	}
	if err := expect(uint64(rollback.SeqNo) == to, "rollback to %d", rollback.SeqNo); err != nil {
		return err
	}
	into.seqno = to
	back := rollback.SeqNo
	if err := c.request(vbid, uuid, back, endless, back, back, options, into); err != nil {
		return err
	}
	c.streams = map[uint16]*stream{vbid: into}
	return nil
}

func unknownBranch(b *bench) error {
	consumer, err := newConsumer("unknown-branch", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	vbid, high, err := consumer.busy()
	if err != nil {
		return err
	}
	if err := consumer.expectRollback(vbid, 0xbad, high, 0); err != nil {
		return err
	}
	return consumer.wait(func(s *stream) bool { return s.seqno >= high }, "everything comes anew")
}

func beyondTheEnd(b *bench) error {
	consumer, err := newConsumer("beyond-the-end", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	vbid, high, err := consumer.busy()
	if err != nil {
		return err
	}
	log, err := consumer.failoverLog(vbid)
	if err != nil {
		return err
	}
	if err := consumer.expectRollback(vbid, log[0].VbUUID, high+1000, high); err != nil {
		return err
	}
	key, err := consumer.keyIn(vbid)
	if err != nil {
		return err
	}
	if err := b.writer.set(key, "later", 0); err != nil {
		return err
	}
	return consumer.wait(func(s *stream) bool { return s.seqno > high }, "the stream goes on")
}

func (c *consumer) failoverLog(vbid uint16) ([]gocbcore.FailoverEntry, error) {
	done := make(chan error, 1)
	var log []gocbcore.FailoverEntry
	_, err := c.agent.GetFailoverLog(vbid, func(entries []gocbcore.FailoverEntry, err error) {
		log = entries
		done <- err
	})
	if err == nil {
		err = <-done
	}
	if err == nil && len(log) == 0 {
		err = errors.New("the failover log is empty")
	}
	return log, err
}

func failoverLog(*bench) error {
	consumer, err := newConsumer("failover-log", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	log, err := consumer.failoverLog(0)
	if err != nil {
		return err
	}
	oldest := log[len(log)-1]
	return expect(oldest.VbUUID != 0 && oldest.SeqNo == 0, "the log begins with %v", oldest)
}

func streamIds(b *bench) error {
	consumer, err := newConsumer("stream-ids", func(config *gocbcore.DCPAgentConfig) {
		config.DCPConfig.UseStreamID = true
	})
	if err != nil {
		return err
	}
	defer consumer.close()
	vbid, high, err := consumer.busy()
	if err != nil {
		return err
	}
	for _, id := range []uint16{7, 8} {
		into := &stream{documents: map[string]string{}}
		options := gocbcore.OpenStreamOptions{
			StreamOptions: &gocbcore.OpenStreamStreamOptions{StreamID: id},
			FilterOptions: &gocbcore.OpenStreamFilterOptions{CollectionIDs: []uint32{0}},
		}
		end := gocbcore.SeqNo(high)
		if err := consumer.request(vbid, 0, 0, end, 0, 0, options, into); err != nil {
			return err
		}
		consumer.streams[id] = into
	}
	err = consumer.wait(func(s *stream) bool { return s.ended }, "both streams reach their end")
	if err != nil {
		return err
	}
	first, second := consumer.streams[7].documents, consumer.streams[8].documents
	return expect(len(first) > 0 && len(first) == len(second), "%d and %d documents", len(first),
		len(second))
}

func afterRestart(b *bench) error {
	if err := b.restartNode(); err != nil {
		return err
	}
	consumer, err := streamToEnd("after-restart", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	for key := range b.writer.documents {
		if strings.HasPrefix(key, "short-lived") {
			return errors.New("what has expired is not remembered")
		}
	}
	fromDisk := consumer.sum(func(s *stream) int { return s.fromDisk })
	err = expect(fromDisk > 0, "something came from files")
	return errors.Join(err, consumer.equals(b.writer.documents))
}
