// What the bindings promise and the example does not show: COLLECTOR POLICY_FILE

import java.io.File
import org.hushcount.*

object Contract {
    @JvmStatic
    fun main(arguments: Array<String>) {
        val (collector, policy) = arguments
        val site = Site(collector, appToken = "SECRET")
        check("SECRET" !in site.toString()) { "a token is shown" }
        val options = SenderOptions(site, File(policy).readBytes(), delaySeconds = 0u)
        check("SECRET" !in options.toString()) { "a token is shown" }
        var requests = 0
        val http = object : Http {
            override fun exchange(request: HttpRequest): HttpResponse {
                check("SECRET" !in request.toString()) { "a token is shown" }
                requests++
                throw IllegalStateException("SECRET") // as a client of an app may
            }
        }
        Sender(options, http).use { sender ->
            check(sender.report("feature-1") == Reported.NOT_YET && requests == 1)
            check(sender.log().none { "SECRET" in it.reason }) { "what an app's client threw is told" }
        }
        Sender(options).use { sender ->
            // No text of a person stops an app, also one that is no Unicode.
            for (text in listOf("\uD800", "feature-19\uDC00", "feature-19\u0000", "")) {
                check(sender.report(text, mapOf("\uD800" to "\uD800")) == Reported.QUEUED)
            }
            check(sender.reportNumber(Double.NaN) == Reported.QUEUED)
            check(sender.deliver(early = true).sent == 10uL)
            sender.forget()
            check(sender.report("feature-19") == Reported.OPTED_OUT)
            sender.optIn()
            check(sender.report("feature-19") == Reported.QUEUED)
        }
        try {
            Sender(options.copy(site = Site("http://collector.example.com")))
            error("plain http is permitted")
        } catch (error: HushcountException.Usage) {
            check("https://" in error.message!!)
        }
    }
}
