package acceptance

import scala.collection.mutable

/** Cases in the order of running, by names that are the same in every language. */
final class Cases {
  private val cases = mutable.LinkedHashMap.empty[String, Sdk => Unit]

  def add(name: String)(body: Sdk => Unit): Unit = cases(name) = body

  /** Runs the chosen ones, or all; whether none failed. */
  def run(sdk: Sdk, chosen: Seq[String]): Boolean =
    cases.toSeq
      .filter { case (name, _) => chosen.isEmpty || chosen.contains(name) }
      .map { case (name, body) => runOne(sdk, name, body) }
      .forall(identity)

  private def runOne(sdk: Sdk, name: String, body: Sdk => Unit): Boolean = {
    val started = System.nanoTime()
    try {
      body(sdk)
      val seconds = (System.nanoTime() - started) / 1e9
      println(s"CASE $name ok" + (if (seconds >= 1) f" ($seconds%.1f s)" else ""))
      true
    } catch {
      case error: Throwable =>
        println(s"CASE $name FAIL ${Cases.oneLine(error)}")
        false
    }
  }
}

object Cases {

  /** A message without line ends, cut to a readable length. */
  def oneLine(error: Throwable): String = error.toString.replaceAll("\\s+", " ").take(400)
}
