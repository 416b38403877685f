/* What shells make of `pipetune completion`: bash is asked as it asks itself, by COMP_WORDS. The others are asked where they are. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/own.h"
#include "store/store.h"
#include "tests/integration/harness.h"

enum { WORDS = 12 };

#define AUTO_OUTPUT __attribute__((cleanup(harness_output_done)))

/* A folder with a store in it, which is the working directory. */
struct place {
    char *dir, *store, *program;
    int tree; /* where the test was started */
};

static struct harness_output in_shell(const char *shell, const char *script)
{
    char *argv[] = { (char *)shell, (char *)"-c", (char *)script, NULL };
    return harness_run(argv, HARNESS_MS);
}

static const struct {
    const char *name;
    const char *words[WORDS]; /* the last one is what is being typed; pieces as bash breaks them */
    const char *want;         /* all replies, sorted, each with a blank behind it; NULL: as `has` says */
    const char *has, *lacks;  /* among them, with a blank on either side */
} rows[] = {
    { "a command", { "pipetune", "com" }, "compare completion ", NULL, NULL },
    { "every command", { "pipetune", "" }, NULL, " run ", " --store " },
    { "an option", { "pipetune", "ls", "--j" }, "--json ", NULL, NULL },
    { "of what takes no words all options", { "pipetune", "ls", "" }, NULL, " --json ", " run " },
    { "a key of the config", { "pipetune", "run", "--probe" }, "--probe-budget ", NULL, NULL },
    { "the words of an option", { "pipetune", "run", "--keep", "" }, "all best none ", NULL, NULL },
    { "one of them", { "pipetune", "run", "--policy", "pi" }, "pipetune ", NULL, NULL },
    { "after an equals sign", { "pipetune", "run", "--keep", "=", "b" }, "best ", NULL, NULL },
    { "right after it", { "pipetune", "run", "--keep", "=" }, "all best none ", NULL, NULL },
    { "where = breaks no words", { "pipetune", "run", "--keep=b" }, "--keep=best ", NULL, NULL },
    { "rows of other tables", { "pipetune", "run", "--algorithm", "" }, NULL, " grid ", " --json " },
    { "a number is nobody's to foretell", { "pipetune", "run", "--epochs", "" }, "", NULL, NULL },
    { "a flag that is on", { "pipetune", "monitor", "--no" }, "--no-events ", NULL, NULL },
    { "verbs", { "pipetune", "model", "ex" }, "explain export ", NULL, NULL },
    { "commands to be helped with", { "pipetune", "help", "r" }, "replay report retry rm run ", NULL, NULL },
    { "shells", { "pipetune", "completion", "" }, "bash fish zsh ", NULL, NULL },
    { "studies", { "pipetune", "show", "--store", "@", "de" }, "demo demo@2 ", NULL, NULL },
    { "studies of another store", { "pipetune", "show", "--store", "=", "/nonexistent", "" }, "", NULL, NULL },
    { "a study's name goes on behind an @", { "pipetune", "show", "--store", "@", "demo", "@", "" }, "2 ", NULL, NULL },
    { "files", { "pipetune", "report", "demo", "--html", "stud" }, "study.conf ", NULL, NULL },
    { "the config behind --config", { "pipetune", "--config", "stud" }, "study.conf ", NULL, NULL },
    { "nothing of a command that there is not", { "pipetune", "shwo", "--j" }, "", NULL, NULL },
};

static void put_words(struct buf *b, const struct place *w, const char *const *words)
{
    for (size_t i = 0; i < WORDS && words[i]; i++) {
        buf_putc(b, ' ');
        const char *word =
            strcmp(words[i], "@") == 0 && i > 0 && strcmp(words[i - 1], "--store") == 0 ? w->store : words[i];
        buf_put_shell(b, i == 0 ? w->program : word);
    }
}

