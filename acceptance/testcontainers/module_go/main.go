// Has the module for Go start a node, and makes a bucket, stores and reads a document there.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/couchbase/gocb/v2"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/couchbase"
)

const patience = 60 * time.Second

func run(ctx context.Context) error {
	// The module asks for all services whatever it is told, and waits for the answer to a ping of
	// the query service. Buckets it would make only where there is an index, too.
	container, err := couchbase.Run(ctx, "settee:0.1.0",
		testcontainers.WithEnv(map[string]string{
			"SETTEE_SETUP":           "anywhere",
			"SETTEE_QUERY_STUB_PORT": "8093",
		}),
		couchbase.WithAdminCredentials("tester", "secret-password"))
	if err != nil {
		return err
	}
	connectionString, err := container.ConnectionString(ctx)
	if err != nil {
		return err
	}
	cluster, err := gocb.Connect(connectionString, gocb.ClusterOptions{
		Username: container.Username(),
		Password: container.Password(),
	})
	if err != nil {
		return err
	}
	settings := gocb.BucketSettings{
		Name: "mine", RAMQuotaMB: 100, BucketType: gocb.CouchbaseBucketType, FlushEnabled: true,
	}
	buckets := cluster.Buckets()
	create := gocb.CreateBucketSettings{BucketSettings: settings}
	if err := buckets.CreateBucket(create, nil); err != nil {
		return err
	}
	bucket := cluster.Bucket("mine")
	if err := bucket.WaitUntilReady(patience, nil); err != nil {
		return err
	}
	if err := use(bucket.DefaultCollection(), buckets); err != nil {
		return err
	}
	if _, err := cluster.Query("SELECT 1", nil); !errors.Is(err, gocb.ErrServiceNotAvailable) {
		return fmt.Errorf("a query, which nobody carries out, ends with %v", err)
	}
	if err := cluster.Close(nil); err != nil {
		return err
	}
	return container.Terminate(ctx)
}

func use(documents *gocb.Collection, buckets *gocb.BucketManager) error {
	if _, err := documents.Upsert("sofa", map[string]int{"seats": 3}, nil); err != nil {
		return err
	}
	found, err := documents.Get("sofa", nil)
	if err != nil {
		return err
	}
	var sofa map[string]int
	if err := found.Content(&sofa); err != nil || sofa["seats"] != 3 {
		return fmt.Errorf("a sofa of %v seats: %w", sofa, err)
	}
	if err := buckets.FlushBucket("mine", nil); err != nil {
		return err
	}
	exists, err := documents.Exists("sofa", nil)
	if err == nil && exists.Exists() {
		err = errors.New("it is there behind a flush")
	}
	return err
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("stored, read and flushed")
}
