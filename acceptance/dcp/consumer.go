package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/couchbase/gocbcore/v10"
	"github.com/couchbase/gocbcore/v10/memd"
)

const endless = gocbcore.SeqNo(0xffffffffffffffff)

// consumer is one DCP connection and what has come through it.
type consumer struct {
	agent    *gocbcore.DCPAgent
	streams  map[uint16]*stream
	vbuckets int
}

// stream is what has come of one vBucket. It checks every message against the rules.
type stream struct {
	lock      sync.Mutex
	documents map[string]string
	uuid      gocbcore.VbUUID
	seqno     uint64
	snapshot  gocbcore.DcpSnapshotMarker
	markers   int
	fromDisk  int
	deletions int
	expired   int
	created   []uint32
	ended     bool
	err       error
}

func newConsumer(name string, change func(*gocbcore.DCPAgentConfig)) (*consumer, error) {
	config := gocbcore.DCPAgentConfig{}
	if err := config.FromConnStr(os.Getenv("SETTEE_CONNECT")); err != nil {
		return nil, err
	}
	config.BucketName = bucketName
	config.IoConfig.UseCollections = true
	config.SecurityConfig.Auth = credentials()
	if change != nil {
		change(&config)
	}
	flags := memd.DcpOpenFlagProducer | memd.DcpOpenFlagIncludeDeleteTimes
	agent, err := gocbcore.CreateDcpAgent(&config, name, flags)
	if err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	_, err = agent.WaitUntilReady(time.Now().Add(patience), gocbcore.WaitUntilReadyOptions{},
		func(_ *gocbcore.WaitUntilReadyResult, err error) { ready <- err })
	if err == nil {
		err = <-ready
	}
	if err != nil {
		return nil, err
	}
	snapshot, err := agent.ConfigSnapshot()
	if err != nil {
		return nil, err
	}
	vbuckets, err := snapshot.NumVbuckets()
	return &consumer{agent, map[uint16]*stream{}, vbuckets}, err
}

func (c *consumer) close() {
	_ = c.agent.Close()
}

// open asks for a stream that goes on where the last one of the vBucket has ended.
func (c *consumer) open(vbid uint16, end gocbcore.SeqNo) error {
	known := c.streams[vbid]
	if known == nil {
		known = &stream{documents: map[string]string{}}
		c.streams[vbid] = known
	}
	start := gocbcore.SeqNo(known.seqno)
	first, last := start, start
	if marker := known.snapshot; marker.StartSeqNo <= known.seqno && known.seqno < marker.EndSeqNo {
		first, last = gocbcore.SeqNo(marker.StartSeqNo), gocbcore.SeqNo(marker.EndSeqNo)
	}
	known.ended = false
	return c.request(vbid, known.uuid, start, end, first, last, gocbcore.OpenStreamOptions{}, known)
}

func (c *consumer) request(vbid uint16, uuid gocbcore.VbUUID, start, end, first,
	last gocbcore.SeqNo, options gocbcore.OpenStreamOptions, into *stream) error {
	done := make(chan error, 1)
	opened := func(log []gocbcore.FailoverEntry, err error) {
		if err == nil && len(log) == 0 {
			err = errors.New("the failover log is empty")
		}
		if err == nil {
			into.uuid = log[0].VbUUID
		}
		done <- err
	}
	_, err := c.agent.OpenStream(vbid, 0, uuid, start, end, first, last, into, options, opened)
	if err == nil {
		err = <-done
	}
	return err
}

// openAll opens all vBuckets, each up to its seqno in ends, or without an end.
func (c *consumer) openAll(ends map[uint16]uint64) error {
	for number := range c.vbuckets {
		vbid, end := uint16(number), endless
		if ends != nil {
			end = gocbcore.SeqNo(ends[vbid])
		}
		if err := c.open(vbid, end); err != nil {
			return fmt.Errorf("vBucket %d: %w", vbid, err)
		}
	}
	return nil
}

// closeAll closes all streams.
func (c *consumer) closeAll() error {
	for vbid := range c.streams {
		done := make(chan error, 1)
		closed := func(err error) { done <- err }
		if _, err := c.agent.CloseStream(vbid, gocbcore.CloseStreamOptions{}, closed); err != nil {
			return err
		}
		if err := <-done; err != nil {
			return err
		}
	}
	return c.wait(func(s *stream) bool { return s.ended }, "streams end when they are closed")
}

// high returns the last seqno of every vBucket.
func (c *consumer) high() (map[uint16]uint64, error) {
	return c.highOf(gocbcore.GetVbucketSeqnoOptions{})
}

// highOf returns the last seqno of what the options say.
func (c *consumer) highOf(options gocbcore.GetVbucketSeqnoOptions) (map[uint16]uint64, error) {
	seqnos := map[uint16]uint64{}
	done := make(chan error, 1)
	_, err := c.agent.GetVbucketSeqnos(0, memd.VbucketStateActive, options,
		func(entries []gocbcore.VbSeqNoEntry, err error) {
			for _, entry := range entries {
				seqnos[entry.VbID] = uint64(entry.SeqNo)
			}
			done <- err
		})
	if err == nil {
		err = <-done
	}
	return seqnos, err
}

