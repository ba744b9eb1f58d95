/* hushcount.h: the native client of Hushcount. cbindgen writes this file from clients/rust/c/src.
 *
 * - Texts are UTF-8 and end with NUL. A value that is no UTF-8, and a NULL, count as "other", as an empty text does. A
 *   language whose texts may contain NUL gives the empty text instead.
 * - What a call is given stays the caller's, and is copied. Options need to live during the call that opens.
 * - A call that may fail returns NULL, or an error that you free. No error and no event has a value or a secret.
 * - Threads may share a sender and a client. Free each once, when no call is running. A process that is forked opens
 *   its own.
 * - All calls wait for the disk; hushcount_sender_deliver, hushcount_sender_stop, and a report before a campaign file is
 *   kept wait for the network too.
 * - A library that is built without the feature http has no hushcount_sender.
 */

#ifndef HUSHCOUNT_H
#define HUSHCOUNT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// What kind of error stopped a call.
typedef enum {
  // An argument or an option cannot be used.
  HUSHCOUNT_KIND_USAGE,
  // A file of another party, or of this device, is malformed.
  HUSHCOUNT_KIND_FORMAT,
  // No key of the campaign file is valid now.
  HUSHCOUNT_KIND_NO_VALID_KEY,
  // The bytes differ from the signed bytes, or no trusted key signed them.
  HUSHCOUNT_KIND_SIGNATURE,
  // The policy does not allow the campaign: no report may be made for it.
  HUSHCOUNT_KIND_UNTRUSTED,
  // The store or the system's random generator failed.
  HUSHCOUNT_KIND_STORE,
  // A server cannot be reached, or its answer cannot be used.
  HUSHCOUNT_KIND_DELIVERY,
  // The campaign's sample does not contain this installation.
  HUSHCOUNT_KIND_NOT_ASKED,
  // The budget is too small for a report, and the app chose that no report is made in this case.
  HUSHCOUNT_KIND_BUDGET_SPENT,
  // The person opted out.
  HUSHCOUNT_KIND_OPTED_OUT,
  // The client has made as many reports in this window as the campaign's cap allows.
  HUSHCOUNT_KIND_OVER_CAP,
  // Another error; its message says which.
  HUSHCOUNT_KIND_OTHER,
} hushcount_kind;

// What became of a value that an app reported.
typedef enum {
  // The reports wait on this device, and a delivery sends them.
  HUSHCOUNT_REPORTED_QUEUED,
  // The campaign asks a part of its clients, and not this one.
  HUSHCOUNT_REPORTED_NOT_ASKED,
  // This person has made as many reports as count in this window.
  HUSHCOUNT_REPORTED_OVER_CAP,
  // The person's budget is spent, and the app chose `silent_when_spent`.
  HUSHCOUNT_REPORTED_BUDGET_SPENT,
  // The person opted out.
  HUSHCOUNT_REPORTED_OPTED_OUT,
  // As many reports wait as may wait.
  HUSHCOUNT_REPORTED_QUEUE_FULL,
  // No campaign file can be used yet: none was fetched, or its keys are not valid now.
  HUSHCOUNT_REPORTED_NOT_YET,
  // The policy refuses the collector's campaign file.
  HUSHCOUNT_REPORTED_UNTRUSTED,
  // The store cannot be read or written, or the sender is NULL.
  HUSHCOUNT_REPORTED_STORAGE,
} hushcount_reported;

// Privatises and seals values of one person for one campaign. Threads may share it.
typedef struct hushcount_client hushcount_client;

// Why a call failed. Free it with `hushcount_error_free`.
typedef struct hushcount_error hushcount_error;

// Makes the reports of one person for one campaign, and delivers them to one collector. Threads may share it.
typedef struct hushcount_sender hushcount_sender;

// Bytes that a call reads; `data` is NULL if there are none.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // The number of bytes.
  size_t length;
} hushcount_bytes;

// Where a person's budget is kept, and how large it is.
typedef struct {
  // The file of the store: for one person, in a folder that only its user can change. NULL: in memory, so budget,
  // answers and reports end with the process.
  const char *store;
  // The largest epsilon that may be charged on a UTC day; INFINITY without a limit.
  double per_day;
  // Most epsilon ever; INFINITY without a limit.
  double lifetime;
  // Make no report once the budget is spent, which reveals that it is spent; otherwise reports tell nothing then.
  bool silent_when_spent;
} hushcount_budget;

