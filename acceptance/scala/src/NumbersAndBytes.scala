package acceptance

import com.couchbase.client.core.error._
import com.couchbase.client.scala.codec.RawBinaryTranscoder
import com.couchbase.client.scala.kv.{GetOptions, UpsertOptions}

/** Cases: counters, and bytes that are added. */
object NumbersAndBytes {
  def declare(cases: Cases): Unit = {
    declareBytes(cases)
    declareNumbers(cases)
  }

  private def declareBytes(cases: Cases): Unit = {
    cases.add("append") { sdk =>
      val key = storedBytes(sdk, "hello")
      sdk.collection.binary.append(key, " world".getBytes).get
      expectBytes(sdk, key, "hello world")
    }
    cases.add("prepend") { sdk =>
      val key = storedBytes(sdk, "world")
      sdk.collection.binary.prepend(key, "hello ".getBytes).get
      expectBytes(sdk, key, "hello world")
    }
    cases.add("append-with-stale-cas") { sdk =>
      val key = storedBytes(sdk, "hello")
      val cas = sdk.collection.get(key).get.cas
      val more = " ".getBytes
      sdk.collection.binary.append(key, more, cas).get
      Expect.error[CasMismatchException](sdk.collection.binary.append(key, more, cas))
      Expect.error[CasMismatchException](sdk.collection.binary.prepend(key, more, cas))
      expectBytes(sdk, key, "hello ")
    }
    cases.add("append-missing") { sdk =>
      val binary = sdk.collection.binary
      Expect.error[DocumentNotFoundException](binary.append(sdk.key(), "x".getBytes))
      Expect.error[DocumentNotFoundException](binary.prepend(sdk.key(), "x".getBytes))
    }
  }

  private def declareNumbers(cases: Cases): Unit = {
    cases.add("increment-creates")(sdk => sdk.expectValue(counter(sdk, 100), 100))
    cases.add("increment") { sdk =>
      val key = counter(sdk, 1)
      Expect.that(sdk.collection.binary.increment(key, 1).get.cas != 0, "there is a CAS")
      Expect.equal(sdk.collection.binary.increment(key, 40).get.content, 42L, "counter")
    }
    cases.add("decrement") { sdk =>
      val key = counter(sdk, 42)
      Expect.equal(sdk.collection.binary.decrement(key, 1).get.content, 41L, "counter")
      Expect.equal(sdk.collection.binary.decrement(key, 40).get.content, 1L, "counter")
    }
    cases.add("decrement-stops-at-zero") { sdk =>
      val key = counter(sdk, 2)
      Expect.equal(sdk.collection.binary.decrement(key, 10).get.content, 0L, "counter")
    }
    cases.add("increment-missing") { sdk =>
      val key = sdk.key()
      Expect.error[DocumentNotFoundException](sdk.collection.binary.increment(key, 1))
      Expect.that(sdk.isGone(key), "a counter without an initial value is not created")
    }
    cases.add("increment-not-a-number") { sdk =>
      val key = storedBytes(sdk, "twelve")
      val error = Expect.error[Exception](sdk.collection.binary.increment(key, 1))
      Expect.that(!error.isInstanceOf[TimeoutException], "the refusal is no timeout")
      expectBytes(sdk, key, "twelve")
    }
    cases.add("counter-is-a-document") { sdk =>
      val key = sdk.stored(41).key
      Expect.equal(sdk.collection.binary.increment(key, 1).get.content, 42L, "counter")
      sdk.expectValue(key, 42)
    }
  }

  private def storedBytes(sdk: Sdk, text: String): String = {
    val key = sdk.key()
    val options = UpsertOptions().transcoder(RawBinaryTranscoder.Instance)
    sdk.collection.upsert(key, text.getBytes, options).get
    key
  }

  private def expectBytes(sdk: Sdk, key: String, text: String): Unit = {
    val options = GetOptions().transcoder(RawBinaryTranscoder.Instance)
    val read = sdk.collection.get(key, options).get.contentAs[Array[Byte]].get
    Expect.equal(new String(read), text, "value")
  }

  /** A counter with this value. */
  private def counter(sdk: Sdk, initial: Long): String = {
    val key = sdk.key()
    val made = sdk.collection.binary.increment(key, 1, Some(initial)).get
    Expect.equal(made.content, initial, "initial value")
    key
  }
}
