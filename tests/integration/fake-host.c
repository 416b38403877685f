/* Plays `pipetune-node serve` on a host for test_hostile: takes a launch as the real one does, and then lies as FAKE_HOST says. What it does
 * beside that is the least that a driver needs to go on listening. */
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/tell.h"

enum { LINE = 64 << 10 };

static const char boot[] = "01234567-89ab-cdef-0123-456789abcdef";
static const char *how;
static char tag[128];         /* of the launch that it has; "": none */
static bool ended, told;      /* … which has; its epoch was told */
static unsigned long long at; /* bytes of it that were told */

static bool is(const char *name)
{
    return strcmp(how, name) == 0;
}

/* Whoever does not listen any more has closed it. */
static void say_bytes(const char *text, size_t len)
{
    for (ssize_t n; len > 0; text += n, len -= (size_t)n)
        if ((n = write(STDOUT_FILENO, text, len)) <= 0)
            exit(0);
}

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
    static char text[LINE + 4096];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    say_bytes(text, (size_t)n);
}

static unsigned long long number(const char *line, const char *key)
{
    const char *p = strstr(line, key);
    return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* One of many honest hosts, of bench_places: what it is given is trained at once. */
static bool is_quick(void)
{
    return strncmp(how, "quick", 5) == 0;
}

/* The text behind the key, up to its quote. */
static const char *text_of(const char *line, const char *key, char out[4096])
{
    const char *p = strstr(line, key);
    size_t n = p ? strcspn(p + strlen(key), "\"") : 0;
    (void)snprintf(out, 4096, "%.*s", (int)n, p ? p + strlen(key) : "");
    return out;
}

static int64_t real_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static const char *in_base64(const void *bytes, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static char text[LINE + 8];
    const unsigned char *p = bytes;
    size_t len = 0;
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)p[i] << 16 | (i + 1 < n ? p[i + 1] : 0U) << 8 | (i + 2 < n ? p[i + 2] : 0U);
        for (size_t k = 0; k < 4; k++)
            text[len++] = k > n - i ? '=' : digits[v >> (18 - 6 * k) & 63];
    }
    text[len] = '\0';
    return text;
}

/* --- what is heard of its launch ------------------------------------------------------------------------------------------ */

static void tell_bytes(unsigned long long from, const char *bytes, size_t n)
{
    say("{\"event\":\"bytes\",\"tag\":\"%s\",\"at\":%llu,\"log\":%llu,\"data\":\"%s\"}\n", tag, from, from + n,
        in_base64(bytes, n));
}

static void hear(const char *text)
{
    tell_bytes(at, text, strlen(text));
    at += strlen(text);
}

static void hear_told(const char *json)
{
    static char line[LINE];
    (void)snprintf(line, sizeof line, "%lld " TELL_MARK "%s\n", (long long)real_ms(), json);
    hear(line);
}

static void tell_epoch(void)
{
    char json[512];
    hear_told("{\"epoch\":1,\"loss\":0.5,\"accuracy\":0.5}");
    if (is_quick())
        return;
    (void)snprintf(json, sizeof json, "{\"checkpoint\":\"%s/%s/checkpoint/c-1\",\"epoch\":1}",
                   is("outside") ? "/etc/passwd/.." : "/root", is("outside") ? "x" : tag);
    hear_told(json);
}

/* As much as was asked for, and as often. */
static void talk(unsigned long long from, unsigned long long credit)
{
    char chunk[2880];
    for (size_t i = 0; i < sizeof chunk; i++)
        chunk[i] = i % 96 == 95 ? '\n' : 'x';
    if (from > at)
        return;
    for (; at + sizeof chunk <= from + credit; at += sizeof chunk)
        tell_bytes(at, chunk, sizeof chunk);
}

/* More than anybody asked for. */
static void flood(void)
{
    static const char *const floods[][2] = {
        { "floods-changes",
          "{\"event\":\"changed\",\"tag\":\"%s\",\"processes\":1,\"threads\":1,\"slots\":0,\"cpus\":[0],"
          "\"error\":\"reason %d\"}\n" },
        { "floods-launches", "{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"none\",\"why\":\"%d\"}\n" },
        { "floods-news", "{\"event\":\"news\",\"tag\":\"%s\",\"n\":%d}\n" },
        { "floods-gone", "{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"gone\",\"why\":\"%d\"}\n" },
        { "floods-samples",
          "{\"event\":\"sample\",\"tag\":\"%s\",\"scope\":\"process\",\"t_ms\":%d,\"dt_ms\":1,\"missed\":0,"
          "\"cells\":\"1 u\"}\n" },
        { "floods-words", "{\"event\":\"words\",\"tag\":\"%s\",\"n\":%d,\"data\":\"d29yZHMK\"}\n" },
        { "floods-bytes", "{\"event\":\"bytes\",\"tag\":\"%s\",\"at\":%d,\"log\":1,\"data\":\"\"}\n" },
    };
    for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++)
        for (int k = 0; is(floods[i][0]) && k < 4000000; k++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            say(floods[i][1], tag, k);
#pragma GCC diagnostic pop
        }
}

