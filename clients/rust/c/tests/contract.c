/* What hushcount.h promises and the examples do not show. Run it under AddressSanitizer, which also finds leaks:
 *
 *     contract CAMPAIGN SIGNATURE DICTIONARY POLICY STORE CAP
 */

#include <hushcount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static uint8_t buffer[1 << 20];
static size_t used;

static hushcount_bytes read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    hushcount_bytes bytes = {buffer + used, fread(buffer + used, 1, sizeof buffer - used, file)};
    used += bytes.length;
    fclose(file);
    return bytes;
}

/* Whether a call did not fail; shows and frees the error otherwise. */
static bool good(hushcount_error *error) {
    if (error != NULL)
        fprintf(stderr, "kind %d: %s\n", hushcount_error_kind(error), hushcount_error_message(error));
    bool none = error == NULL;
    hushcount_error_free(error);
    return none;
}

/* Whether a call failed with this kind of error, and a sentence; frees the error. */
static bool is(hushcount_error *error, hushcount_kind kind) {
    bool same = error != NULL && hushcount_error_kind(error) == kind && strlen(hushcount_error_message(error)) > 10;
    if (same)
        hushcount_error_free(error);
    else
        good(error);
    return same;
}

static char *spent(const hushcount_client *client) {
    char *words;
    CHECK(good(hushcount_client_spent(client, &words)));
    return words;
}

static void nothing_is_needed(void) {
    hushcount_sender *sender = (hushcount_sender *)buffer;
    CHECK(is(hushcount_sender_open(NULL, &sender), HUSHCOUNT_KIND_USAGE));
    CHECK(sender == NULL);
    hushcount_bytes none = {NULL, 0};
    hushcount_sender_options options = hushcount_sender_options_of("https://collector.example.com", none, NULL);
    CHECK(is(hushcount_sender_open(&options, NULL), HUSHCOUNT_KIND_USAGE));
    CHECK(is(hushcount_sender_open(&options, &sender), HUSHCOUNT_KIND_USAGE));
    CHECK(sender == NULL);
    CHECK(hushcount_sender_report(sender, "value", NULL, 0) == HUSHCOUNT_REPORTED_STORAGE);
    hushcount_delivery delivery = {.sent = 7};
    CHECK(is(hushcount_sender_deliver(sender, true, NULL), HUSHCOUNT_KIND_USAGE));
    CHECK(is(hushcount_sender_deliver(sender, true, &delivery), HUSHCOUNT_KIND_USAGE));
    CHECK(delivery.sent == 0);
    char *words = (char *)buffer;
    CHECK(is(hushcount_sender_spent(sender, &words), HUSHCOUNT_KIND_USAGE));
    CHECK(words == NULL);
    CHECK(is(hushcount_sender_opt_in(sender), HUSHCOUNT_KIND_USAGE));
    CHECK(strcmp(hushcount_reported_word(HUSHCOUNT_REPORTED_OVER_CAP), "over_cap") == 0);
    for (int number = -1; number < 11; number += 10)
        CHECK(strcmp(hushcount_reported_word(number), "unknown") == 0);
    CHECK(is(hushcount_sender_forget(sender), HUSHCOUNT_KIND_USAGE));
    hushcount_sender_start(sender);
    hushcount_sender_stop(sender);
    hushcount_sender_free(sender);
    hushcount_client_free(NULL);
    hushcount_error_free(NULL);
    hushcount_text_free(NULL);
}

static void a_client_makes_reports(char **arguments) {
    hushcount_client_options options =
        hushcount_client_options_of(read_file(arguments[1]), read_file(arguments[4]), arguments[5]);
    hushcount_client *client;
    CHECK(is(hushcount_client_open(&options, &client), HUSHCOUNT_KIND_UNTRUSTED)); /* it is not signed */
    CHECK(client == NULL);
    options.signature = read_file(arguments[2]);
    options.dictionary = read_file(arguments[3]);
    options.budget.per_day = -1;
    CHECK(is(hushcount_client_open(&options, &client), HUSHCOUNT_KIND_USAGE));
    options.budget.per_day = 1e6;
    CHECK(good(hushcount_client_open(&options, &client)));

    char *text = hushcount_client_fingerprint(client);
    CHECK(strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64);
    hushcount_text_free(text);

    size_t length = hushcount_client_report_bytes(client, false), other = hushcount_client_report_bytes(client, true);
    CHECK(length > 48 && other > 48);
    uint8_t *report = calloc(1, length), *discovery = calloc(1, other);
    char *before = spent(client);
    CHECK(is(hushcount_client_report(client, "feature-1", NULL, 0, report, length - 1), HUSHCOUNT_KIND_USAGE));
    CHECK(is(hushcount_client_report(client, "feature-1", NULL, 0, NULL, length), HUSHCOUNT_KIND_USAGE));
    char *after = spent(client);
    CHECK(strcmp(before, after) == 0);
    hushcount_text_free(after);

    const hushcount_coordinate by[] = {{"version", "2.1"}, {"\xff", "2.1"}, {NULL, NULL}};
    const char *texts[] = {"feature-1", "", "\xff", NULL};
    for (int number = 0; number < 5; number++) {
        memset(report, 0, length);
        CHECK(good(number < 4 ? hushcount_client_report(client, texts[number], by, 3, report, length)
                              : hushcount_client_report_number(client, 2.5, NULL, 0, report, length)));
        CHECK(memcmp(report + length - 16, (uint8_t[16]){0}, 16) != 0); /* it was written to its end */
    }
    for (int number = 0; number < 2; number++) {
        memset(discovery, 0, other);
        CHECK(good(hushcount_client_discovery_report(client, number ? "new" : NULL, discovery, other)));
        CHECK(memcmp(discovery + other - 16, (uint8_t[16]){0}, 16) != 0);
    }
    after = spent(client);
    CHECK(strcmp(before, after) != 0);
    hushcount_text_free(before);
    hushcount_text_free(after);

    for (int number = 5; number < atoi(arguments[6]); number++)
        CHECK(good(hushcount_client_report(client, "feature-1", NULL, 0, report, length)));
    CHECK(is(hushcount_client_report(client, "feature-1", NULL, 0, report, length), HUSHCOUNT_KIND_OVER_CAP));
    CHECK(good(hushcount_client_forget(client)));
    CHECK(is(hushcount_client_discovery_report(client, NULL, discovery, other), HUSHCOUNT_KIND_OPTED_OUT));
    CHECK(good(hushcount_client_opt_in(client)));
    CHECK(good(hushcount_client_discovery_report(client, NULL, discovery, other)));
    free(report);
    free(discovery);
    hushcount_client_free(client);
}

int main(int count, char **arguments) {
    CHECK(count == 7);
    nothing_is_needed();
    a_client_makes_reports(arguments);
    return 0;
}
