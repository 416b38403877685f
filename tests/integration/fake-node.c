/* Plays `pipetune-node serve` for test_nodes: hears requests, answers them, and misbehaves as FAKE_NODE says. What it heard is
 * appended to $FAKE_NODE_DIR/$FAKE_NODE, and its open descriptors to the same with ".fds". */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64 << 10, FLOOD = 100 << 20 };

static const char *how, *dir;

static bool is(const char *name)
{
    return strcmp(how, name) == 0;
}

static void say(const char *text)
{
    size_t len = strlen(text), step = is("partial") ? 7 : len;
    for (size_t at = 0; at < len; at += step) {
        step = step < len - at ? step : len - at;
        if (write(STDOUT_FILENO, text + at, step) != (ssize_t)step)
            exit(4);
        if (is("partial"))
            (void)poll(NULL, 0, 1);
    }
}

static void hear(const char *suffix, const char *text)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s%s", dir, how, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, text, strlen(text)) >= 0)
        (void)close(fd);
}

static bool first_time(const char *what)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s.%s", dir, how, what);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* More than any buffer: a well kept one never holds it. */
static void flood(bool lines)
{
    static char junk[64 << 10];
    memset(junk, '#', sizeof junk);
    for (size_t i = 99; lines && i < sizeof junk; i += 100)
        junk[i] = '\n';
    for (size_t sent = 0; sent < FLOOD; sent += sizeof junk)
        if (write(STDOUT_FILENO, junk, sizeof junk) < 0)
            _exit(5);
}

static void before_hello(void)
{
    if (is("banner"))
        say("Welcome to w1\n{\"motd\": 1}\n\nLast login: never\n\033]0;a title\007");
    else if (is("flood"))
        flood(true);
    else if (is("one-long-line"))
        flood(false);
    else if (is("hostkey")) {
        fputs("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\r\nHost key verification failed.\r\n", stderr);
        exit(255);
    } else if (is("dumb"))
        say("Please change your password.\n");
    else if (is("no-helper")) {
        fputs("bash: line 1: /opt/pipetune-node: No such file or directory\n", stderr);
        exit(127);
    }
}

static void hello(long id)
{
    char text[1024], sees[64];
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    (void)snprintf(sees, sizeof sees, "%s", is("twin") || is("ok") ? "the same" : how);
    (void)snprintf(
        text, sizeof text,
        "{\"id\":%ld,\"ok\":true,\"protocol\":%d,\"version\":\"%s\",\"clock_ms\":%lld,\"uid\":0,\"host\":\"%s\","
        "\"sees\":\"%s\",%s\"cpus\":[2,0,3,1],\"frequency_khz\":null,\"power_cap_w\":null}\n",
        id, is("oldproto") ? 0 : 1, is("oldversion") ? "0.0.1" : PIPETUNE_VERSION,
        (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000 + (is("ahead") ? 60000 : 0), how, sees,
        is("other-features") ? "\"features\":\"gpu/load,node-store-misses,node-stores\"," : "");
    say(text);
    if (is("late-junk"))
        say("Segmentation fault (not really)\n");
}

static int number(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
}

/* The one of this machine has the driver alone unless in local mode, the others half of the slots each. */
static void found(char *out, size_t size, const char *line, int processes)
{
    bool local = strstr(line, "\"local\":true"), here = !getenv("FAKE_SSH");
    int all = number(line, "\"slots\":"), slots = local ? all : here ? 0 : all / 2;
    int cores = slots ? number(line, "\"cores\":") * slots / all : 1;
    char cpus[256] = "";
    for (int i = 0; i < cores && i < 16; i++)
        (void)snprintf(cpus + strlen(cpus), sizeof cpus - strlen(cpus), "%s%d", i ? "," : "", i);
    const char *limit = strstr(line, "\"frequency_khz\":"); /* the last key of the line */
    (void)snprintf(out, size, "\"processes\":%d,\"threads\":%d,\"slots\":%d,\"cpus\":[%s]%s%.*s", processes,
                   processes * 100, slots, processes ? cpus : "", limit ? "," : "",
                   limit ? (int)strcspn(limit, "}") : 0, limit ? limit : "");
}

static void apply(long id, const char *line)
{
    char what[512], text[1024];
    if (is("die"))
        exit(3);
    if (is("killed") && first_time("killed"))
        (void)raise(SIGKILL);
    if (is("close-and-stay")) {
        (void)close(STDOUT_FILENO);
        for (;;)
            (void)poll(NULL, 0, 1000);
    }
    if (is("slow"))
        (void)poll(NULL, 0, 6000);
    found(what, sizeof what, line, is("empty") ? 0 : 1);
    if (is("refuse"))
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":false,\"error\":\"cannot set the affinity\"}\n", id);
    else if (is("half-an-answer"))
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":true,\"processes\":1}\n", id);
    else
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":true,%s}\n", is("wrongid") ? id + 1000 : id, what);
    say(text);
    const char *tag = strstr(line, "\"tag\":");
    if (!is("changes") || !tag)
        return;
    found(what, sizeof what, line, 2);
    (void)snprintf(text, sizeof text, "{\"event\":\"news\",\"n\":1}\n{\"event\":\"changed\",%.*s,%s}\n",
                   (int)strcspn(tag, ","), tag, what);
    say(text);
}