static void test_bash_completes(void **state)
{
    const struct place *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        AUTO_BUF struct buf b = BUF_INIT;
        buf_puts(&b, "source <(");
        buf_put_shell(&b, w->program);
        buf_puts(&b, " completion bash); COMP_WORDS=(");
        put_words(&b, w, rows[i].words);
        buf_puts(&b, "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _pipetune; "
                     "printf '%s\\n' \"${COMPREPLY[@]}\" | LC_ALL=C sort | tr '\\n' ' '");
        AUTO_OUTPUT struct harness_output o = in_shell("/bin/bash", buf_text(&b));
        assert_int_equal(o.code, 0);
        const char *got = strcmp(o.out, " ") == 0 ? "" : o.out;
        AUTO_BUF struct buf all = BUF_INIT;
        buf_printf(&all, " %s", got);
        bool good = rows[i].want ? strcmp(got, rows[i].want) == 0
                                 : strstr(buf_text(&all), rows[i].has) && !strstr(buf_text(&all), rows[i].lacks);
        if (!good || *o.err)
            fail_msg("%s: got '%s', want '%s'; stderr '%s'", rows[i].name, got,
                     rows[i].want ? rows[i].want : rows[i].has, o.err);
    }
}

static void test_bash_is_told_whom_it_is_for(void **state)
{
    const struct place *w = *state;
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "set -eu; source <('%s' completion bash); complete -p pipetune", w->program);
    AUTO_OUTPUT struct harness_output o = in_shell("/bin/bash", buf_text(&b));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "complete -F _pipetune pipetune\n");
}

/* Where there is no such shell nobody asks: this test needs bash alone. */
static const struct {
    const char *shell, *path, *script;
} others[] = {
    { "zsh", "/usr/bin/zsh",
      "autoload -Uz compinit; compinit -D -u; source =(%s completion zsh); "
      "print ${_comps[pipetune]} | grep -qx _pipetune" },
    { "fish", "/usr/bin/fish",
      "%s completion fish | source; "
      "complete -C 'pipetune run --keep b' | string match -q 'best*'; "
      "and complete -C 'pipetune sho' | string match -q 'show*'" },
};

static void test_other_shells_read_theirs(void **state)
{
    const struct place *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        AUTO_BUF struct buf program = BUF_INIT;
        char script[2048];
        buf_put_shell(&program, w->program);
        if (access(others[i].path, X_OK) != 0)
            continue;
        const char *script_of = others[i].script, *at = strstr(script_of, "%s");
        (void)snprintf(script, sizeof script, "%.*s%s%s", (int)(at - script_of), script_of, buf_text(&program), at + 2);
        AUTO_OUTPUT struct harness_output o = in_shell(others[i].path, script);
        if (o.code != 0)
            fail_msg("%s: exit %d: %s%s", others[i].shell, o.code, o.out, o.err);
    }
}

static void test_mistakes_are_told(void **state)
{
    const struct place *w = *state;
    char *const bare[] = { w->program, (char *)"completion", NULL };
    char *const ksh[] = { w->program, (char *)"completion", (char *)"ksh", NULL };
    AUTO_OUTPUT struct harness_output none = harness_run(bare, HARNESS_MS), other = harness_run(ksh, HARNESS_MS);
    assert_int_equal(none.code, 2);
    assert_non_null(strstr(none.err, "for which shell?"));
    assert_int_equal(other.code, 2);
    assert_non_null(strstr(other.err, "there is one for bash, zsh and fish"));
}

static void add_study(struct store *s, const char *name)
{
    struct err e = { 0 };
    char own[32];
    (void)snprintf(own, sizeof own, "%s", name);
    char state[] = "finished", config[] = "{}", hash[] = "0123456789abcdef";
    const struct store_study row = {
        .name = own, .state = state, .config = config, .space_hash = hash, .provenance = config
    };
    int64_t id = 0;
    if (store_study_add(s, &row, &id, &e) < 0)
        fail_msg("%s", e.text);
}

static int open_place(void **state)
{
    static struct place p;
    struct store *s = NULL;
    p = (struct place){ .dir = harness_dir(), .program = harness_program("pipetune") };
    p.store = harness_path(p.dir, "pipetune.db");
    p.tree = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chdir(p.dir), 0);
    assert_int_equal(store_open(&s, p.store, STORE_WRITE, NULL), 0);
    add_study(s, "demo");
    add_study(s, "demo@2");
    store_close(s);
    harness_write(p.dir, "study.conf", "{}");
    *state = &p;
    return 0;
}

static int close_place(void **state)
{
    struct place *p = *state;
    assert_int_equal(fchdir(p->tree), 0);
    (void)close(p->tree);
    harness_remove(p->dir);
    free(p->store);
    free(p->program);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bash_completes),
        cmocka_unit_test(test_bash_is_told_whom_it_is_for),
        cmocka_unit_test(test_other_shells_read_theirs),
        cmocka_unit_test(test_mistakes_are_told),
    };
    return cmocka_run_group_tests(tests, open_place, close_place);
}
