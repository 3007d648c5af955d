package acceptance

import scala.concurrent.duration._
import scala.util.Random

import com.couchbase.client.core.error.ValueTooLargeException
import com.couchbase.client.scala.codec._
import com.couchbase.client.scala.kv.{GetOptions, UpsertOptions}

/** Cases: values of all kinds and sizes. */
object Values {
  private val BytesMax = 20 << 20
  private val Patient = 20.seconds
  private val Json = Seq[ujson.Value](
    ujson.Obj(),
    ujson.Arr(),
    ujson.Obj("a" -> ujson.Obj("b" -> ujson.Arr(1, 2))),
    ujson.Arr(true, false, ujson.Null),
    "text",
    "",
    0,
    -1,
    ujson.Num(9007199254740992d),
    1.5,
    ujson.Obj("\u00e4" -> ujson.Null)
  )

  def declare(cases: Cases): Unit = {
    declareTexts(cases)
    cases.add("binary-values") { sdk =>
      val everything = Array.tabulate(25600)(_.toByte)
      for (value <- Seq(everything, Array[Byte](0), "\r\n".getBytes)) {
        expectBytesReturn(sdk, value)
      }
    }
    cases.add("empty-value")(expectBytesReturn(_, Array.emptyByteArray))
    cases.add("value-of-1-mib")(expectBytesReturn(_, noise(1 << 20)))
    cases.add("value-of-20-mib") { sdk =>
      expectBytesReturn(sdk, noise(BytesMax))
      expectBytesReturn(sdk, noise(BytesMax - 1))
    }
    cases.add("value-above-20-mib") { sdk =>
      val key = sdk.key()
      Expect.error[ValueTooLargeException](
        sdk.collection.upsert(key, noise(BytesMax + 1), stores(RawBinaryTranscoder.Instance))
      )
      Expect.that(sdk.isGone(key), "nothing is stored")
    }
  }

  private def declareTexts(cases: Cases): Unit = {
    cases.add("json-values") { sdk =>
      Json.foreach(value => sdk.expectValue(sdk.stored(value).key, value))
    }
    cases.add("json-as-text") { sdk =>
      expectTextReturns(sdk, "{\"a\" : 1,  \"b\":[ 2 ] }", RawJsonTranscoder.Instance)
    }
    cases.add("string-values") { sdk =>
      for (text <- Seq("plain", "\u00e4 \u65e5\u672c \ud83d\udecb", "{not json")) {
        expectTextReturns(sdk, text, RawStringTranscoder.Instance)
      }
    }
    cases.add("compressible-value") { sdk =>
      expectTextReturns(sdk, "to be compressed " * 1000, RawStringTranscoder.Instance)
    }
  }

  private def stores(transcoder: Transcoder): UpsertOptions =
    UpsertOptions().transcoder(transcoder).timeout(Patient)

  private def reads(transcoder: Transcoder): GetOptions =
    GetOptions().transcoder(transcoder).timeout(Patient)

  private def expectTextReturns(sdk: Sdk, text: String, transcoder: Transcoder): Unit = {
    val key = sdk.key()
    sdk.collection.upsert(key, text, stores(transcoder)).get
    val read = sdk.collection.get(key, reads(transcoder)).get.contentAs[String].get
    Expect.equal(read, text, "text")
  }

  private def expectBytesReturn(sdk: Sdk, value: Array[Byte]): Unit = {
    val key = sdk.key()
    sdk.collection.upsert(key, value, stores(RawBinaryTranscoder.Instance)).get
    val options = reads(RawBinaryTranscoder.Instance)
    val read = sdk.collection.get(key, options).get.contentAs[Array[Byte]].get
    Expect.that(read.sameElements(value), "bytes come back unchanged")
  }

  /** Bytes that do not compress. */
  private def noise(size: Int): Array[Byte] = new Random(size).nextBytes(size)
}
