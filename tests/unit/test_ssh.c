/* live/ssh, and live/nodes_cfg, which reads what it judges. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "live/nodes_cfg.h"
#include "live/ssh.h"
#include "tests/fault.h"

#define FIXED                                                                                                          \
    "ssh -T -oBatchMode=yes -oStrictHostKeyChecking=yes -oConnectTimeout=10 -oServerAliveInterval=5 "                  \
    "-oServerAliveCountMax=3 -oClearAllForwardings=yes "
#define PUT(q) ".pipetune-node/" q q q q "/pipetune-node"
#define LONG64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct {
    const char *name, *host, *user, *key;
    int port;
    const char *helper, *want; /* the words with blanks between, or what the error says */
    bool good;
} cases[] = {
    { "a host", "w1", NULL, NULL, 0, "/opt/pipetune-node", FIXED "-- w1 /opt/pipetune-node serve", true },
    { "all of it", "w1.lab.example", "spark", "/keys/id", 2222, "/opt/pt/pipetune-node",
      FIXED "-i /keys/id -p 2222 -l spark -- w1.lab.example /opt/pt/pipetune-node serve", true },
    { "an IPv4 address", "10.0.0.7", NULL, NULL, 0, "/n", FIXED "-- 10.0.0.7 /n serve", true },
    { "an IPv6 address", "2001:db8::7", NULL, NULL, 0, "/n", FIXED "-- 2001:db8::7 /n serve", true },
    { "an IPv6 address with its scope", "fe80::1%eth0", NULL, NULL, 0, "/n", FIXED "-- fe80::1%eth0 /n serve", true },
    { "the IPv6 loopback", "::1", NULL, NULL, 0, "/n", FIXED "-- ::1 /n serve", true },
    { "a name of the user's ssh config", "gpu_box-3", NULL, NULL, 0, "/n", FIXED "-- gpu_box-3 /n serve", true },
    { "a key in a folder with a blank", "w1", NULL, "/my keys/id", 0, "/n", FIXED "-i /my keys/id -- w1 /n serve",
      true },
    { "an option as host", "-oProxyCommand=x", NULL, NULL, 0, "/n", "host '-oProxyCommand=x' must not begin with '-'",
      false },
    { "an ssh option as host", "-G", NULL, NULL, 0, "/n", "host '-G' must not begin with '-'", false },
    { "a blank in the host", "a b", NULL, NULL, 0, "/n", "host 'a b' must not contain spaces", false },
    { "a command in the host", "host;x", NULL, NULL, 0, "/n", "host 'host;x' must not contain ';'", false },
    { "a substitution in the host", "$(x)", NULL, NULL, 0, "/n", "host '$(x)' must not contain '$'", false },
    { "a user in the host", "u@w1", NULL, NULL, 0, "/n", "host 'u@w1' must be the host alone: give the user as 'user'",
      false },
    { "a URL as host", "ssh://w1", NULL, NULL, 0, "/n", "must not contain '/'", false },
    { "brackets around an address", "[::1]", NULL, NULL, 0, "/n", "must not contain '['", false },
    { "a pattern that ssh would expand", "%h", NULL, NULL, 0, "/n", "must not begin with '%'", false },
    { "a newline in the host", "a\nb", NULL, NULL, 0, "/n", "must not contain spaces, control", false },
    { "an accented host", "é", NULL, NULL, 0, "/n", "must not contain spaces, control or accented", false },
    { "an empty host", "", NULL, NULL, 0, "/n", "host '' is empty", false },
    { "a host of 256 characters", LONG64 LONG64 LONG64 LONG64, NULL, NULL, 0, "/n", "longer than 255", false },
    { "an option as user", "w1", "-oX", NULL, 0, "/n", "user '-oX' must not begin with '-'", false },
    { "a user with a blank", "w1", "a b", NULL, 0, "/n", "user 'a b' must not contain spaces", false },
    { "a user with a host", "w1", "u@v", NULL, 0, "/n", "user 'u@v' must not contain '@'", false },
    { "an empty user", "w1", "", NULL, 0, "/n", "user '' is empty", false },
    { "a key that is an option", "w1", NULL, "-oX", 0, "/n", "key '-oX' must not begin with '-'", false },
    { "a key that ssh would expand", "w1", NULL, "/k/%h", 0, "/n", "key '/k/%h' must not contain '%'", false },
    { "a key with a variable", "w1", NULL, "${HOME}/id", 0, "/n", "must not contain '$'", false },
    { "an empty key", "w1", NULL, "", 0, "/n", "key '' is empty", false },
    { "a port beyond the last", "w1", NULL, NULL, 65536, "/n", "port 65536 is not between 1 and 65535", false },
    { "a negative port", "w1", NULL, NULL, -1, "/n", "port -1", false },
    { "a helper by a relative path", "w1", NULL, NULL, 0, "bin/pipetune-node", "must be absolute", false },
    { "a helper that a shell would split", "w1", NULL, NULL, 0, "/a b/n", "must not contain spaces", false },
    { "a helper with a command", "w1", NULL, NULL, 0, "/n;x", "must not contain ';'", false },
    { "a helper with a quote", "w1", NULL, NULL, 0, "/a'b/n", "must not contain '''", false },
    { "a helper that was put", "w1", NULL, NULL, 0, PUT("0123456789abcdef"),
      FIXED "-- w1 " PUT("0123456789abcdef") " serve", true },
    { "one with another hash", "w1", NULL, NULL, 0, PUT("0123456789abcdeF"), "must be absolute", false },
    { "a way out of where helpers are put", "w1", NULL, NULL, 0, ".pipetune-node/../pipetune-node", "must be absolute",
      false },
    { "a helper in a home folder", "w1", NULL, NULL, 0, "~/n", "must be absolute", false },
    { "no helper", "w1", NULL, NULL, 0, "", "must be absolute", false },
};