// The options of a client. Take them from `hushcount_client_options_of`, then change what differs.
typedef struct {
  // The campaign file.
  hushcount_bytes campaign;
  // The app's policy, from `hushcount campaign policy`.
  hushcount_bytes policy;
  // The campaign's signature.
  hushcount_bytes signature;
  // The campaign's log; needed if the client missed an epoch.
  hushcount_bytes log;
  // The campaign's dictionary, text or gzip.
  hushcount_bytes dictionary;
  // The designs of a campaign with mechanism `wss`.
  hushcount_bytes designs;
  // The person's budget.
  hushcount_budget budget;
  // Length of the operator's windows.
  uint64_t window_seconds;
} hushcount_client_options;

// The person's coordinate on an axis of the campaign, such as "version" and "2.1".
typedef struct {
  // The axis.
  const char *axis;
  // The coordinate on it.
  const char *value;
} hushcount_coordinate;

// The options of a sender. Take them from `hushcount_sender_options_of`, then change what differs.
typedef struct {
  // The collector's address, as in `https://collector.example.com`.
  const char *collector;
  // The token of the app, for collectors that demand one; or NULL.
  const char *app_token;
  // The collector's name, if the campaign has several collectors; or NULL.
  const char *collector_name;
  // The evaluator's address, if it does not answer at the collector's; or NULL.
  const char *evaluator;
  // The issuer's address, if the campaign asks for passes; or NULL.
  const char *issuer;
  // What the issuer demands before it gives passes: the whole value of the header Authorization; or NULL.
  const char *issuer_authorization;
  // The app's policy, from `hushcount campaign policy`.
  hushcount_bytes policy;
  // The designs of a campaign with mechanism `wss`.
  hushcount_bytes designs;
  // The person's budget; its store also has the queue.
  hushcount_budget budget;
  // Keep the plain value with a report on this device, so that a report that is too late can be made anew.
  bool keep_values;
  // Length of the operator's windows, or of the shortest that a campaign may list.
  uint64_t window_seconds;
  // Each report waits a random time of at most this length, so that its arrival does not reveal the time of use.
  uint64_t delay_seconds;
  // How long an evaluation without an answer is asked for again.
  uint64_t answer_within_seconds;
  // How many reports may wait.
  uint64_t most_queued;
} hushcount_sender_options;

// What one delivery did.
typedef struct {
  // Reports that the collector has on its disk.
  uint64_t sent;
  // Reports that were given up; the log has the reasons.
  uint64_t dropped;
  // Reports and plain values that wait.
  uint64_t waiting;
  // Discovery reports without their values, because their evaluations did not come.
  uint64_t blank;
  // After failures nothing is sent before this moment, in milliseconds since 1970; 0: reports may be sent now.
  int64_t held_until;
  // Whether reports wait because the client has no pass for the present window.
  bool no_pass;
} hushcount_delivery;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Return the options of a campaign file, a policy and a store, with all others as by default.
hushcount_client_options hushcount_client_options_of(hushcount_bytes campaign,
                                                     hushcount_bytes policy,
                                                     const char *store);

// Check a campaign, and store its client in `client`, or NULL if it fails.
hushcount_error *hushcount_client_open(const hushcount_client_options *options,
                                       hushcount_client **client);

// Return the length of every sealed frequency report, or with `discovery` of every discovery report, in bytes.
size_t hushcount_client_report_bytes(const hushcount_client *client,
                                     bool discovery);

// Return the fingerprint of the campaign file, which a post to the collector names; free the text.
char *hushcount_client_fingerprint(const hushcount_client *client);

// Make one sealed frequency report of a text. `report` has room for `length` bytes, which must be
// `hushcount_client_report_bytes(client, false)`. Without coordinates `by` is NULL and `axes` is 0.
hushcount_error *hushcount_client_report(const hushcount_client *client,
                                         const char *text,
                                         const hushcount_coordinate *by,
                                         size_t axes,
                                         uint8_t *report,
                                         size_t length);

// Make one sealed frequency report of a number, as `hushcount_client_report`.
hushcount_error *hushcount_client_report_number(const hushcount_client *client,
                                                double number,
                                                const hushcount_coordinate *by,
                                                size_t axes,
                                                uint8_t *report,
                                                size_t length);

