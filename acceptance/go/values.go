package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/couchbase/gocb/v2"
)

var valueCases = []testCase{
	{"json-values", jsonValues},
	{"json-as-text", jsonAsText},
	{"string-values", stringValues},
	{"binary-values", binaryValues},
	{"empty-value", emptyValue},
	{"value-of-1-mib", func(s *sdk) error { return s.digestReturns(1 << 20) }},
	{"value-of-20-mib", valueOf20MiB},
	{"value-above-20-mib", valueAbove20MiB},
	{"compressible-value", compressibleValue},
}

const valueBytesMax = 20 << 20

func jsonValues(s *sdk) error {
	for _, text := range []string{`{}`, `[]`, `{"a":{"b":[1,2,{"c":null}]}}`, `[true,false,null]`,
		`"text"`, `""`, `0`, `-1`, `9007199254740992`, `1.5`, `{"\u00e4":"\ud83d\udecb"}`} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return err
		}
		key := s.key()
		if _, err := s.collection.Upsert(key, value, nil); err != nil {
			return err
		}
		result, err := s.collection.Get(key, nil)
		if err != nil {
			return err
		}
		var read any
		if err := result.Content(&read); err != nil {
			return err
		}
		if err := expectEqual(fmt.Sprint(read), fmt.Sprint(value), "JSON value"); err != nil {
			return err
		}
	}
	return nil
}

// roundTrip stores and reads bytes or a text through a transcoder.
func roundTrip[T []byte | string](s *sdk, value T, transcoder gocb.Transcoder) (T, error) {
	var read T
	key := s.key()
	_, err := s.collection.Upsert(key, value, &gocb.UpsertOptions{Transcoder: transcoder})
	if err != nil {
		return read, err
	}
	result, err := s.collection.Get(key, &gocb.GetOptions{Transcoder: transcoder})
	if err != nil {
		return read, err
	}
	err = result.Content(&read)
	return read, err
}

func jsonAsText(s *sdk) error {
	text := `{"a" : 1,  "b":[ 2 ] }`
	read, err := roundTrip(s, []byte(text), gocb.NewRawJSONTranscoder())
	if err != nil {
		return err
	}
	return expectEqual(string(read), text, "JSON text")
}

func stringValues(s *sdk) error {
	for _, text := range []string{"plain", "\u00e4\u00f6 \u65e5\u672c \U0001f6cb", "{not json"} {
		read, err := roundTrip(s, text, gocb.NewRawStringTranscoder())
		if err != nil {
			return err
		}
		if err := expectEqual(read, text, "string"); err != nil {
			return err
		}
	}
	return nil
}

func binaryValues(s *sdk) error {
	everything := make([]byte, 256)
	for index := range everything {
		everything[index] = byte(index)
	}
	for _, value := range [][]byte{everything, {0}, []byte("\r\n"),
		bytes.Repeat(everything, 100)} {
		read, err := roundTrip(s, value, binary)
		if err != nil {
			return err
		}
		if err := expect(bytes.Equal(read, value), "bytes come back unchanged"); err != nil {
			return err
		}
	}
	return nil
}

func emptyValue(s *sdk) error {
	read, err := roundTrip(s, []byte{}, binary)
	if err != nil {
		return err
	}
	return expectEqual(len(read), 0, "bytes of an empty value")
}

// noise makes bytes that do not compress.
func noise(size int) []byte {
	source := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(size >> 16)})
	value := make([]byte, size)
	_, _ = source.Read(value)
	return value
}

func (s *sdk) digestReturns(size int) error {
	value := noise(size)
	read, err := roundTrip(s, value, binary)
	if err != nil {
		return err
	}
	return expectEqual(sha256.Sum256(read), sha256.Sum256(value), "digest")
}

func valueOf20MiB(s *sdk) error {
	return steps(
		func() error { return s.digestReturns(valueBytesMax) },
		func() error { return s.digestReturns(valueBytesMax - 1) },
	)
}

func valueAbove20MiB(s *sdk) error {
	key := s.key()
	options := &gocb.UpsertOptions{Transcoder: binary}
	_, err := s.collection.Upsert(key, noise(valueBytesMax+1), options)
	if err := expectError(err, gocb.ErrValueTooLarge); err != nil {
		return err
	}
	_, err = s.collection.Get(key, nil)
	return expectError(err, gocb.ErrDocumentNotFound)
}

func compressibleValue(s *sdk) error {
	text := strings.Repeat("to be compressed ", 1000)
	read, err := roundTrip(s, text, gocb.NewRawStringTranscoder())
	if err != nil {
		return err
	}
	if read != text {
		return errors.New("a compressible text comes back unchanged")
	}
	return nil
}