static void test_command_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_cfg cfg = { .host = (char *)cases[i].host,
                                .user = (char *)cases[i].user,
                                .key = (char *)cases[i].key,
                                .port = cases[i].port };
        AUTO_STRV struct strv argv = STRV_INIT;
        AUTO_BUF struct buf b = BUF_INIT;
        struct err e = { 0 };
        int rc = ssh_argv(&argv, "ssh", &cfg, cases[i].helper, &e);
        for (size_t k = 0; k < argv.n; k++)
            buf_printf(&b, "%s%s", k ? " " : "", argv.v[k]);
        if (rc != (cases[i].good ? 0 : -EINVAL))
            fail_msg("%s: got %d (%s)", cases[i].name, rc, e.text);
        if (rc == 0 ? strcmp(buf_text(&b), cases[i].want) != 0 : !strstr(e.text, cases[i].want) || argv.n > 0)
            fail_msg("%s: got '%s%s', want '%s'", cases[i].name, buf_text(&b), e.text, cases[i].want);
    }
}

static void test_memory_that_runs_out_makes_no_command_line(void **state)
{
    (void)state;
    struct node_cfg cfg = { .host = (char *)"w1", .user = (char *)"u", .key = (char *)"/k", .port = 22 };
    int rc = -ENOMEM;
    unsigned nth;
    for (nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        AUTO_STRV struct strv argv = STRV_INIT;
        struct err e = { 0 };
        fault_arm(FAULT_ALLOC, nth);
        rc = ssh_argv(&argv, "ssh", &cfg, "/n", &e);
        fault_disarm();
        assert_true(rc == 0 || rc == -ENOMEM);
    }
    assert_true(nth > 10);
}

static int read_nodes(const char *text, struct node_cfg **cfg, size_t *n, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = json_doc_parse(&doc, "dir/c.conf", text, strlen(text), e);
    if (rc < 0)
        fail_msg("%s", e->text);
    return nodes_cfg_read(cfg, n, &doc, e);
}

