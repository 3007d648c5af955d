package acceptance

import java.util.concurrent.atomic.AtomicLong

import scala.concurrent.duration._
import scala.io.StdIn

import com.couchbase.client.core.env.Authenticator
import com.couchbase.client.scala.env._
import com.couchbase.client.scala.kv.{MutationResult, UpsertOptions}
import com.couchbase.client.scala.{Bucket, Cluster, ClusterOptions, Collection}

/** A cluster object, and the environment that it is made in. */
final class Connection(val cluster: Cluster, environment: ClusterEnvironment) {

  /** The bucket, once it can be used. */
  def ready: Bucket = {
    val bucket = cluster.bucket(Sdk.Name)
    bucket.waitUntilReady(Sdk.Ready).get
    bucket
  }

  def close(): Unit = {
    cluster.disconnect()
    environment.shutdown()
  }
}

/** A new document: its key, and the CAS and token of its store. */
final case class Stored(key: String, result: MutationResult) {
  def cas: Long = result.cas
}

/** The SDK's objects that the cases share. */
final class Sdk {
  val connection: Connection = Sdk.connect(Sdk.byPassword)
  val cluster: Cluster = connection.cluster
  val bucket: Bucket = connection.ready
  val collection: Collection = bucket.defaultCollection
  private val names = new AtomicLong

  /** A key that no other case uses. */
  def key(): String = s"key-${names.incrementAndGet()}"

  def stored(value: ujson.Value, options: UpsertOptions = UpsertOptions()): Stored = {
    val newKey = key()
    Stored(newKey, collection.upsert(newKey, value, options).get)
  }

  def value(key: String): ujson.Value = Sdk.value(collection, key)

  def expectValue(key: String, wanted: ujson.Value): Unit =
    Expect.equal(value(key), wanted, s"value of $key")

  /** Whether no document has this key. */
  def isGone(key: String): Boolean = !collection.exists(key).get.exists

  /** Asks whoever runs the nodes, and waits until it is done. */
  def order(line: String): Unit = {
    println(line)
    Expect.that(Set("NODE ready", "CLUSTER done")(StdIn.readLine()), s"$line was not done")
  }
}

object Sdk {
  val Name = "default"
  val Ready: FiniteDuration = 15.seconds
  val Brief: FiniteDuration = 500.milliseconds

  def variable(name: String): String = sys.env(name)

  def byPassword: Authenticator = byPassword(variable("SETTEE_USER"), variable("SETTEE_PASSWORD"))

  def byPassword(user: String, password: String): Authenticator =
    PasswordAuthenticator(user, password)

  /** A cluster object; the SDK connects in the background. */
  def connect(
      authenticator: Authenticator,
      target: String = "SETTEE_CONNECT",
      security: SecurityConfig = SecurityConfig()
  ): Connection = {
    val timeouts = TimeoutConfig()
      .connectTimeout(Ready)
      .kvTimeout(10.seconds)
      .kvDurableTimeout(Ready)
      .kvScanTimeout(60.seconds)
    val environment =
      ClusterEnvironment.builder.timeoutConfig(timeouts).securityConfig(security).build.get
    val options = ClusterOptions(authenticator).environment(environment)
    new Connection(Cluster.connect(variable(target), options).get, environment)
  }

  def value(collection: Collection, key: String): ujson.Value =
    collection.get(key).get.contentAs[ujson.Value].get

  def seqno(result: MutationResult): Long = result.mutationToken.get.sequenceNumber
}