static void tail(const char *line)
{
    unsigned long long from = number(line, "\"from\":"), credit = number(line, "\"credit\":");
    if (is("talks"))
        talk(from, credit);
    if (is("beyond"))
        talk(0, 8 << 20);
    if (is("backwards") && !told)
        for (unsigned long long i = 100; i-- > 0;)
            tell_bytes(i * 7, "some words", 10);
    if (is("ahead"))
        tell_bytes((1ULL << 62) + 5, "some words", 10);
    bool trains = !is("silent") && !is("backwards") && !is("ahead") && !is("talks") && !is("beyond");
    if (trains && !told)
        tell_epoch();
    if (is_quick() && !told)
        say("{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"gone\"}\n", tag);
    told = true;
    flood();
    if (is("one-line"))
        for (int i = 0; i < 4096; i++)
            hear("a line that has no end ");
}

/* --- launches --------------------------------------------------------------------------------------------------------------- */

static void launch(unsigned long long id)
{
    if (is("owes"))
        return;
    say("{\"id\":%llu,\"ok\":true}\n", id);
    if (is("refuses"))
        say("{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"refused\",\"why\":\"\\u001b[2J no room\"}\n", tag);
    else
        say("{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"ready\",\"boot_id\":\"%s\",\"pid\":%llu,\"start_ticks\":"
            "7,"
            "\"heard\":%llu}\n",
            tag, boot, is("pid") ? (unsigned long long)getppid() : 4711, is("far") ? 9223372036854775000ULL : 0ULL);
}

static void adopt(unsigned long long id)
{
    bool ends = (is_quick() && *tag) || is("ends") || is("ended-far") || is("lacks");
    if (ends || ended)
        say("{\"id\":%llu,\"ok\":true,\"state\":\"ended\",\"heard\":%llu,\"ago_ms\":%lld,\"exit\":\"attempt=1 "
            "launch=%s kind=%s code=%s log_end=9223372036854775807 cpu_s=1e308 max_rss_kb=-1 leftovers=-9 "
            "oom_kills=9223372036854775807 boot_ms=-9223372036854775808\"}\n",
            id, is("ended-far") ? 9000000000000000000ULL : at, 9223372036854775807LL, tag,
            is("lacks") ? "not-started" : "exited",
            is("ends")    ? "-2147483648"
            : is("lacks") ? "127"
                          : "0");
    else if (!*tag)
        say("{\"id\":%llu,\"ok\":true,\"state\":\"none\",\"heard\":0}\n", id);
    else
        say("{\"id\":%llu,\"ok\":true,\"state\":\"running\",\"boot_id\":\"%s\",\"pid\":4711,\"start_ticks\":7,"
            "\"heard\":0}\n",
            id, boot);
}

static void go(unsigned long long id)
{
    say("{\"id\":%llu,\"ok\":true}\n", id);
    if (is("ends") || is("ended-far") || is("lacks"))
        say("{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"gone\"}\n", tag);
    if (is("dies"))
        exit(3);
}

static void end(unsigned long long id)
{
    say("{\"id\":%llu,\"ok\":true}\n", id);
    if (is("silent"))
        return;
    ended = true;
    say("{\"event\":\"launch\",\"tag\":\"%s\",\"state\":\"gone\"}\n", tag);
}

/* --- its files ---------------------------------------------------------------------------------------------------------------- */

/* "SIZE MTIME NAME" and a NUL each. */
static const struct list {
    const char *how, *text;
    size_t n;
} lists[] = {
#define LIST(how, text)                                                                                                \
    {                                                                                                                  \
        how, text, sizeof text                                                                                         \
    }
    LIST("dots", "5 1 ../../../../evil"),
    LIST("absolute", "5 1 /tmp/evil"),
    LIST("inner-dots", "5 1 a/../../../../evil"),
    LIST("newline", "5 1 a\nevil"),
    LIST("escape", "5 1 a\033[2Jevil"),
    LIST("twice", "5 1 evil\0005 1 evil"),
    LIST("below-a-file", "5 1 evil\0005 1 evil/evil"),
    LIST("huge", "9223372036854775807 1 evil"),
    LIST("negative", "-5 1 evil"),
    LIST("together-huge", "4294967295 1 evil\0004294967295 1 evil2"),
    LIST("larger", "50000 1 evil"),
    LIST("smaller", "2 1 evil"),
    LIST("no-end", "5 1 evil"),
    LIST("no-list", ""),
    LIST("deep", "5 1 a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/evil"),
    LIST("endless", "4294967296 1 evil"),
    LIST("changing", "5 1 evil"),
};

