package acceptance

import scala.concurrent.duration._
import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import com.couchbase.client.core.diagnostics.PingState
import com.couchbase.client.core.endpoint.EndpointState
import com.couchbase.client.core.error._
import com.couchbase.client.core.service.ServiceType
import com.couchbase.client.scala.diagnostics.PingOptions

/** Cases: connecting, and what is told of connections. */
object Connecting {
  def declare(cases: Cases): Unit = {
    cases.add("connect") { _ =>
      val fresh = Sdk.connect(Sdk.byPassword)
      try {
        val found = fresh.ready.defaultCollection.exists("connect").get
        Expect.that(!found.exists, "a fresh cluster object reads")
      } finally fresh.close()
    }
    cases.add("wait-until-ready") { sdk =>
      sdk.cluster.waitUntilReady(Sdk.Ready).get
      sdk.bucket.waitUntilReady(Sdk.Ready).get
    }
    cases.add("ping")(ping)
    cases.add("diagnostics")(diagnostics)
    cases.add("wrong-password-is-refused") { _ =>
      expectRefused(Sdk.variable("SETTEE_USER"), "wrong")
    }
    cases.add("unknown-user-is-refused") { _ =>
      expectRefused("nobody", Sdk.variable("SETTEE_PASSWORD"))
    }
    cases.add("unknown-bucket-is-refused") { sdk =>
      Expect.error(
        sdk.cluster.bucket("absent").waitUntilReady(2.seconds),
        classOf[UnambiguousTimeoutException],
        classOf[BucketNotFoundException]
      )
    }
  }

  private def ping(sdk: Sdk): Unit = {
    val answered = sdk.bucket.ping(PingOptions().serviceTypes(Set(ServiceType.KV))).get
    val reports = answered.endpoints.get(ServiceType.KV).asScala
    Expect.that(reports.nonEmpty, "the data service answers a ping")
    reports.foreach(report => Expect.equal(report.state, PingState.OK, "state"))
  }

  private def diagnostics(sdk: Sdk): Unit = {
    val known = sdk.cluster.diagnostics().get.endpoints.get(ServiceType.KV).asScala
    val ofBucket = known.filter(_.namespace.toScala.contains(Sdk.Name))
    Expect.that(ofBucket.nonEmpty, "connections of the data service are known")
    ofBucket.foreach(each => Expect.equal(each.state, EndpointState.CONNECTED, "state"))
  }

  def expectRefused(user: String, password: String): Unit = {
    val refused = Sdk.connect(Sdk.byPassword(user, password))
    try {
      // The SDK repeats a refused authentication until its time is over.
      val error = Expect.error(
        refused.cluster.bucket(Sdk.Name).waitUntilReady(2.seconds),
        classOf[UnambiguousTimeoutException],
        classOf[AuthenticationFailureException]
      )
      val isTold = error.isInstanceOf[AuthenticationFailureException] ||
        error.toString.contains("User authentication failed")
      Expect.that(isTold, s"told: $error")
    } finally refused.close()
  }
}
