package main

import (
	"time"

	"github.com/couchbase/gocb/v2"
)

var lockCases = []testCase{
	{"get-and-lock", getAndLock},
	{"locked-write-is-refused", lockedWriteIsRefused},
	{"locked-twice-is-refused", lockedTwiceIsRefused},
	{"locked-is-readable", lockedIsReadable},
	{"write-with-lock-cas-unlocks", writeWithLockCasUnlocks},
	{"unlock", unlock},
	{"unlock-with-wrong-cas", unlockWithWrongCas},
	{"unlock-not-locked", unlockNotLocked},
	{"unlock-missing", unlockMissing},
	{"lock-ends", lockEnds},
}

const (
	lockTime = 15 * time.Second
	// The SDK repeats what met a lock until this time is over.
	brief = 500 * time.Millisecond
)

var lockErrors = []error{gocb.ErrDocumentLocked, gocb.ErrTimeout}

// locked makes a locked document and returns its key and the CAS of the lock; it holds 1.
func (s *sdk) locked() (string, gocb.Cas, error) {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return "", 0, err
	}
	result, err := s.collection.GetAndLock(key, lockTime, nil)
	if err != nil {
		return "", 0, err
	}
	err = expect(result.Cas() != stored.Cas(), "a lock has a CAS of its own")
	return key, result.Cas(), err
}

func getAndLock(s *sdk) error {
	if _, _, err := s.locked(); err != nil {
		return err
	}
	_, err := s.collection.GetAndLock(s.key(), lockTime, nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func lockedWriteIsRefused(s *sdk) error {
	key, _, err := s.locked()
	if err != nil {
		return err
	}
	_, err = s.collection.Upsert(key, numbered{2}, &gocb.UpsertOptions{Timeout: brief})
	if err := expectError(err, lockErrors...); err != nil {
		return err
	}
	_, err = s.collection.Remove(key, &gocb.RemoveOptions{Timeout: brief})
	if err := expectError(err, lockErrors...); err != nil {
		return err
	}
	return s.expectNumber(key, 1)
}

func lockedTwiceIsRefused(s *sdk) error {
	key, _, err := s.locked()
	if err != nil {
		return err
	}
	_, err = s.collection.GetAndLock(key, lockTime, &gocb.GetAndLockOptions{Timeout: brief})
	return expectError(err, lockErrors...)
}

func lockedIsReadable(s *sdk) error {
	key, cas, err := s.locked()
	if err != nil {
		return err
	}
	result, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	if err := expect(result.Cas() != cas, "a read does not give away the lock"); err != nil {
		return err
	}
	return s.expectNumber(key, 1)
}

func writeWithLockCasUnlocks(s *sdk) error {
	key, cas, err := s.locked()
	if err != nil {
		return err
	}
	_, err = s.collection.Replace(key, numbered{2}, &gocb.ReplaceOptions{Cas: cas})
	if err != nil {
		return err
	}
	if _, err := s.collection.Upsert(key, numbered{3}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 3)
}

func unlock(s *sdk) error {
	key, cas, err := s.locked()
	if err != nil {
		return err
	}
	if err := s.collection.Unlock(key, cas, nil); err != nil {
		return err
	}
	if _, err := s.collection.Upsert(key, numbered{2}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

func unlockWithWrongCas(s *sdk) error {
	key, cas, err := s.locked()
	if err != nil {
		return err
	}
	err = s.collection.Unlock(key, cas+1, &gocb.UnlockOptions{Timeout: brief})
	if err := expectError(err, append(lockErrors, gocb.ErrCasMismatch)...); err != nil {
		return err
	}
	return s.collection.Unlock(key, cas, nil)
}

func unlockNotLocked(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	err = s.collection.Unlock(key, stored.Cas(), nil)
	return expectError(err, gocb.ErrDocumentNotLocked)
}

func unlockMissing(s *sdk) error {
	return expectError(s.collection.Unlock(s.key(), 1, nil), gocb.ErrDocumentNotFound)
}

func lockEnds(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if _, err := s.collection.GetAndLock(key, time.Second, nil); err != nil {
		return err
	}
	hasOldCas := func() bool {
		result, err := s.collection.Get(key, nil)
		return err == nil && result.Cas() == stored.Cas()
	}
	if err := waitUntil(hasOldCas, 4*time.Second, "the lock ends by itself"); err != nil {
		return err
	}
	_, err = s.collection.Upsert(key, numbered{2}, nil)
	return err
}