static void list(unsigned long long id)
{
    static int n;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char text[512];
        if (!is(lists[i].how))
            continue;
        memcpy(text, lists[i].text, lists[i].n);
        if (is("changing"))
            lists[i].n > 4 ? (void)(text[4] = (char)('a' + n++ % 26)) : (void)0;
        say("{\"id\":%llu,\"ok\":true,\"files\":\"%s\"}\n", id, in_base64(text, lists[i].n - is("no-end")));
        return;
    }
    if (is("many-files")) {
        static char text[48 << 10];
        size_t len = 0;
        for (int i = 0; len + 16 < sizeof text; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "1 1 f%d", i) + 1;
        say("{\"id\":%llu,\"ok\":true,\"files\":\"%s\"}\n", id, in_base64(text, len));
        return;
    }
    say("{\"id\":%llu,\"ok\":false,\"error\":\"'\\u001b[2J' is not there\"}\n", id);
}

static void read_file(unsigned long long id, const char *line)
{
    static char bytes[24 << 10];
    size_t n = number(line, "\"size\":");
    n = is("larger") ? 5 : is("smaller") ? 5 : n <= sizeof bytes ? n : sizeof bytes;
    if (is("endless") && number(line, "\"from\":") > 10 << 20)
        exit(0); /* in the midst of it */
    say("{\"id\":%llu,\"ok\":true,\"data\":\"%s\"}\n", id, in_base64(bytes, n));
}

/* --- requests ----------------------------------------------------------------------------------------------------------------- */

static void hello(unsigned long long id)
{
    bool proud = is("proud");
    say("{\"id\":%llu,\"ok\":true,\"protocol\":1,\"version\":\"%s\",\"clock_ms\":%lld,\"uid\":0,\"host\":\"%s\","
        "\"sees\":\"%s\",\"root\":\"%s\",\"memory_gb\":%s,\"cpus\":[",
        id, PIPETUNE_VERSION, is("clock") ? 9223372036854775807LL : (long long)real_ms(),
        is("escapes") ? "\\u001b[2J" : how, how, is("root") ? "/../..{checkpoint}\\n" : "/root", proud ? "1e308" : "1");
    for (int i = 0; i < (proud ? 4096 : 1); i++)
        say("%s%d", i ? "," : "", i);
    say("],\"frequency_khz\":null,\"power_cap_w\":null}\n");
}

static void obey(const char *line)
{
    char verb[4096], name[4096];
    unsigned long long id = number(line, "\"id\":");
    (void)text_of(line, "\"verb\":\"", verb);
    if (strcmp(verb, "launch") == 0) {
        (void)snprintf(tag, sizeof tag, "%s", text_of(line, "\"tag\":\"", name));
        at = 0;
        ended = told = false;
    }
    if (strcmp(verb, "hello") == 0)
        hello(id);
    else if (strcmp(verb, "have") == 0 || strcmp(verb, "put") == 0)
        say("{\"id\":%llu,\"ok\":true,\"there\":%s}\n", id, is("forgets") ? "false" : "true");
    else if (strcmp(verb, "launch") == 0)
        launch(id);
    else if (strcmp(verb, "adopt") == 0)
        adopt(id);
    else if (strcmp(verb, "go") == 0)
        go(id);
    else if (strcmp(verb, "signal") == 0)
        end(id);
    else if (strcmp(verb, "list") == 0)
        list(id);
    else if (strcmp(verb, "read") == 0)
        read_file(id, line);
    else if (strcmp(verb, "apply") == 0)
        say("{\"id\":%llu,\"ok\":true,\"processes\":%d,\"threads\":%d,\"slots\":%d,\"cpus\":[0]}\n", id,
            is("proud") ? 2147483647 : 1, is("proud") ? 2147483647 : 1, is("proud") ? 2147483647 : 1);
    else if (!is("owes") || strcmp(verb, "lease") == 0)
        say("{\"id\":%llu,\"ok\":true}\n", id);
    if (strcmp(verb, "tail") == 0 && *tag && !ended)
        tail(line);
    if (is("unasked") && strcmp(verb, "go") == 0)
        say("{\"id\":%llu,\"ok\":true}\n", id + 100);
    if (is("long-line") && strcmp(verb, "go") == 0)
        for (int i = 0; i < 1 << 20; i++)
            say_bytes("################################################################################", 80);
    if (is("junk") && strcmp(verb, "go") == 0)
        say("\033[2J\033]0;owned\007 [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n");
}

/* Hears nothing more from its go on, and tells what nobody asked for, so that it is never silent. */
static void be_deaf(void)
{
    for (;;) {
        say("{\"event\":\"news\"}\n");
        (void)poll(NULL, 0, 100);
    }
}

int main(void)
{
    static char line[LINE * 2];
    how = getenv("FAKE_HOST") ? getenv("FAKE_HOST") : "silent";
    while (fgets(line, sizeof line, stdin)) {
        obey(line);
        if (is("deaf") && strstr(line, "\"verb\":\"go\""))
            be_deaf();
    }
    return 0;
}
