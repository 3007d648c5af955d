package acceptance

/** Cases in the order of running, by names that are the same in every language. */
internal class Cases {
    private val cases = LinkedHashMap<String, suspend Sdk.() -> Unit>()

    fun add(name: String, body: suspend Sdk.() -> Unit) {
        cases[name] = body
    }

    /** Runs the chosen ones, or all; whether none failed. */
    suspend fun run(sdk: Sdk, chosen: List<String>): Boolean {
        var isGood = true
        for ((name, body) in cases) {
            if (chosen.isEmpty() || name in chosen) {
                isGood = runOne(sdk, name, body) && isGood
            }
        }
        return isGood
    }

    private suspend fun runOne(sdk: Sdk, name: String, body: suspend Sdk.() -> Unit): Boolean {
        val started = System.nanoTime()
        try {
            sdk.body()
        } catch (error: Throwable) {
            println("CASE $name FAIL ${oneLine(error)}")
            return false
        }
        val seconds = (System.nanoTime() - started) / 1e9
        println("CASE $name ok" + if (seconds >= 1) " (%.1f s)".format(seconds) else "")
        return true
    }
}

/** A message without line ends, cut to a readable length. */
internal fun oneLine(error: Throwable): String =
    error.toString().replace(Regex("\\s+"), " ").take(400)
