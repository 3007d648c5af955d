"""Cases: connecting, being refused, asking how the connections are."""

import time
from datetime import timedelta

from cases import expect, expect_equal, expect_error
from couchbase.diagnostics import ClusterState, EndpointState, PingState, ServiceType
from couchbase.exceptions import (AuthenticationException, BucketNotFoundException,
                                  TimeoutException)
from couchbase.options import PingOptions
from sdk import BUCKET


def declare(cases):
    """In the order of running."""
    for function in (connect, wait_until_ready, ping, diagnostics, wrong_password_is_refused,
                     unknown_user_is_refused, unknown_bucket_is_refused):
        cases.case(function)


def connect(sdk):
    cluster = sdk.connect()
    try:
        collection = cluster.bucket(BUCKET).default_collection()
        expect(not collection.exists("connect").exists, "a fresh cluster object reads")
    finally:
        cluster.close()


def wait_until_ready(sdk):
    sdk.cluster.wait_until_ready(timedelta(seconds=10))
    expect_equal(sdk.cluster.diagnostics().state, ClusterState.Online, "state of the cluster")


def ping(sdk):
    result = sdk.bucket.ping(PingOptions(service_types=[ServiceType.KeyValue]))
    endpoints = result.endpoints[ServiceType.KeyValue]
    expect(endpoints, "the data service answers a ping")
    for endpoint in endpoints:
        expect_equal(endpoint.state, PingState.OK, "state of a pinged endpoint")


def diagnostics(sdk):
    endpoints = sdk.cluster.diagnostics().endpoints[ServiceType.KeyValue]
    expect(endpoints, "diagnostics knows connections of the data service")
    for endpoint in endpoints:
        expect_equal(endpoint.state, EndpointState.Connected, "state of an endpoint")


def wrong_password_is_refused(sdk):
    started = time.monotonic()
    expect_error(AuthenticationException, sdk.connect, password="wrong")
    expect(time.monotonic() - started < 3, "a wrong password is refused at once")


def unknown_user_is_refused(sdk):
    started = time.monotonic()
    expect_error(AuthenticationException, sdk.connect, user="nobody")
    expect(time.monotonic() - started < 3, "an unknown user is refused at once")


def unknown_bucket_is_refused(sdk):
    cluster = sdk.connect()
    try:
        expect_error((BucketNotFoundException, TimeoutException), open_bucket, cluster, "absent")
    finally:
        cluster.close()


def open_bucket(cluster, name):
    """Opens a bucket and reads from it."""
    cluster.bucket(name).default_collection().get("key", timeout=timedelta(seconds=2))
