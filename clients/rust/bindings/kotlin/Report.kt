// Reports each line of the standard input as a value of one person:
// java -Djna.library.path=build/bindings -jar build/bindings/report.jar COLLECTOR POLICY_FILE STORE_FILE

import java.io.File
import java.io.IOException
import kotlin.system.exitProcess
import org.hushcount.HushcountException
import org.hushcount.Sender
import org.hushcount.SenderOptions
import org.hushcount.Site

fun main(arguments: Array<String>) {
    if (arguments.size != 3) fail("give three arguments: COLLECTOR POLICY_FILE STORE_FILE")
    val (collector, policy, store) = arguments
    try {
        // An app keeps the delay of ten minutes, so that the arrival does not reveal when a value was used.
        val options = SenderOptions(Site(collector), File(policy).readBytes(), store, delaySeconds = 0u)
        Sender(options).use(::reportLines)
    } catch (error: HushcountException) {
        fail(error.message)
    } catch (error: IOException) {
        fail(error.message)
    }
}

fun reportLines(sender: Sender) {
    val values = System.`in`.bufferedReader().lineSequence()
    val words = values.groupingBy { value -> sender.report(value) }.eachCount()
    for ((word, count) in words) println("${word.name.lowercase()} $count")
    // A program that ends at once sends all reports now. An app that runs on calls sender.start() instead.
    println("sent ${sender.deliver(early = true).sent}")
    sender.spent().words.forEach(::println)
}

fun fail(sentence: String?): Nothing {
    System.err.println(sentence)
    exitProcess(1)
}
