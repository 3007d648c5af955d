package acceptance

import scala.util.Try

import com.couchbase.client.core.error._

/** Cases: whole documents. */
object Documents {
  def declare(cases: Cases): Unit = {
    declareStores(cases)
    declareReplacements(cases)
    declareRemovals(cases)
    declareKeys(cases)
  }

  private def declareStores(cases: Cases): Unit = {
    cases.add("upsert-and-get") { sdk =>
      val stored = sdk.stored(ujson.Obj("n" -> 1))
      val read = sdk.collection.get(stored.key).get
      Expect.that(stored.cas != 0, "a store returns a CAS")
      Expect.equal(read.cas, stored.cas, "CAS that is read")
      Expect.equal(read.contentAs[ujson.Obj].get, ujson.Obj("n" -> 1), "value")
    }
    cases.add("upsert-overwrites") { sdk =>
      val document = overwritten(sdk)
      Expect.that(document.present > document.stale, "the CAS of a document grows")
      sdk.expectValue(document.key, 2)
    }
    cases.add("insert-new") { sdk =>
      val key = sdk.key()
      sdk.collection.insert(key, 1).get
      sdk.expectValue(key, 1)
    }
    cases.add("insert-existing") { sdk =>
      val key = sdk.stored(1).key
      Expect.error[DocumentExistsException](sdk.collection.insert(key, 2))
      sdk.expectValue(key, 1)
    }
    cases.add("get-missing") { sdk =>
      Expect.error[DocumentNotFoundException](sdk.collection.get(sdk.key()))
    }
    cases.add("exists")(exists)
    cases.add("mutation-tokens")(mutationTokens)
  }

  private def declareReplacements(cases: Cases): Unit = {
    cases.add("replace-existing") { sdk =>
      val key = sdk.stored(1).key
      sdk.collection.replace(key, 2).get
      sdk.expectValue(key, 2)
    }
    cases.add("replace-missing") { sdk =>
      val key = sdk.key()
      Expect.error[DocumentNotFoundException](sdk.collection.replace(key, 1))
      Expect.that(sdk.isGone(key), "a refused replace creates nothing")
    }
    cases.add("replace-with-cas") { sdk =>
      val stored = sdk.stored(1)
      val replaced = sdk.collection.replace(stored.key, 2, stored.cas).get
      Expect.that(replaced.cas != stored.cas, "a replace changes the CAS")
      sdk.expectValue(stored.key, 2)
    }
    cases.add("replace-with-stale-cas") { sdk =>
      val document = overwritten(sdk)
      Expect.error[CasMismatchException](
        sdk.collection.replace(document.key, 3, document.stale)
      )
      sdk.expectValue(document.key, 2)
    }
  }

  private def declareRemovals(cases: Cases): Unit = {
    cases.add("remove") { sdk =>
      val stored = sdk.stored(1)
      val removed = sdk.collection.remove(stored.key).get
      Expect.that(removed.cas > stored.cas, "a removal has a CAS of its own")
      Expect.error[DocumentNotFoundException](sdk.collection.get(stored.key))
    }
    cases.add("remove-missing") { sdk =>
      val key = sdk.stored(1).key
      sdk.collection.remove(key).get
      for (missing <- Seq(key, sdk.key())) {
        Expect.error[DocumentNotFoundException](sdk.collection.remove(missing))
      }
    }
    cases.add("remove-with-stale-cas") { sdk =>
      val document = overwritten(sdk)
      Expect.error[CasMismatchException](sdk.collection.remove(document.key, document.stale))
      sdk.expectValue(document.key, 2)
      sdk.collection.remove(document.key, document.present).get
      Expect.that(sdk.isGone(document.key), "the right CAS removes")
    }
    cases.add("insert-after-remove") { sdk =>
      val key = sdk.stored(1).key
      val removed = sdk.collection.remove(key).get.cas
      val inserted = sdk.collection.insert(key, 2).get.cas
      Expect.that(inserted > removed, "the CAS grows over a removal")
      sdk.expectValue(key, 2)
    }
  }

  private def declareKeys(cases: Cases): Unit = {
    cases.add("unicode-key") { sdk =>
      val names = Seq("\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "\ud83d\udecb", "a b/c\t%41")
      for (name <- names) {
        val key = name + sdk.key()
        sdk.collection.upsert(key, name).get
        sdk.expectValue(key, name)
      }
    }
    // The SDK counts the collection's byte, too.
    cases.add("key-of-249-bytes") { sdk =>
      val key = "k" * 249
      sdk.collection.upsert(key, 249).get
      sdk.expectValue(key, 249)
    }
    cases.add("key-of-251-bytes") { sdk =>
      val attempt = Try(sdk.collection.upsert("k" * 251, 251)).flatten
      val error = Expect.error[Exception](attempt)
      Expect.that(!error.isInstanceOf[TimeoutException], "the refusal is no timeout")
    }
  }

  private final case class Overwritten(key: String, stale: Long, present: Long)

  /** A document with an old and a present CAS; it holds 2. */
  private def overwritten(sdk: Sdk): Overwritten = {
    val stored = sdk.stored(1)
    Overwritten(stored.key, stored.cas, sdk.collection.upsert(stored.key, 2).get.cas)
  }

  private def exists(sdk: Sdk): Unit = {
    val key = sdk.key()
    Expect.that(sdk.isGone(key), "a key never stored does not exist")
    val cas = sdk.collection.upsert(key, 1).get.cas
    val found = sdk.collection.exists(key).get
    Expect.that(found.exists, "a stored document exists")
    Expect.equal(found.cas, cas, "CAS of a document")
    sdk.collection.remove(key).get
    Expect.that(sdk.isGone(key), "a removed document does not exist")
  }

  private def mutationTokens(sdk: Sdk): Unit = {
    val stored = sdk.stored(1)
    val first = stored.result.mutationToken.get
    Expect.that(first.partitionUUID != 0, "a mutation returns a token with a uuid")
    val later =
      Seq(sdk.collection.replace(stored.key, 2).get, sdk.collection.remove(stored.key).get)
    for ((result, index) <- later.zipWithIndex) {
      val token = result.mutationToken.get
      Expect.equal(token.bucketName, Sdk.Name, "bucket")
      Expect.equal(token.partitionID, first.partitionID, "vBucket")
      Expect.equal(token.partitionUUID, first.partitionUUID, "uuid")
      Expect.equal(token.sequenceNumber, first.sequenceNumber + index + 1, "seqno")
    }
  }
}
