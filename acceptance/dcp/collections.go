package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/couchbase/gocbcore/v10"
)

const scopesPath = "/pools/default/buckets/" + bucketName + "/scopes"

// manifest is what REST says of scopes and collections.
type manifest struct {
	Scopes []struct {
		Name        string
		Collections []struct{ Name, UID string }
	}
}

// rest makes a request of the administrator, which must succeed.
func rest(method, path string, form url.Values) ([]byte, error) {
	body := strings.NewReader(form.Encode())
	request, err := http.NewRequest(method, os.Getenv("SETTEE_REST")+path, body)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(os.Getenv("SETTEE_USER"), os.Getenv("SETTEE_PASSWORD"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %.200s", method, path, response.Status, answer)
	}
	return answer, err
}

// createCollection makes a collection in a new scope, and returns its id once the node has it.
func createCollection(scope, name string) (uint32, error) {
	if _, err := rest("POST", scopesPath, url.Values{"name": {scope}}); err != nil {
		return 0, err
	}
	path := scopesPath + "/" + scope + "/collections"
	answer, err := rest("POST", path, url.Values{"name": {name}})
	if err != nil {
		return 0, err
	}
	var made struct{ UID string }
	if err := json.Unmarshal(answer, &made); err != nil {
		return 0, err
	}
	if _, err := rest("POST", scopesPath+"/@ensureManifest/"+made.UID, nil); err != nil {
		return 0, err
	}
	if answer, err = rest("GET", scopesPath, nil); err != nil {
		return 0, err
	}
	var known manifest
	if err := json.Unmarshal(answer, &known); err != nil {
		return 0, err
	}
	for _, each := range known.Scopes {
		for _, collection := range each.Collections {
			if each.Name == scope && collection.Name == name {
				id, err := strconv.ParseUint(collection.UID, 16, 32)
				return uint32(id), err
			}
		}
	}
	return 0, fmt.Errorf("%s.%s is not there: %s", scope, name, answer)
}

func oneCollection(b *bench) error {
	const count = 300
	id, err := createCollection("shop", "fruit")
	if err != nil {
		return err
	}
	documents := map[string]string{}
	for number := range count {
		key, value := fmt.Sprintf("fruit-%d", number), fmt.Sprintf("value-%d", number)
		if err := b.writer.setIn("shop", "fruit", key, value); err != nil {
			return err
		}
		documents[key] = value
		if err := b.writer.set(fmt.Sprintf("beside-%d", number), "value", 0); err != nil {
			return err
		}
	}
	consumer, err := newConsumer("one-collection", nil)
	if err != nil {
		return err
	}
	defer consumer.close()
	high, err := consumer.highOf(gocbcore.GetVbucketSeqnoOptions{
		FilterOptions: &gocbcore.GetVbucketSeqnoFilterOptions{CollectionID: id},
	})
	if err != nil {
		return err
	}
	err = expect(len(high) == consumer.vbuckets, "%d vBuckets know the collection", len(high))
	if err != nil {
		return err
	}
	options := gocbcore.OpenStreamOptions{
		FilterOptions: &gocbcore.OpenStreamFilterOptions{CollectionIDs: []uint32{id}},
	}
	for vbid, end := range high {
		into := &stream{documents: map[string]string{}}
		consumer.streams[vbid] = into
		end := gocbcore.SeqNo(end)
		if err := consumer.request(vbid, 0, 0, end, 0, 0, options, into); err != nil {
			return fmt.Errorf("vBucket %d: %w", vbid, err)
		}
	}
	if err := consumer.wait(func(s *stream) bool { return s.ended }, "streams end"); err != nil {
		return err
	}
	for vbid, each := range consumer.streams {
		isTold := len(each.created) == 1 && each.created[0] == id
		if err := expect(isTold, "vBucket %d: created %v", vbid, each.created); err != nil {
			return err
		}
	}
	return consumer.equals(documents)
}
