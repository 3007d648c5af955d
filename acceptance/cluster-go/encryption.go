package main

import (
	"crypto/x509"
	"fmt"
	"os"

	"github.com/couchbase/gocb/v2"
)

// tlsTwoNodes exchanges documents behind TLS with two nodes, each of which has its own authority.
func tlsTwoNodes(*sdk) error {
	file, err := os.ReadFile(os.Getenv("SETTEE_AUTHORITY"))
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(file)
	cluster, err := gocb.Connect(os.Getenv("SETTEE_TLS_CONNECT"), gocb.ClusterOptions{
		Authenticator: gocb.PasswordAuthenticator{
			Username: os.Getenv("SETTEE_USER"), Password: os.Getenv("SETTEE_PASSWORD"),
		},
		SecurityConfig: gocb.SecurityConfig{TLSRootCAs: trusted},
		TimeoutsConfig: gocb.TimeoutsConfig{ConnectTimeout: readyIn},
	})
	if err != nil {
		return err
	}
	defer cluster.Close(nil)
	bucket := cluster.Bucket(bucketName)
	if err := bucket.WaitUntilReady(readyIn, nil); err != nil {
		return err
	}
	behind := &sdk{cluster: cluster, collection: bucket.DefaultCollection()}
	for n := range count {
		key := fmt.Sprintf("tls-%d", n)
		if err := behind.put(key, n, gocb.DurabilityLevelNone); err != nil {
			return err
		}
		if err := behind.expectNumber(key, n); err != nil {
			return err
		}
	}
	return nil
}