static void test_config_becomes_nodes(void **state)
{
    (void)state;
    struct node_cfg *cfg = NULL;
    size_t n = 99;
    struct err e = { 0 };
    assert_int_equal(read_nodes("{}", &cfg, &n, &e), 0);
    assert_int_equal(n, 0);
    nodes_cfg_free(cfg, n);
    (void)setenv("HOME", "/home/u", 1);
    const char *text = "{\"nodes\": [\"w1\", {\"host\":\"w2\",\"user\":\"u\",\"port\":2222,\"key\":\"/k/id\"},\n"
                       " {\"host\":\"w3\",\"key\":\"~/.ssh/id\"}]}";
    if (read_nodes(text, &cfg, &n, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(n, 3);
    assert_string_equal(cfg[0].host, "w1");
    assert_true(!cfg[0].user && !cfg[0].key && cfg[0].port == 0);
    assert_string_equal(cfg[1].host, "w2");
    assert_string_equal(cfg[1].user, "u");
    assert_string_equal(cfg[1].key, "/k/id");
    assert_int_equal(cfg[1].port, 2222);
    assert_string_equal(cfg[2].key, "/home/u/.ssh/id");
    nodes_cfg_free(cfg, n);
}

static void test_config_faults_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } faults[] = {
        { "{\"nodes\": [\"w1\",\n \"-oProxyCommand=x\"]}",
          "line 2: 'nodes.1' cannot be reached by ssh: host '-oProxyCommand=x'" },
        { "{\"nodes\": [{\"host\":\"a b\"}]}", "line 1: 'nodes.0' cannot be reached by ssh: host 'a b'" },
        { "{\"nodes\": [{\"host\":\"w\",\n\"port\":0}]}", "line 2: 'nodes.0.port' must be between 1 and 65535" },
        { "{\"nodes\": [{\"host\":\"w\",\"port\":65536}]}", "port 65536 is not between" },
        { "{\"nodes\": [{\"host\":\"w\",\"port\":9999999999}]}", "'nodes.0.port' must be between" },
        { "{\"nodes\": [{\"host\":\"w\",\"key\":\"\"}]}", "key '' is empty" },
        { "{\"nodes\": [{\"user\":\"w\"}]}", "must be a host name or an object with 'host'" },
        { "{\"nodes\": [7]}", "must be a host name or an object with 'host'" },
    };
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        struct node_cfg *cfg = NULL;
        size_t n = 99;
        struct err e = { 0 };
        int rc = read_nodes(faults[i].text, &cfg, &n, &e);
        if (rc != -EINVAL || !strstr(e.text, faults[i].want) || cfg || n != 99)
            fail_msg("%s: got %d '%s', want '%s'", faults[i].text, rc, e.text, faults[i].want);
    }
}

static void test_memory_that_runs_out_reads_no_nodes(void **state)
{
    (void)state;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    static const char text[] = "{\"nodes\": [\"w1\", {\"host\":\"w2\",\"user\":\"u\",\"key\":\"k/id\"}]}";
    assert_int_equal(json_doc_parse(&doc, "dir/c.conf", text, sizeof text - 1, NULL), 0);
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        assert_true(nth < 64);
        struct node_cfg *cfg = NULL;
        size_t n = 0;
        fault_arm(FAULT_ALLOC, nth);
        rc = nodes_cfg_read(&cfg, &n, &doc, NULL);
        fault_disarm();
        assert_true(rc == 0 || (rc == -ENOMEM && !cfg));
        nodes_cfg_free(cfg, n);
    }
}

/* The shell there gets one word of ours, between single quotes, whatever shell that is. */
static void test_scripts_hold_nothing_of_others(void **state)
{
    (void)state;
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const struct {
        enum ssh_script which;
        const char *hash, *machine;
        bool good;
    } rows[] = {
        { SSH_PUT, hash, "x86_64", true },     { SSH_CLEAN, hash, "x86_64", true }, { SSH_PUT, "", "x86_64", false },
        { SSH_PUT, "x;reboot", "a", false },   { SSH_PUT, hash, "", false },        { SSH_PUT, hash, "a b", false },
        { SSH_PUT, hash, "$(reboot)", false }, { SSH_PUT, hash, "a'b", false },
    };
    const struct node_cfg cfg = { .host = (char *)"w1", .port = 22 }, bad = { .host = (char *)"-x" };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_STRV struct strv argv = STRV_INIT;
        struct err e = { 0 };
        int rc = ssh_script_argv(&argv, "ssh", &cfg, rows[i].which, rows[i].hash, rows[i].machine, &e);
        assert_int_equal(rc, rows[i].good ? 0 : -EINVAL);
        if (rc < 0)
            continue;
        const char *script = argv.v[argv.n - 1];
        size_t len = strlen(script);
        assert_string_equal(argv.v[argv.n - 2], "w1");
        assert_string_equal(argv.v[argv.n - 3], "--");
        assert_true(strncmp(script, "sh -c '", 7) == 0 && script[len - 1] == '\'');
        assert_int_equal(strcspn(script + 7, "'!\n\\"), len - 8);
    }
    AUTO_STRV struct strv argv = STRV_INIT;
    struct err e = { 0 };
    assert_int_equal(ssh_script_argv(&argv, "ssh", &bad, SSH_CLEAN, hash, "x", &e), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts_hold_nothing_of_others),
        cmocka_unit_test(test_command_lines),
        cmocka_unit_test(test_memory_that_runs_out_makes_no_command_line),
        cmocka_unit_test(test_config_becomes_nodes),
        cmocka_unit_test(test_config_faults_name_their_line),
        cmocka_unit_test(test_memory_that_runs_out_reads_no_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
