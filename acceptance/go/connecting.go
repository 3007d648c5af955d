package main

import (
	"errors"
	"os"
	"time"

	"github.com/couchbase/gocb/v2"
)

var connectingCases = []testCase{
	{"connect", connectAndRead},
	{"wait-until-ready", waitUntilReady},
	{"ping", ping},
	{"diagnostics", diagnostics},
	{"wrong-password-is-refused", wrongPasswordIsRefused},
	{"unknown-user-is-refused", unknownUserIsRefused},
	{"unknown-bucket-is-refused", unknownBucketIsRefused},
}

func connectAndRead(s *sdk) error {
	cluster, err := connect(os.Getenv("SETTEE_USER"), os.Getenv("SETTEE_PASSWORD"))
	if err != nil {
		return err
	}
	defer cluster.Close(nil)
	result, err := cluster.Bucket(bucketName).DefaultCollection().Exists("connect", nil)
	if err != nil {
		return err
	}
	return expect(!result.Exists(), "a fresh cluster object reads")
}

func waitUntilReady(s *sdk) error {
	if err := s.cluster.WaitUntilReady(readyIn, nil); err != nil {
		return err
	}
	return s.bucket.WaitUntilReady(readyIn, nil)
}

func ping(s *sdk) error {
	result, err := s.bucket.Ping(&gocb.PingOptions{
		ServiceTypes: []gocb.ServiceType{gocb.ServiceTypeKeyValue},
	})
	if err != nil {
		return err
	}
	endpoints := result.Services[gocb.ServiceTypeKeyValue]
	if len(endpoints) == 0 {
		return errors.New("the data service answers a ping")
	}
	for _, endpoint := range endpoints {
		if err := expectEqual(endpoint.State, gocb.PingStateOk, "state"); err != nil {
			return err
		}
	}
	return nil
}

func diagnostics(s *sdk) error {
	result, err := s.cluster.Diagnostics(nil)
	if err != nil {
		return err
	}
	endpoints := result.Services["kv"]
	if len(endpoints) == 0 {
		return errors.New("diagnostics knows connections of the data service")
	}
	for _, endpoint := range endpoints {
		err := expectEqual(endpoint.State, gocb.EndpointStateConnected, "state")
		if err != nil {
			return err
		}
	}
	return nil
}

// expectRefused connects with credentials that are wrong.
func expectRefused(user, password string) error {
	cluster, err := connect(user, password)
	if err != nil {
		return err
	}
	defer cluster.Close(nil)
	// Without the strategy the SDK repeats a refused authentication until its time is over.
	err = cluster.Bucket(bucketName).WaitUntilReady(readyIn, &gocb.WaitUntilReadyOptions{
		RetryStrategy: failFast{},
	})
	return expectError(err, gocb.ErrAuthenticationFailure)
}

type failFast struct{}

func (failFast) RetryAfter(gocb.RetryRequest, gocb.RetryReason) gocb.RetryAction {
	return &gocb.NoRetryRetryAction{}
}

func wrongPasswordIsRefused(*sdk) error {
	return expectRefused(os.Getenv("SETTEE_USER"), "wrong")
}

func unknownUserIsRefused(*sdk) error {
	return expectRefused("nobody", os.Getenv("SETTEE_PASSWORD"))
}

func unknownBucketIsRefused(s *sdk) error {
	err := s.cluster.Bucket("absent").WaitUntilReady(2*time.Second, nil)
	return expectError(err, gocb.ErrTimeout, gocb.ErrBucketNotFound, gocb.ErrAuthenticationFailure)
}
