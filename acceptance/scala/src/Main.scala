package acceptance

/** Drives a node, or a cluster, with the Scala SDK, unmodified; prints a line a case. */
object Main {
  def main(arguments: Array[String]): Unit = {
    val cases = new Cases
    if (arguments.head == "cluster") {
      TwoNodes.declare(cases)
    } else {
      Connecting.declare(cases)
      Documents.declare(cases)
      Locks.declare(cases)
      Expiry.declare(cases)
      NumbersAndBytes.declare(cases)
      Values.declare(cases)
      Bulk.declare(cases)
      Collections.declare(cases)
      SubDocuments.declare(cases)
      Attributes.declare(cases)
      Transactions.declare(cases)
      Structures.declare(cases)
      Scans.declare(cases)
      Buckets.declare(cases)
      Users.declare(cases)
      Encryption.declare(cases)
      Durable.declare(cases)
    }
    val sdk = new Sdk
    val isGood =
      try cases.run(sdk, arguments.toSeq.tail)
      finally sdk.connection.close()
    sys.exit(if (isGood) 0 else 1)
  }
}