// catchUp waits until everything has come that is there now.
func (c *consumer) catchUp() error {
	high, err := c.high()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for vbid, wanted := range high {
		for {
			seqno, err := c.streams[vbid].position()
			if err != nil {
				return fmt.Errorf("vBucket %d: %w", vbid, err)
			}
			if seqno >= wanted {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("vBucket %d stays at %d of %d", vbid, seqno, wanted)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// wait waits until all streams are so.
func (c *consumer) wait(isSo func(*stream) bool, what string) error {
	deadline := time.Now().Add(patience)
	for vbid, each := range c.streams {
		for {
			each.lock.Lock()
			done, err := isSo(each), each.err
			each.lock.Unlock()
			if err != nil {
				return fmt.Errorf("vBucket %d: %w", vbid, err)
			}
			if done {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("vBucket %d: not in time: %s", vbid, what)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// keyIn is a key that belongs to the vBucket.
func (c *consumer) keyIn(vbid uint16) (string, error) {
	snapshot, err := c.agent.ConfigSnapshot()
	if err != nil {
		return "", err
	}
	for number := 0; ; number++ {
		key := fmt.Sprintf("of-%d-%d", vbid, number)
		if of, err := snapshot.KeyToVbucket([]byte(key)); err != nil || of == vbid {
			return key, err
		}
	}
}

// sum adds something up over all streams.
func (c *consumer) sum(of func(*stream) int) int {
	total := 0
	for _, each := range c.streams {
		each.lock.Lock()
		total += of(each)
		each.lock.Unlock()
	}
	return total
}

// equals compares what has come with what there is.
func (c *consumer) equals(documents map[string]string) error {
	received := 0
	for vbid, each := range c.streams {
		each.lock.Lock()
		defer each.lock.Unlock()
		for key, value := range each.documents {
			if documents[key] != value {
				return fmt.Errorf("vBucket %d: %s is %.40q and should be %.40q", vbid, key, value,
					documents[key])
			}
		}
		received += len(each.documents)
	}
	return expect(received == len(documents), "%d documents of %d have come", received,
		len(documents))
}

func (s *stream) position() (uint64, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.seqno, s.err
}

// take notes the seqno of a message.
func (s *stream) take(seqno uint64) {
	if s.err != nil {
		return
	}
	if seqno <= s.seqno {
		s.err = fmt.Errorf("seqno %d comes behind %d", seqno, s.seqno)
	}
	if seqno < s.snapshot.StartSeqNo || seqno > s.snapshot.EndSeqNo {
		s.err = fmt.Errorf("seqno %d is not in the snapshot %v", seqno, s.snapshot)
	}
	if s.ended {
		s.err = fmt.Errorf("seqno %d comes behind the end", seqno)
	}
	s.seqno = seqno
}

func (s *stream) SnapshotMarker(marker gocbcore.DcpSnapshotMarker) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if marker.EndSeqNo <= s.seqno {
		s.err = fmt.Errorf("the snapshot %v has nothing new", marker)
	}
	s.snapshot = marker
	s.markers++
	if marker.SnapshotType.HasOnDisk() {
		s.fromDisk++
	}
}

func (s *stream) Mutation(mutation gocbcore.DcpMutation) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.take(mutation.SeqNo)
	s.documents[string(mutation.Key)] = string(mutation.Value)
}

func (s *stream) Deletion(deletion gocbcore.DcpDeletion) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.take(deletion.SeqNo)
	if deletion.DeleteTime == 0 {
		s.err = errors.New("a deletion has no time")
	}
	delete(s.documents, string(deletion.Key))
	s.deletions++
}

func (s *stream) Expiration(expiration gocbcore.DcpExpiration) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.take(expiration.SeqNo)
	delete(s.documents, string(expiration.Key))
	s.expired++
}

func (s *stream) SeqNoAdvanced(advanced gocbcore.DcpSeqNoAdvanced) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.take(advanced.SeqNo)
}

func (s *stream) End(_ gocbcore.DcpStreamEnd, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ended = true
	if err != nil && !errors.Is(err, gocbcore.ErrDCPStreamClosed) && s.err == nil {
		s.err = err
	}
}

func (s *stream) OSOSnapshot(gocbcore.DcpOSOSnapshot) {}

func (s *stream) CreateCollection(creation gocbcore.DcpCollectionCreation) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.take(creation.SeqNo)
	s.created = append(s.created, creation.CollectionID)
}

func (s *stream) DeleteCollection(gocbcore.DcpCollectionDeletion)     {}
func (s *stream) FlushCollection(gocbcore.DcpCollectionFlush)         {}
func (s *stream) CreateScope(gocbcore.DcpScopeCreation)               {}
func (s *stream) DeleteScope(gocbcore.DcpScopeDeletion)               {}
func (s *stream) ModifyCollection(gocbcore.DcpCollectionModification) {}
