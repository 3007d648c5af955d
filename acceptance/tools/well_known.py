"""Cases: well-known command lines, as they are typed for the original."""

import json

from cases import expect, expect_equal
from certificates import ask_for_certificates, authority_of, client_certificate
from node import HOST
from typing_in import settee


def statistics_are_asked_for_as_ever(nodes, threads):
    """cbstats, mctimings and cbepctl, options before and behind what they are about."""
    node = nodes.of(threads)
    place = f"{HOST}:{node.port}"
    login = ["-u", node.user, "-p", node.password, "-b", "default"]
    settee("set", "a", "b", "--port", node.port, "--user", node.user, "--password", node.password)
    for words in ([place, *login, "all"], [place, "all", *login], [*login, place, "all"]):
        said = settee("cbstats", *words).out
        expect("\ncurr_items " in said and "\nep_total_persisted " in said, said[:500])
    table = json.loads(settee("cbstats", place, *login, "-j", "vbucket-details", "3").out)
    expect(table["vb_3"] == "active" and "vb_3:high_seqno" in table, str(table)[:300])
    for group in ("memory", "dcp", "checkpoint", "config", "kvstore", "hash", "scheduler",
                  "warmup", "tasks", "diskinfo", "failovers 0", "collections", "timings"):
        settee("cbstats", place, *login, *group.split())
    expect("nonsense" in settee("cbstats", place, *login, "nonsense", status=1).err, "no group")
    drawn = settee("mctimings", "-h", place, "-u", node.user, "-P", node.password, "-b", "default",
                   "SET", "GET")
    expect("store_cmd" in drawn.out, drawn.out)
    settee("cbepctl", place, *login, "set", "flush_param", "mem_high_wat_percent", "0.85")
    said = settee("cbepctl", place, *login, "set", "flush_param", "nonsense", "1", status=1)
    expect("there is no such parameter" in said.err, said.err)
    settee("cbepctl", place, *login, "drain")


def statistics_are_asked_for_over_tls(nodes, threads):
    """The same with what the original says of TLS: an authority, none, a client's certificate."""
    node = nodes.of(threads)
    ask_for_certificates(node)
    place, ca = f"{HOST}:{node.tls_port}", authority_of(node)
    certificate, key = client_certificate(node, node.user)
    login = ["-u", node.user, "-p", node.password]
    mctimings_login = ["-u", node.user, "-P", node.password]
    settee("set", "a", "b", "--port", node.port, "--user", node.user, "--password", node.password)
    files = ["--cacert", ca, "--client-cert", certificate, "--client-key", key]
    own_words = ["--ca", ca, "--tls-cert", certificate, "--tls-key", key]
    for said, who in (
            (["--tls", "--cacert", ca], login), (["--ssl", "--no-ssl-verify"], login),
            (["--tls", *files], []), (["--tls", *own_words], []),
            ([f"--tls={certificate},{key},{ca}"], []),
            ([f"--tls={certificate},{key}", "--cacert", ca], [])):
        expect("\ncurr_items " in settee("cbstats", place, *said, *who, "all").out, f"{said}")
        drawn = settee("mctimings", "-h", place, *said, *(mctimings_login if who else ()), "SET")
        expect("store_cmd" in drawn.out, f"{said}: {drawn.out}")
        settee("cbepctl", place, *who, *said, "set", "flush_param", "mem_high_wat_percent", "0.85")
        settee("cbepctl", place, "drain", *who, *said)
    listed = settee("couchbase-cli", "bucket-list", "-c",
                    f"https://{HOST}:{node.management_tls_port}", *files)
    expect("default" in listed.out, listed.out)
    refused = settee("cbstats", place, *login, "--tls", "all", status=1)
    expect("--ca FILE" in refused.err, refused.err)
    refused = settee("cbstats", place, *login, f"--tls={certificate}", "all", status=2)
    expect("CERT,KEY" in refused.err, refused.err)


def the_cluster_is_changed_as_ever(nodes, threads):
    """couchbase-cli makes, edits, flushes and deletes a bucket, with its collections, users and groups."""
    node = nodes.of(threads)
    cluster = ["-c", f"{HOST}:{node.management_port}", "-u", node.user, "-p", node.password]

    def typed(verb, *words, status=0):
        return settee("couchbase-cli", verb, *cluster, *words, status=status)

    def bucket():
        listed = json.loads(typed("bucket-list", "-o", "json").out)
        return next((one for one in listed if one["name"] == "x"), None)
    typed("bucket-create", "--bucket", "x", "--bucket-type", "couchbase", "--bucket-ramsize", "100",
          "--bucket-replica", "0", "--enable-flush", "1", "--wait")
    expect_equal(bucket()["quota"]["rawRAM"], 100 << 20, "its quota")
    typed("bucket-edit", "--bucket", "x", "--bucket-ramsize", "200")
    expect_equal(bucket()["quota"]["rawRAM"], 200 << 20, "another quota")
    typed("bucket-flush", "--bucket", "x", "--force")
    of_x = ["--bucket", "x"]
    typed("collection-manage", *of_x, "--create-scope", "s")
    typed("collection-manage", *of_x, "--create-collection", "s.c", "--max-ttl", "60")
    expect("c" in typed("collection-manage", *of_x, "--list-collections").out, "a collection")
    typed("collection-manage", *of_x, "--drop-collection", "s.c")
    typed("collection-manage", *of_x, "--drop-scope", "s")
    typed("user-manage", "--set", "--rbac-username", "ann", "--rbac-password", "anns-secret",
          "--rbac-name", "Ann", "--roles", "data_reader[x],data_writer[x]", "--auth-domain",
          "local")
    expect("ann" in typed("user-manage", "--list").out, "a user")
    ann = ["--user", "ann", "--password", "anns-secret", "--port", node.port, "--bucket", "x"]
    settee("set", "a", "anns", *ann)
    expect_equal(settee("get", "a", *ann).out, "anns", "the user reads and writes")
    typed("user-manage", "--set-group", "--group-name", "readers", "--roles", "data_reader[x]",
          "--group-description", "they read")
    typed("user-manage", "--set", "--rbac-username", "ann", "--roles", "", "--user-groups",
          "readers")
    settee("set", "a", "refused", *ann, status=1)
    expect_equal(settee("get", "a", *ann).out, "anns", "who belongs to the group reads")
    listed = settee("group", "list", "--management", f"http://{HOST}:{node.management_port}",
                    "--user", node.user, "--password", node.password)
    expect_equal(listed.out.split("\n")[1].split(), ["readers", "data_reader[x]", "they", "read"],
                 "the group")
    typed("user-manage", "--delete-group", "--group-name", "readers")
    settee("get", "a", *ann, status=1)
    expect("readers" not in typed("user-manage", "--list-groups").out, "no group is left")
    typed("user-manage", "--delete", "--rbac-username", "ann")
    typed("bucket-delete", "--bucket", "x")
    expect_equal(bucket(), None, "the bucket")
    said = typed("rebalance", status=2)
    expect("rebalance" in said.err, said.err)
    said = settee("couchbase-cli", "bucket-list", "-c", f"{HOST}:{node.management_port}", "-u",
                  node.user, "-p", "wrong", status=1)
    expect("does not know this user" in said.err, said.err)


CASES = (statistics_are_asked_for_as_ever, statistics_are_asked_for_over_tls,
         the_cluster_is_changed_as_ever)
