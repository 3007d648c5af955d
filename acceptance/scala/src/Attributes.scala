package acceptance

import com.couchbase.client.core.error.DocumentNotFoundException
import com.couchbase.client.scala.kv._

/** Cases: attributes of documents, and macros. */
object Attributes {
  private val Cas: MutateInMacro = MutateInMacro.CAS
  private val SeqNo: MutateInMacro = MutateInMacro.SeqNo
  private val Sum: MutateInMacro = MutateInMacro.ValueCrc32c

  def declare(cases: Cases): Unit = {
    cases.add("attributes-are-beside-the-body")(besideTheBody)
    cases.add("attributes-of-the-server")(ofTheServer)
    cases.add("macros-name-the-change")(macros)
    cases.add("paths-are-changed-durably")(durably)
    cases.add("removed-documents-keep-system-attributes")(ofRemoved)
  }

  /** What is at the path of an attribute. */
  private def attribute(sdk: Sdk, key: String, path: String): ujson.Value =
    sdk.collection
      .lookupIn(key, Seq(LookupInSpec.get(path).xattr))
      .get
      .contentAs[ujson.Value](0)
      .get

  private def besideTheBody(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("a" -> 1)).key
    SubDocuments.change(sdk, key)(
      MutateInSpec.upsert("meta.by", "me").xattr.createPath,
      MutateInSpec.upsert("_system", ujson.Arr(1)).xattr,
      MutateInSpec.upsert("b", 2)
    )
    sdk.expectValue(key, ujson.Obj("a" -> 1, "b" -> 2))
    Expect.equal(attribute(sdk, key, "meta.by"), ujson.Str("me"), "attribute")
    sdk.collection.replace(key, ujson.Obj("c" -> 3)).get
    Expect.equal[Any](attribute(sdk, key, "meta"), ujson.Obj("by" -> "me"), "stores keep it")
    SubDocuments.change(sdk, key)(MutateInSpec.remove("meta").xattr)
    val found = sdk.collection.lookupIn(key, Seq(LookupInSpec.exists("meta").xattr)).get
    Expect.that(!found.exists(0), "it is removed")
    Expect.equal[Any](attribute(sdk, key, "_system"), ujson.Arr(1), "another stays")
    sdk.expectValue(key, ujson.Obj("c" -> 3))
  }

  private def ofTheServer(sdk: Sdk): Unit = {
    val stored = sdk.stored(ujson.Obj("a" -> 1))
    val key = stored.key
    val document = attribute(sdk, key, LookupInMacro.Document)
    Expect.equal(number(document("CAS")), stored.cas, "CAS")
    Expect.that(!document("deleted").bool, "it is not deleted")
    Expect.equal[Any](document("datatype"), ujson.Arr("json"), "datatype")
    Expect.equal(number(document("seqno")), Sdk.seqno(stored.result), "seqno")
    for (
      name <- Seq(
        LookupInMacro.ExpiryTime,
        LookupInMacro.CAS,
        LookupInMacro.SeqNo,
        LookupInMacro.LastModified,
        LookupInMacro.IsDeleted,
        LookupInMacro.ValueSizeBytes,
        LookupInMacro.RevId
      )
    ) attribute(sdk, key, name)
    val now = attribute(sdk, key, "$vbucket.HLC")("now").str.toLong
    Expect.that((now - System.currentTimeMillis / 1000).abs < 60, s"the time: $now")
    SubDocuments.change(sdk, key)(MutateInSpec.upsert("x", 1).xattr)
    Expect.equal[Any](attribute(sdk, key, "$XTOC"), ujson.Arr("x"), "keys")
  }

  /** A number that the server tells as a text. */
  private def number(told: ujson.Value): Long = java.lang.Long.decode(told.str)

  private def macros(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("a" -> 1)).key
    val changed = SubDocuments.change(sdk, key)(
      MutateInSpec.upsert("m.cas", Cas).xattr.createPath,
      MutateInSpec.upsert("m.seqno", SeqNo).xattr,
      MutateInSpec.upsert("m.sum", Sum).xattr
    )
    val told = attribute(sdk, key, "m")
    Expect.equal(casOf(told("cas")), changed.cas, "CAS")
    Expect.equal(number(told("seqno")), changed.mutationToken.get.sequenceNumber, "seqno")
    Expect.equal(attribute(sdk, key, "$document.value_crc32c"), told("sum"), "sum")
  }

  /** The CAS that a macro has written: a number whose bytes are in the other order. */
  private def casOf(told: ujson.Value): Long =
    java.lang.Long.reverseBytes(java.lang.Long.parseUnsignedLong(told.str.drop(2), 16))

  private def durably(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("n" -> 1)).key
    for (level <- Durable.Levels) {
      val specs = Seq(MutateInSpec.increment("n", 1), MutateInSpec.upsert("cas", Cas).xattr)
      val counted = sdk.collection.mutateIn(key, specs, durability = level).get
      val found = sdk.collection.get(key).get
      val number = found.contentAs[ujson.Obj].get("n").num.toLong
      Expect.equal(counted.contentAs[Long](0).get, number, "counter")
      Expect.equal(found.cas, counted.cas, "CAS")
      Expect.equal(casOf(attribute(sdk, key, "cas")), counted.cas, "CAS")
    }
    sdk.expectValue(key, ujson.Obj("n" -> 4))
  }

  private def ofRemoved(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("a" -> 1)).key
    SubDocuments.change(sdk, key)(
      MutateInSpec.upsert("_system", ujson.Obj("kept" -> 1)).xattr,
      MutateInSpec.upsert("meta", 1).xattr
    )
    sdk.collection.remove(key).get
    val paths = Seq(LookupInSpec.get("_system").xattr, LookupInSpec.exists("meta").xattr)
    Expect.error[DocumentNotFoundException](sdk.collection.lookupIn(key, paths))
    val found =
      sdk.collection.lookupIn(key, paths, LookupInOptions().accessDeleted(true)).get
    Expect.equal(found.contentAs[ujson.Obj](0).get, ujson.Obj("kept" -> 1), "the system's")
    Expect.that(!found.exists(1), "the user's attribute is gone")
  }
}
