#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "base/own.h"
#include "live/host_list.h"
#include "tests/fault.h"

#define CONFIG                                                                                                         \
    "{ \"hosts\": { \"lab\": [\"a\", {\"host\": \"b\", \"port\": 2222}], \"empty\": [], \"bad\": [\"-x\"] } }"

static const struct {
    const char *name, *config, *said, *want; /* the list, or a part of the error; files: see below */
} cases[] = {
    { "a list by its name", CONFIG, "lab", "[\"a\", {\"host\": \"b\", \"port\": 2222}]" },
    { "a host", CONFIG, "lab1", "[\"lab1\"]" },
    { "hosts", NULL, "a, me@b,fe80::1%eth0,", "[\"a\", {\"host\": \"b\", \"user\": \"me\"}, \"fe80::1%eth0\"]" },
    { "a file of lines", NULL, "lines", "[\"a\", {\"host\": \"b\", \"user\": \"me\"}]" },
    { "a file of JSON", CONFIG, "json", "[{\"host\": \"b\", \"key\": \"k\"}]" },
    { "lists in a file", "{ \"hosts\": \"lists\" }", "far", "[\"f\"]" },
    { "a file that has a list's name, which wins", "{ \"hosts\": { \"lines\": [\"z\"] } }", "lines", "[\"z\"]" },
    { "an empty list", CONFIG, "empty", "list 'empty': there are no hosts" },
    { "a list that ssh may not be given", CONFIG, "bad", "list 'bad': host '-x' must not begin with '-'" },
    { "no hosts", NULL, " , ", "hosts ' , ': there are no hosts" },
    { "an option of ssh", NULL, "a,-oProxyCommand=x", "host '-oProxyCommand=x' must not begin with '-'" },
    { "a command", NULL, "a;reboot", "host 'a;reboot' must not contain ';'" },
    { "a user that is none", NULL, "-l@b", "user '-l' must not begin with '-'" },
    { "two users", NULL, "a@b@c", "host 'b@c' must be the host alone" },
    { "a host twice", NULL, "a,b,a", "host 3 is there twice: it is host 1, too" },
    { "a file that is not there", NULL, "no/where", "no file of hosts 'no/where'" },
    { "a file of lists", NULL, "lists", "'lists' holds lists by name" },
    { "a file of lists that is not there", "{ \"hosts\": \"none\" }", "far",
      "names the file 'none', which is neither" },
    { "a file of bad lists", "{ \"hosts\": \"json\" }", "far", "must be an object of lists" },
    { "a file of a bad entry", NULL, "keys", "'keys' line 1: '0' has an unknown 'prot': did you mean 'port'?" },
    { "no UTF-8", NULL, "a,\xff", "a host that is no UTF-8" },
};

static const struct {
    const char *name, *text;
} files[] = {
    { "lines", "# ours\n\n a \t\nme@b # the second\r\n" },
    { "json", "[ // one\n {\"host\": \"b\", \"key\": \"k\"} ]" },
    { "lists", "{\"far\": [\"f\"]}" },
    { "keys", "[{\"host\": \"a\", \"prot\": 1}]" },
};

static int choose(const char *config, const char *said, json_t **out, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = config ? json_doc_parse(&doc, "c.conf", config, strlen(config), e) : 0;
    return rc < 0 ? rc : host_list_choose(out, said, &doc, e);
}

static int enter(void **state)
{
    static char dir[] = "/tmp/pipetune-hosts-XXXXXX";
    struct err e;
    *state = dir;
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (io_write_atomic(files[i].name, files[i].text, strlen(files[i].text), 0600, &e) < 0)
            return -1;
    return 0;
}

static int leave(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        (void)unlink(files[i].name);
    return chdir("/") | rmdir(*state);
}

static void test_words_are_hosts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e = { 0 };
        AUTO_JSON json_t *list = NULL;
        int rc = choose(cases[i].config, cases[i].said, &list, &e);
        AUTO_FREE char *text = json_text(list);
        bool good = rc == 0 ? strcmp(text, cases[i].want) == 0 : rc == -EINVAL && strstr(e.text, cases[i].want);
        if (!good || (rc < 0) != !list)
            fail_msg("%s: got %d %s", cases[i].name, rc, rc == 0 ? text : e.text);
    }
}

static void test_no_memory_is_told(void **state)
{
    (void)state;
    int rc = -ENOMEM;
    for (unsigned nth = 1; rc < 0; nth++) {
        struct err e = { 0 };
        struct json_doc none = { 0 };
        AUTO_JSON json_t *list = NULL;
        assert_true(nth < 64);
        fault_arm(FAULT_ALLOC, nth);
        rc = host_list_choose(&list, "lines", &none, &e);
        fault_disarm();
        assert_true(rc == 0 ? list != NULL : rc < 0 && !list);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_are_hosts),
        cmocka_unit_test(test_no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