static void sample(long id)
{
    static const char start[] =
        "{\"event\":\"sample\",\"tag\":\"T1\",\"scope\":\"process\",\"t_ms\":1700000000000.25,\"dt_ms\":1000.5,"
        "\"missed\":2,";
    char text[1024];
    if (is("sampled-and-killed") && first_time("killed"))
        (void)raise(SIGKILL);
    if (is("other-features")) /* the second and the third have a value more than there are features */
        (void)snprintf(text, sizeof text,
                       "{\"id\":%ld,\"ok\":true}\n%s\"values\":\"AAAAAAAAACJAAwAAAAAAAADwPw==\"}\n"
                       "%s\"values\":\"AwMDAw==\"}\n%s\"values\":\"AwMDAw==\"}\n",
                       id, start, start, start);
    else
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":true,\"features\":2}\n%s\"cells\":\"1 u\"}\n", id, start);
    say(text);
}

/* One reading of a meter that was asked for, and one of a meter that was not. */
static void meter(long id, const char *line)
{
    static const char times[] = "\"from_ms\":1700000000000.25,\"to_ms\":1700000001000.5";
    char text[1024];
    if (is("metered-and-killed") && first_time("killed"))
        (void)raise(SIGKILL);
    if (is("older"))
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":false,\"error\":\"unknown verb 'meter'\"}\n", id);
    else if (strstr(line, "\"interval_ms\":0"))
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":true,\"opened\":\"\",\"refused\":\"\"}\n", id);
    else
        (void)snprintf(
            text, sizeof text,
            "{\"id\":%ld,\"ok\":true,\"opened\":\"cpu\",\"refused\":\"rapl: no RAPL zone; pcm: not found\"}\n"
            "{\"event\":\"meter\",\"meter\":\"cpu\",\"state\":\"ok\",%s%s}\n"
            "{\"event\":\"meter\",\"meter\":\"other\",\"state\":\"ok\",%s,\"value\":1}\n",
            id, times, is("half-a-reading") ? "" : ",\"value\":0.5,\"error\":0.01", times);
    say(text);
}

static void obey(const char *line)
{
    long id = number(line, "\"id\":");
    char text[128];
    hear("", line);
    if (is("mute") || is("dumb") || (is("stall") && !strstr(line, "\"hello\"")))
        return;
    if (strstr(line, "\"verb\":\"hello\"")) {
        hello(id);
    } else if (strstr(line, "\"verb\":\"apply\"")) {
        apply(id, line);
    } else if (strstr(line, "\"verb\":\"sample\"")) {
        sample(id);
    } else if (strstr(line, "\"verb\":\"meter\"")) {
        meter(id, line);
    } else {
        (void)snprintf(text, sizeof text, "{\"id\":%ld,\"ok\":true}\n", id);
        say(text);
    }
    if (strstr(line, "\"verb\":\"stop\"")) {
        hear("", "(stopped)\n");
        exit(0);
    }
}

static void list_descriptors(void)
{
    for (int fd = 0; fd < 1024; fd++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%d ", fd);
        if (fcntl(fd, F_GETFD) >= 0)
            hear(".fds", text);
    }
}

int main(int argc, char **argv)
{
    static char line[LINE];
    how = getenv("FAKE_NODE") ? getenv("FAKE_NODE") : "ok";
    dir = getenv("FAKE_NODE_DIR") ? getenv("FAKE_NODE_DIR") : "/tmp";
    if (argc != 2 || strcmp(argv[1], "serve") != 0)
        return 2;
    list_descriptors();
    if (is("stubborn"))
        (void)signal(SIGTERM, SIG_IGN);
    before_hello();
    while (fgets(line, sizeof line, stdin))
        obey(line);
    hear("", "(end of file)\n");
    while (is("stubborn"))
        (void)poll(NULL, 0, 1000);
    return 0;
}
