"""Nodes of a cluster, as the console of one of them shows them."""

import os
import re
import signal
from types import SimpleNamespace

from browser import Browser
from cases import expect_equal
from cluster_run import BUCKET, PASSWORD, USER, Cluster
from mcbp import SET, Connection
from node import HOST
from seen import expect_clean, shows

# More than what connections and their flow control take in while nobody reads: 1 MiB each.
DOCUMENTS = 40
VALUE = bytes(1 << 20)
LAG = re.compile(r"([\d,]+) changes still to be sent to other nodes")


def what_a_replica_lacks_is_shown_until_it_has_it(chromium):
    """The other node stands still while this one is written to."""
    with Cluster("console-cluster", nodes=2, replicas=1, vbuckets=16,
                 flags=["--memory-quota", "256MiB"]) as cluster:
        cluster.wait_until_replicated()
        node = SimpleNamespace(management_port=cluster.management_port(0), user=USER,
                               password=PASSWORD, name="console-cluster")
        vbucket = next(at for at, chain in enumerate(cluster.chains())
                       if chain[0] == cluster.port(0))
        browser = Browser(chromium, node)
        page = browser.sign_in()
        browser.go("vBuckets")
        page.locator(f"#vb-{vbucket}").click()
        shows(page, "0 changes still to be sent to other nodes")
        other = cluster.process_id(1)
        os.kill(other, signal.SIGSTOP)
        try:
            with Connection(HOST, cluster.port(0), 30) as connection:
                connection.open_bucket(USER, PASSWORD, BUCKET)
                for number in range(DOCUMENTS):
                    connection.call_successfully(SET, vbucket=vbucket, key=b"%d" % number,
                                                 extras=bytes(8), value=VALUE)
            page.wait_for_function(
                "() => /[1-9][\\d,]* changes still to be sent/.test(document.body.innerText)")
            browser.picture("replication-lag")
            print(f"  {LAG.search(page.locator('main').inner_text())[0]}")
        finally:
            os.kill(other, signal.SIGCONT)
        page.wait_for_function(
            "() => /\\b0 changes still to be sent to other nodes/.test(document.body.innerText)")
        cluster.wait_until_replicated()
        expect_clean(browser)
        browser.close()
        expect_equal(cluster.unexpected_log_lines(), [], "unexpected log lines")


CASES = [what_a_replica_lacks_is_shown_until_it_has_it]
