package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/couchbase/gocb/v2"
)

// TLS; the files are named by variables.
var encryptionCases = []testCase{
	{"tls-exchanges-documents", tlsExchangesDocuments},
	{"tls-of-another-authority-is-refused", tlsOfAnotherAuthority},
	{"tls-client-certificate", tlsClientCertificate},
	{"tls-certificate-of-nobody", tlsCertificateOfNobody},
}

func byPassword() gocb.Authenticator {
	return gocb.PasswordAuthenticator{
		Username: os.Getenv("SETTEE_USER"), Password: os.Getenv("SETTEE_PASSWORD"),
	}
}

// byCertificate is the user whom a certificate names.
func byCertificate(certificate, key string) (gocb.Authenticator, error) {
	pair, err := tls.LoadX509KeyPair(os.Getenv(certificate), os.Getenv(key))
	return gocb.CertificateAuthenticator{ClientCertificate: &pair}, err
}

// connectBehindTLS returns when the bucket can be used, or cannot within the limit.
func connectBehindTLS(
	authenticator gocb.Authenticator, authority string, limit time.Duration,
) (*gocb.Cluster, error) {
	file, err := os.ReadFile(os.Getenv(authority))
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(file)
	cluster, err := gocb.Connect(os.Getenv("SETTEE_TLS_CONNECT"), gocb.ClusterOptions{
		Authenticator:  authenticator,
		SecurityConfig: gocb.SecurityConfig{TLSRootCAs: trusted},
		TimeoutsConfig: gocb.TimeoutsConfig{ConnectTimeout: limit, KVTimeout: limit},
	})
	if err != nil {
		return nil, err
	}
	if err := cluster.Bucket(bucketName).WaitUntilReady(limit, nil); err != nil {
		_ = cluster.Close(nil)
		return nil, err
	}
	return cluster, nil
}

// exchange stores and reads documents of these sizes in bytes behind TLS.
func exchange(authenticator gocb.Authenticator, name string, sizes ...int) error {
	cluster, err := connectBehindTLS(authenticator, "SETTEE_AUTHORITY", readyIn)
	if err != nil {
		return err
	}
	defer cluster.Close(nil)
	collection := cluster.Bucket(bucketName).DefaultCollection()
	for _, size := range sizes {
		key, value := fmt.Sprintf("%s-%d", name, size), strings.Repeat("x", size)
		if _, err := collection.Upsert(key, value, nil); err != nil {
			return err
		}
		result, err := collection.Get(key, nil)
		if err != nil {
			return err
		}
		var read string
		if err := result.Content(&read); err != nil {
			return err
		}
		if read != value {
			return fmt.Errorf("%d bytes come back", size)
		}
	}
	return nil
}

func expectNoConnection(authenticator gocb.Authenticator, authority string) error {
	cluster, err := connectBehindTLS(authenticator, authority, 3*time.Second)
	if err == nil {
		_ = cluster.Close(nil)
		return errors.New("nobody connects so")
	}
	return expectError(err, gocb.ErrTimeout, gocb.ErrAuthenticationFailure)
}

func tlsExchangesDocuments(*sdk) error {
	return exchange(byPassword(), "tls", 1, 5000, 20_000, 1<<20, 15<<20)
}

func tlsOfAnotherAuthority(*sdk) error {
	return expectNoConnection(byPassword(), "SETTEE_OTHER_AUTHORITY")
}

func tlsClientCertificate(*sdk) error {
	own, err := byCertificate("SETTEE_CERTIFICATE", "SETTEE_KEY")
	if err != nil {
		return err
	}
	return exchange(own, "tls-certificate", 100)
}

func tlsCertificateOfNobody(*sdk) error {
	stranger, err := byCertificate("SETTEE_STRANGERS_CERTIFICATE", "SETTEE_STRANGERS_KEY")
	if err != nil {
		return err
	}
	return steps(
		func() error { return expectNoConnection(stranger, "SETTEE_AUTHORITY") },
		func() error { return exchange(byPassword(), "tls-after-nobody", 100) },
	)
}
