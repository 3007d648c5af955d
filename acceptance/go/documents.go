package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/couchbase/gocb/v2"
)

var documentCases = []testCase{
	{"upsert-and-get", upsertAndGet},
	{"upsert-overwrites", upsertOverwrites},
	{"insert-new", insertNew},
	{"insert-existing", insertExisting},
	{"get-missing", getMissing},
	{"replace-existing", replaceExisting},
	{"replace-missing", replaceMissing},
	{"replace-with-cas", replaceWithCas},
	{"replace-with-stale-cas", replaceWithStaleCas},
	{"exists", exists},
	{"remove", remove},
	{"remove-missing", removeMissing},
	{"remove-with-stale-cas", removeWithStaleCas},
	{"insert-after-remove", insertAfterRemove},
	{"mutation-tokens", mutationTokens},
	{"unicode-key", unicodeKey},
	{"key-of-250-bytes", keyOf250Bytes},
	{"key-of-251-bytes", keyOf251Bytes},
}

func upsertAndGet(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	read, err := s.collection.Get(key, nil)
	if err != nil {
		return err
	}
	return steps(
		func() error { return expect(stored.Cas() != 0, "a store returns a CAS") },
		func() error { return expectEqual(read.Cas(), stored.Cas(), "CAS that is read") },
		func() error { return s.expectNumber(key, 1) },
	)
}

