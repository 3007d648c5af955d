"""Cases: storing, reading and removing documents, with the errors of each."""

from cases import expect, expect_equal, expect_error
from couchbase.exceptions import (CasMismatchException, CouchbaseException,
                                  DocumentExistsException, DocumentNotFoundException)
from couchbase.options import RemoveOptions, ReplaceOptions


def declare(cases):
    """In the order of running."""
    for function in (upsert_and_get, upsert_overwrites, insert_new, insert_existing, get_missing,
                     replace_existing, replace_missing, replace_with_cas, replace_with_stale_cas,
                     exists, remove, remove_missing, remove_with_stale_cas, insert_after_remove,
                     mutation_tokens, unicode_key, key_of_250_bytes, key_of_251_bytes):
        cases.case(function)


def upsert_and_get(sdk):
    key, stored = sdk.stored({"name": "settee"})
    result = sdk.collection.get(key)
    expect_equal(result.content_as[dict], {"name": "settee"}, "value")
    expect(stored.cas != 0, "a store returns a CAS")
    expect_equal(result.cas, stored.cas, "CAS that is read")


def upsert_overwrites(sdk):
    key, first = sdk.stored({"n": 1})
    second = sdk.collection.upsert(key, {"n": 2})
    expect_equal(sdk.get_json(key), {"n": 2}, "value")
    expect(second.cas > first.cas, "the CAS of a document grows")


def insert_new(sdk):
    key = sdk.key()
    sdk.collection.insert(key, {"n": 1})
    expect_equal(sdk.get_json(key), {"n": 1}, "value")


def insert_existing(sdk):
    key, _ = sdk.stored({"n": 1})
    expect_error(DocumentExistsException, sdk.collection.insert, key, {"n": 2})
    expect_equal(sdk.get_json(key), {"n": 1}, "value after the refusal")


def get_missing(sdk):
    expect_error(DocumentNotFoundException, sdk.collection.get, sdk.key())


def replace_existing(sdk):
    key, _ = sdk.stored({"n": 1})
    sdk.collection.replace(key, {"n": 2})
    expect_equal(sdk.get_json(key), {"n": 2}, "value")


def replace_missing(sdk):
    key = sdk.key()
    expect_error(DocumentNotFoundException, sdk.collection.replace, key, {"n": 1})
    expect(sdk.is_gone(key), "a refused replace creates nothing")


def replace_with_cas(sdk):
    key, stored = sdk.stored({"n": 1})
    replaced = sdk.collection.replace(key, {"n": 2}, ReplaceOptions(cas=stored.cas))
    expect(replaced.cas != stored.cas, "a replace changes the CAS")
    expect_equal(sdk.get_json(key), {"n": 2}, "value")


def replace_with_stale_cas(sdk):
    key, stored = sdk.stored({"n": 1})
    sdk.collection.upsert(key, {"n": 2})
    expect_error(CasMismatchException,
                 sdk.collection.replace, key, {"n": 3}, ReplaceOptions(cas=stored.cas))
    expect_equal(sdk.get_json(key), {"n": 2}, "value after the refusal")


def exists(sdk):
    key = sdk.key()
    expect(not sdk.collection.exists(key).exists, "a key never stored does not exist")
    stored = sdk.collection.upsert(key, {})
    result = sdk.collection.exists(key)
    expect(result.exists, "a stored document exists")
    expect_equal(result.cas, stored.cas, "CAS of an existing document")
    sdk.collection.remove(key)
    expect(not sdk.collection.exists(key).exists, "a removed document does not exist")


def remove(sdk):
    key, stored = sdk.stored({"n": 1})
    removed = sdk.collection.remove(key)
    expect(removed.cas not in (0, stored.cas), "a removal has a CAS of its own")
    expect_error(DocumentNotFoundException, sdk.collection.get, key)


def remove_missing(sdk):
    key, _ = sdk.stored({"n": 1})
    sdk.collection.remove(key)
    expect_error(DocumentNotFoundException, sdk.collection.remove, key)
    expect_error(DocumentNotFoundException, sdk.collection.remove, sdk.key())


def remove_with_stale_cas(sdk):
    key, stored = sdk.stored({"n": 1})
    second = sdk.collection.upsert(key, {"n": 2})
    expect_error(CasMismatchException,
                 sdk.collection.remove, key, RemoveOptions(cas=stored.cas))
    expect_equal(sdk.get_json(key), {"n": 2}, "value after the refusal")
    sdk.collection.remove(key, RemoveOptions(cas=second.cas))
    expect(sdk.is_gone(key), "the right CAS removes")


def insert_after_remove(sdk):
    key, _ = sdk.stored({"n": 1})
    removed = sdk.collection.remove(key)
    inserted = sdk.collection.insert(key, {"n": 2})
    expect(inserted.cas > removed.cas, "the CAS grows over a removal")
    expect_equal(sdk.get_json(key), {"n": 2}, "value")


def mutation_tokens(sdk):
    key, stored = sdk.stored({"n": 1})
    tokens = [stored.mutation_token(), sdk.collection.replace(key, {"n": 2}).mutation_token(),
              sdk.collection.remove(key).mutation_token()]
    for token in tokens:
        expect_equal(token.bucket_name, "default", "bucket in the token")
        expect_equal(token.partition_id, tokens[0].partition_id, "vBucket of one key")
        expect_equal(token.partition_uuid, tokens[0].partition_uuid, "uuid of one vBucket")
        expect(token.partition_uuid != 0, "the uuid of a vBucket is not 0")
    seqnos = [token.sequence_number for token in tokens]
    expect_equal(seqnos, list(range(seqnos[0], seqnos[0] + 3)), "seqnos of three mutations")


def unicode_key(sdk):
    for name in ("\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\U0001f6cb", "a b/c\t%41"):
        key = sdk.key(name)
        sdk.collection.upsert(key, {"name": name})
        expect_equal(sdk.get_json(key), {"name": name}, f"value of {key!r}")


def key_of_250_bytes(sdk):
    key = "k" * 250
    sdk.collection.upsert(key, {"size": 250})
    expect_equal(sdk.get_json(key), {"size": 250}, "value")


def key_of_251_bytes(sdk):
    error = expect_error(CouchbaseException, sdk.collection.upsert, "k" * 251, {"size": 251})
    expect(not isinstance(error, DocumentExistsException), "the key itself is refused")
