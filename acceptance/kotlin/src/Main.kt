package acceptance

import kotlin.system.exitProcess
import kotlinx.coroutines.runBlocking

/** Drives a node, or a cluster, with the Kotlin SDK, unmodified; prints a line a case. */
fun main(arguments: Array<String>) {
    val cases = Cases()
    if (arguments[0] == "cluster") {
        cases.twoNodes()
    } else {
        cases.connecting()
        cases.documents()
        cases.locks()
        cases.expiry()
        cases.numbersAndBytes()
        cases.values()
        cases.bulk()
        cases.collections()
        cases.subDocuments()
        cases.transactions()
        cases.scans()
        cases.buckets()
        cases.users()
        cases.encryption()
        cases.durability()
    }
    val isGood = runBlocking {
        val sdk = Sdk.ready()
        try {
            cases.run(sdk, arguments.drop(1))
        } finally {
            sdk.cluster.disconnect()
        }
    }
    exitProcess(if (isGood) 0 else 1)
}
