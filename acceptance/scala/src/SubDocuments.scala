package acceptance

import scala.concurrent.duration._

import com.couchbase.client.core.error._
import com.couchbase.client.core.error.subdoc._
import com.couchbase.client.scala.codec.RawBinaryTranscoder
import com.couchbase.client.scala.kv._

/** Cases: parts of documents. */
object SubDocuments {
  private val Document = ujson.Obj(
    "name" -> "Ann",
    "scores" -> ujson.Arr(3, 5),
    "address" -> ujson.Obj("city" -> "Ulm", "lines" -> ujson.Arr(1, 2, 3))
  )

  def declare(cases: Cases): Unit = {
    cases.add("paths-are-looked-up")(lookedUp)
    cases.add("paths-that-are-not-there")(notThere)
    cases.add("paths-are-changed")(changed)
    cases.add("arrays-are-changed")(arrays)
    cases.add("counters-in-documents")(counters)
    cases.add("parents-are-created")(parents)
    cases.add("documents-are-created-by-paths")(created)
    cases.add("paths-change-together-or-not-at-all")(together)
    cases.add("paths-need-json")(needJson)
    cases.add("paths-with-cas-and-locks")(casAndLocks)
    cases.add("paths-and-expiry")(expiry)
    cases.add("parallel-changes-of-one-document")(inParallel)
  }

  def change(sdk: Sdk, key: String)(specs: MutateInSpec*): MutateInResult =
    sdk.collection.mutateIn(key, specs).get

  private def refuse[E <: Throwable](sdk: Sdk, key: String)(specs: MutateInSpec*)(implicit
      kind: reflect.ClassTag[E]
  ): Unit = Expect.error[E](sdk.collection.mutateIn(key, specs))

  private def lookedUp(sdk: Sdk): Unit = {
    val stored = sdk.stored(Document)
    val specs = Seq(
      LookupInSpec.get("name"),
      LookupInSpec.get("address.lines[-1]"),
      LookupInSpec.exists("scores"),
      LookupInSpec.count("scores"),
      LookupInSpec.get("")
    )
    val found = sdk.collection.lookupIn(stored.key, specs).get
    Expect.equal(found.cas, stored.cas, "CAS")
    Expect.equal(found.contentAs[String](0).get, "Ann", "text")
    Expect.equal(found.contentAs[Int](1).get, 3, "last element")
    Expect.that(found.exists(2), "there is such a path")
    Expect.equal(found.contentAs[Int](3).get, 2, "count")
    Expect.equal(found.contentAs[ujson.Obj](4).get, Document, "the whole document")
    val options = GetOptions().project(Seq("name", "address.city"))
    val projected = sdk.collection.get(stored.key, options).get.contentAs[ujson.Obj].get
    val wanted = ujson.Obj("name" -> "Ann", "address" -> ujson.Obj("city" -> "Ulm"))
    Expect.equal(projected, wanted, "part")
  }

  private def notThere(sdk: Sdk): Unit = {
    val specs = Seq(
      LookupInSpec.get("none"),
      LookupInSpec.get("name.first"),
      LookupInSpec.get("name"),
      LookupInSpec.exists("none"),
      LookupInSpec.get("a..b")
    )
    val found = sdk.collection.lookupIn(sdk.stored(Document).key, specs).get
    Expect.error[PathNotFoundException](found.contentAs[String](0))
    Expect.error[PathMismatchException](found.contentAs[String](1))
    Expect.equal(found.contentAs[String](2).get, "Ann", "another path is answered")
    Expect.that(!found.exists(3), "there is no such path")
    Expect.error[PathInvalidException](found.contentAs[String](4))
    Expect.error[DocumentNotFoundException](sdk.collection.lookupIn(sdk.key(), specs))
  }

  private def changed(sdk: Sdk): Unit = {
    val stored = sdk.stored(Document)
    val key = stored.key
    val changed = change(sdk, key)(
      MutateInSpec.upsert("name", "Eva"),
      MutateInSpec.insert("born", 1980),
      MutateInSpec.replace("address.city", "Bonn"),
      MutateInSpec.remove("scores")
    )
    Expect.that(changed.cas > stored.cas, "the CAS grows")
    Expect.that(changed.mutationToken.isDefined, "there is a token")
    val address = ujson.Obj("city" -> "Bonn", "lines" -> ujson.Arr(1, 2, 3))
    sdk.expectValue(key, ujson.Obj("name" -> "Eva", "address" -> address, "born" -> 1980))
    refuse[PathExistsException](sdk, key)(MutateInSpec.insert("born", 1))
    refuse[PathNotFoundException](sdk, key)(MutateInSpec.replace("none", 1))
    refuse[PathNotFoundException](sdk, key)(MutateInSpec.remove("none"))
    refuse[PathMismatchException](sdk, key)(MutateInSpec.upsert("name.first", 1))
    refuse[DocumentNotFoundException](sdk, sdk.key())(MutateInSpec.upsert("a", 1))
  }

