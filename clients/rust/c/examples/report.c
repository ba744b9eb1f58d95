/* Reports each line of standard input, and prints what became of it.
 *
 *     report COLLECTOR POLICY_FILE STORE_FILE < values.txt
 */

#define _POSIX_C_SOURCE 200809L
#include <hushcount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if a call failed. An app goes on: a NULL sender reports nothing. */
static void require(hushcount_error *error) {
    if (error != NULL) {
        fprintf(stderr, "%s\n", hushcount_error_message(error));
        hushcount_error_free(error);
        exit(1);
    }
}

static hushcount_bytes read_file(const char *path) {
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    hushcount_bytes bytes = {data, fread(data, 1, sizeof data, file)};
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: report COLLECTOR POLICY_FILE STORE_FILE\n");
        return 2;
    }
    hushcount_sender_options options =
        hushcount_sender_options_of(arguments[1], read_file(arguments[2]), arguments[3]);
    options.delay_seconds = 0; /* for a demonstration: an app lets its reports wait */
    hushcount_sender *sender;
    require(hushcount_sender_open(&options, &sender));

    char *line = NULL;
    size_t room = 0;
    unsigned words[HUSHCOUNT_REPORTED_STORAGE + 1] = {0};
    for (ssize_t length; (length = getline(&line, &room, stdin)) != -1;) {
        if (line[length - 1] == '\n')
            line[--length] = '\0';
        /* A value with a NUL must not be cut: it counts as "other", as an empty one does. */
        const char *value = strlen(line) == (size_t)length ? line : "";
        words[hushcount_sender_report(sender, value, NULL, 0)]++;
    }
    free(line);
    for (int word = 0; word <= HUSHCOUNT_REPORTED_STORAGE; word++)
        if (words[word] > 0)
            printf("%s %u\n", hushcount_reported_word(word), words[word]);

    hushcount_delivery delivery;
    require(hushcount_sender_deliver(sender, true, &delivery));
    printf("sent %llu\n", (unsigned long long)delivery.sent);

    char *spent;
    require(hushcount_sender_spent(sender, &spent));
    puts(spent);
    hushcount_text_free(spent);
    hushcount_sender_free(sender);
    return 0;
}