func upsertOverwrites(s *sdk) error {
	key, first, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	second, err := s.collection.Upsert(key, numbered{2}, nil)
	if err != nil {
		return err
	}
	if err := expect(second.Cas() > first.Cas(), "the CAS of a document grows"); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

func insertNew(s *sdk) error {
	key := s.key()
	if _, err := s.collection.Insert(key, numbered{1}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 1)
}

func insertExisting(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	_, err = s.collection.Insert(key, numbered{2}, nil)
	if err := expectError(err, gocb.ErrDocumentExists); err != nil {
		return err
	}
	return s.expectNumber(key, 1)
}

func getMissing(s *sdk) error {
	_, err := s.collection.Get(s.key(), nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func replaceExisting(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if _, err := s.collection.Replace(key, numbered{2}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

func replaceMissing(s *sdk) error {
	key := s.key()
	_, err := s.collection.Replace(key, numbered{1}, nil)
	if err := expectError(err, gocb.ErrDocumentNotFound); err != nil {
		return err
	}
	return expect(s.isGone(key), "a refused replace creates nothing")
}

func replaceWithCas(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	replaced, err := s.collection.Replace(
		key, numbered{2}, &gocb.ReplaceOptions{Cas: stored.Cas()})
	if err != nil {
		return err
	}
	if err := expect(replaced.Cas() != stored.Cas(), "a replace changes the CAS"); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

// overwritten makes a document and returns its key, its old and its present CAS; it holds 2.
func (s *sdk) overwritten() (key string, stale, present gocb.Cas, err error) {
	key, first, err := s.stored(1, nil)
	if err != nil {
		return "", 0, 0, err
	}
	second, err := s.collection.Upsert(key, numbered{2}, nil)
	if err != nil {
		return "", 0, 0, err
	}
	return key, first.Cas(), second.Cas(), nil
}

func replaceWithStaleCas(s *sdk) error {
	key, stale, _, err := s.overwritten()
	if err != nil {
		return err
	}
	_, err = s.collection.Replace(key, numbered{3}, &gocb.ReplaceOptions{Cas: stale})
	if err := expectError(err, gocb.ErrCasMismatch, gocb.ErrDocumentExists); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

func exists(s *sdk) error {
	key := s.key()
	if err := expect(s.isGone(key), "a key never stored does not exist"); err != nil {
		return err
	}
	stored, err := s.collection.Upsert(key, numbered{1}, nil)
	if err != nil {
		return err
	}
	result, err := s.collection.Exists(key, nil)
	if err != nil {
		return err
	}
	if _, err := s.collection.Remove(key, nil); err != nil {
		return err
	}
	return steps(
		func() error { return expect(result.Exists(), "a stored document exists") },
		func() error { return expectEqual(result.Cas(), stored.Cas(), "CAS of a document") },
		func() error { return expect(s.isGone(key), "a removed document does not exist") },
	)
}

func remove(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	removed, err := s.collection.Remove(key, nil)
	if err != nil {
		return err
	}
	hasOwnCas := removed.Cas() != 0 && removed.Cas() != stored.Cas()
	if err := expect(hasOwnCas, "a removal has a CAS of its own"); err != nil {
		return err
	}
	_, err = s.collection.Get(key, nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func removeMissing(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	if _, err := s.collection.Remove(key, nil); err != nil {
		return err
	}
	for _, missing := range []string{key, s.key()} {
		_, err := s.collection.Remove(missing, nil)
		if err := expectError(err, gocb.ErrDocumentNotFound); err != nil {
			return err
		}
	}
	return nil
}

func removeWithStaleCas(s *sdk) error {
	key, stale, present, err := s.overwritten()
	if err != nil {
		return err
	}
	_, err = s.collection.Remove(key, &gocb.RemoveOptions{Cas: stale})
	if err := expectError(err, gocb.ErrCasMismatch, gocb.ErrDocumentExists); err != nil {
		return err
	}
	if err := s.expectNumber(key, 2); err != nil {
		return err
	}
	if _, err := s.collection.Remove(key, &gocb.RemoveOptions{Cas: present}); err != nil {
		return err
	}
	return expect(s.isGone(key), "the right CAS removes")
}

func insertAfterRemove(s *sdk) error {
	key, _, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	removed, err := s.collection.Remove(key, nil)
	if err != nil {
		return err
	}
	inserted, err := s.collection.Insert(key, numbered{2}, nil)
	if err != nil {
		return err
	}
	if err := expect(inserted.Cas() > removed.Cas(), "the CAS grows over a removal"); err != nil {
		return err
	}
	return s.expectNumber(key, 2)
}

func mutationTokens(s *sdk) error {
	key, stored, err := s.stored(1, nil)
	if err != nil {
		return err
	}
	replaced, err := s.collection.Replace(key, numbered{2}, nil)
	if err != nil {
		return err
	}
	removed, err := s.collection.Remove(key, nil)
	if err != nil {
		return err
	}
	first := stored.MutationToken()
	if first == nil || first.PartitionUUID() == 0 {
		return errors.New("a mutation returns a token with a uuid")
	}
	for index, result := range []*gocb.MutationResult{stored, replaced, removed} {
		token := result.MutationToken()
		got := []any{token.BucketName(), token.PartitionID(), token.PartitionUUID(),
			token.SequenceNumber()}
		wanted := []any{bucketName, first.PartitionID(), first.PartitionUUID(),
			first.SequenceNumber() + uint64(index)}
		if err := expectEqual(fmt.Sprint(got), fmt.Sprint(wanted), "token"); err != nil {
			return err
		}
	}
	return nil
}

func unicodeKey(s *sdk) error {
	for _, name := range []string{"\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\U0001f6cb",
		"a b/c\t%41"} {
		key := name + s.key()
		if _, err := s.collection.Upsert(key, numbered{1}, nil); err != nil {
			return err
		}
		if err := s.expectNumber(key, 1); err != nil {
			return err
		}
	}
	return nil
}

func keyOf250Bytes(s *sdk) error {
	key := strings.Repeat("k", 250)
	if _, err := s.collection.Upsert(key, numbered{250}, nil); err != nil {
		return err
	}
	return s.expectNumber(key, 250)
}

func keyOf251Bytes(s *sdk) error {
	_, err := s.collection.Upsert(strings.Repeat("k", 251), numbered{251}, nil)
	if err == nil {
		return errors.New("a key of 251 bytes is refused")
	}
	return expect(!errors.Is(err, gocb.ErrTimeout), "the refusal is no timeout")
}