  private def arrays(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("list" -> ujson.Arr(2))).key
    change(sdk, key)(
      MutateInSpec.arrayAppend("list", Seq(3, 4)),
      MutateInSpec.arrayPrepend("list", Seq(1)),
      MutateInSpec.arrayInsert("list[1]", Seq(1.5)),
      MutateInSpec.arrayAddUnique("list", 5)
    )
    sdk.expectValue(key, ujson.Obj("list" -> ujson.Arr(1, 1.5, 2, 3, 4, 5)))
    refuse[PathExistsException](sdk, key)(MutateInSpec.arrayAddUnique("list", 5))
    refuse[PathNotFoundException](sdk, key)(MutateInSpec.arrayInsert("list[9]", Seq(5)))
  }

  private def counters(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("n" -> 5, "text" -> "a")).key
    val counted =
      change(sdk, key)(MutateInSpec.increment("n", 3), MutateInSpec.decrement("m", 2))
    Expect.equal(counted.contentAs[Long](0).get, 8L, "counter")
    Expect.equal(counted.contentAs[Long](1).get, -2L, "new counter")
    refuse[PathMismatchException](sdk, key)(MutateInSpec.increment("text", 1))
    refuse[CouchbaseException](sdk, key)(MutateInSpec.increment("n", Long.MaxValue))
    sdk.expectValue(key, ujson.Obj("n" -> 8, "text" -> "a", "m" -> -2))
  }

  private def parents(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj()).key
    refuse[PathNotFoundException](sdk, key)(MutateInSpec.upsert("a.b.c", 1))
    change(sdk, key)(MutateInSpec.upsert("a.b.c", 1).createPath)
    sdk.expectValue(key, ujson.Obj("a" -> ujson.Obj("b" -> ujson.Obj("c" -> 1))))
    val deep = (('a' to 'z') ++ ('0' to '9')).mkString(".")
    refuse[CouchbaseException](sdk, key)(MutateInSpec.upsert(deep, 1).createPath)
  }

  private def created(sdk: Sdk): Unit = {
    val (key, other) = (sdk.key(), sdk.key())
    def create(key: String, semantics: StoreSemantics, spec: MutateInSpec) =
      sdk.collection.mutateIn(key, Seq(spec), document = semantics)
    create(key, StoreSemantics.Upsert, MutateInSpec.upsert("a", 1)).get
    create(key, StoreSemantics.Upsert, MutateInSpec.upsert("b", 2)).get
    sdk.expectValue(key, ujson.Obj("a" -> 1, "b" -> 2))
    create(other, StoreSemantics.Insert, MutateInSpec.insert("a", 1)).get
    Expect.error[DocumentExistsException](
      create(other, StoreSemantics.Insert, MutateInSpec.insert("b", 1))
    )
    sdk.expectValue(other, ujson.Obj("a" -> 1))
  }

  private def together(sdk: Sdk): Unit = {
    val stored = sdk.stored(ujson.Obj("a" -> 1))
    refuse[PathExistsException](sdk, stored.key)(
      MutateInSpec.upsert("b", 2),
      MutateInSpec.insert("a", 2),
      MutateInSpec.upsert("c", 3)
    )
    sdk.expectValue(stored.key, ujson.Obj("a" -> 1))
    Expect.equal(sdk.collection.get(stored.key).get.cas, stored.cas, "CAS")
  }

  private def needJson(sdk: Sdk): Unit = {
    val key = sdk.key()
    val options = UpsertOptions().transcoder(RawBinaryTranscoder.Instance)
    sdk.collection.upsert(key, Array[Byte](0, -1), options).get
    val found = sdk.collection.lookupIn(key, Seq(LookupInSpec.get("a"))).get
    Expect.error[DocumentNotJsonException](found.contentAs[String](0))
    refuse[DocumentNotJsonException](sdk, key)(MutateInSpec.upsert("a", 1))
  }

  private def casAndLocks(sdk: Sdk): Unit = {
    val stored = sdk.stored(ujson.Obj("a" -> 1))
    val key = stored.key
    def changeWith(cas: Long, value: Int) =
      sdk.collection.mutateIn(key, Seq(MutateInSpec.upsert("a", value)), cas)
    Expect.error[CasMismatchException](changeWith(stored.cas + 1, 2))
    changeWith(stored.cas, 2).get
    val lock = sdk.collection.getAndLock(key, 15.seconds).get.cas
    Expect.error(
      sdk.collection.mutateIn(key, Seq(MutateInSpec.upsert("a", 3)), timeout = Sdk.Brief),
      classOf[DocumentLockedException],
      classOf[TimeoutException]
    )
    changeWith(lock, 4).get
    sdk.expectValue(key, ujson.Obj("a" -> 4))
  }

  private def expiry(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj(), Expiry.passing(1.minute)).key
    def changeWith(options: MutateInOptions, value: Int): Unit =
      sdk.collection.mutateIn(key, Seq(MutateInSpec.upsert("a", value)), options).get
    changeWith(MutateInOptions().preserveExpiry(true), 1)
    Expect.that(Expiry.told(sdk, key).isDefined, "the expiry is kept")
    changeWith(MutateInOptions(), 2)
    Expect.that(Expiry.told(sdk, key).isEmpty, "without an expiry it lasts")
    changeWith(MutateInOptions().expiry(1.second), 3)
    Expect.within(Expiry.LifetimeMax, "it expires")(sdk.isGone(key))
  }

  private def inParallel(sdk: Sdk): Unit = {
    val key = sdk.stored(ujson.Obj("n" -> 0)).key
    Bulk.inParallel(400) { index =>
      val specs = Seq(
        MutateInSpec.increment("n", 1),
        MutateInSpec.increment(s"of${index % 16}", 1)
      )
      sdk.collection.async.mutateIn(key, specs)
    }
    val found = sdk.value(key).obj
    Expect.equal(found.remove("n"), Some(ujson.Num(400)), "all changes")
    Expect.equal(found.toMap, (0 until 16).map(n => s"of$n" -> ujson.Num(25)).toMap, "of each")
  }
}