// Make one sealed discovery report of a text; of NULL a blank one. `length` must be
// `hushcount_client_report_bytes(client, true)`. Campaigns with an evaluator need a sender.
//
// A text that is longer than the campaign allows is an error of kind usage, and costs nothing. If the app then sends no
// report, the missing report reveals this: send a blank one.
hushcount_error *hushcount_client_discovery_report(const hushcount_client *client,
                                                   const char *text,
                                                   uint8_t *report,
                                                   size_t length);

// Opt the person out for good, as `hushcount_sender_forget`.
hushcount_error *hushcount_client_forget(const hushcount_client *client);

// Let the person make reports again, who opted out; what was spent stays spent.
hushcount_error *hushcount_client_opt_in(const hushcount_client *client);

// Store in `words` what the person's reports cost, one sentence a line; free the text.
hushcount_error *hushcount_client_spent(const hushcount_client *client, char **words);

// Free a client; NULL is fine.
void hushcount_client_free(hushcount_client *client);

// Return what kind of error it is.
hushcount_kind hushcount_error_kind(const hushcount_error *error);

// Return the sentence to show, which lives as long as the error; it has no secret.
const char *hushcount_error_message(const hushcount_error *error);

// Free an error; NULL is fine.
void hushcount_error_free(hushcount_error *error);

// Store a sender in `sender`, or NULL if an option cannot be used. It begins to deliver by `hushcount_sender_start` or
// `hushcount_sender_deliver`.
hushcount_error *hushcount_sender_open(const hushcount_sender_options *options,
                                       hushcount_sender **sender);

// Make and queue the reports of a text; return what became of them. Without coordinates `by` is NULL and `axes` is 0.
// With a NULL sender it returns `HUSHCOUNT_REPORTED_STORAGE`.
//
// Once a campaign file is kept, it sends no request. The thread of `hushcount_sender_start` fetches the first file;
// without that thread the first report may fetch it, and the time of this request reveals the time of use.
hushcount_reported hushcount_sender_report(const hushcount_sender *sender,
                                           const char *text,
                                           const hushcount_coordinate *by,
                                           size_t axes);

// Make and queue the reports of a number, as `hushcount_sender_report`.
hushcount_reported hushcount_sender_report_number(const hushcount_sender *sender,
                                                  double number,
                                                  const hushcount_coordinate *by,
                                                  size_t axes);

// Return the word for a `hushcount_reported`, as in "queued", and "unknown" for any other number; it lives for ever.
const char *hushcount_reported_word(int reported);

// Start a thread that delivers, unless it runs.
void hushcount_sender_start(const hushcount_sender *sender);

// End the thread. With a store in memory, all waiting reports are sent now.
void hushcount_sender_stop(const hushcount_sender *sender);

// Send due reports, and store the result in `delivery`, which may be NULL. `early`: send all reports now; their time
// of arrival then reveals the time of this call. A network or a collector that fails is no error: reports wait.
hushcount_error *hushcount_sender_deliver(const hushcount_sender *sender,
                                          bool early,
                                          hushcount_delivery *delivery);

// Opt the person out for good: make and send no more reports, and delete waiting reports and remembered answers. Tell
// the person if it fails, and call it again.
hushcount_error *hushcount_sender_forget(const hushcount_sender *sender);

// Let the person make reports again, who opted out; what was spent stays spent.
hushcount_error *hushcount_sender_opt_in(const hushcount_sender *sender);

// Store in `words` what the person's reports cost, one sentence a line; free the text.
hushcount_error *hushcount_sender_spent(const hushcount_sender *sender, char **words);

// Return the newest events, one a line, the oldest first: time, event, number of reports, reason. No event has a
// value. Free the text.
char *hushcount_sender_log(const hushcount_sender *sender);

// Free a sender, and let its thread end after its round: call `hushcount_sender_stop` first. NULL is fine.
void hushcount_sender_free(hushcount_sender *sender);

// Return the options of a collector, a policy and a store, with all others as by default.
hushcount_sender_options hushcount_sender_options_of(const char *collector,
                                                     hushcount_bytes policy,
                                                     const char *store);

// Free a text that this library returned; NULL is fine.
void hushcount_text_free(char *text);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HUSHCOUNT_H */
