/* What the subcommands share: the table of them, exit codes, and how an error reaches the user. */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"

enum cmd_exit {
    CMD_OK = 0,
    CMD_NONE = 1,        /* no trial finished, or data was left behind */
    CMD_USAGE = 2,       /* wrong usage or config */
    CMD_ENVIRONMENT = 3, /* this machine lacks something */
    CMD_INTERRUPTED = 130,
};

/* A command's options for those who tell of them: its own rows first, then those of the config that it takes. */
enum { CMD_ROWS_MAX = 128 };
struct cmd_rows {
    struct opt_row v[CMD_ROWS_MAX];
    size_t n;
};

void cmd_rows_add(struct cmd_rows *out, const struct opt_set *set);

struct command {
    const char *name;
    int (*run)(int argc, char **argv);     /* argv[0] is the command's name; returns the exit code */
    void (*options)(struct cmd_rows *out); /* the rows of its options; NULL: none */
    /* What follows the name: "ls | show STUDY | import FILE [OPTION…]". Completion reads it, too: small letters are words to be
     * typed as they are; STUDY, FILE, DIR and COMMAND stand for what they say. */
    const char *usage;
    const char *help; /* one line */
};

extern const struct command cmd_table[]; /* sorted by name, ends with a NULL name */

/* One file each: src/cmd/NAME.c */
int cmd_add(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_best(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_energy(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_experiment(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_gc(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_model(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_nodes(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_retry(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_stop(int argc, char **argv);
int cmd_submit(int argc, char **argv);
int cmd_tag(int argc, char **argv);
int cmd_tell(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_version(int argc, char **argv);
void cmd_attach_options(struct cmd_rows *out);
void cmd_best_options(struct cmd_rows *out);
void cmd_doctor_options(struct cmd_rows *out);
void cmd_energy_options(struct cmd_rows *out);
void cmd_events_options(struct cmd_rows *out);
void cmd_experiment_options(struct cmd_rows *out);
void cmd_export_options(struct cmd_rows *out);
void cmd_gc_options(struct cmd_rows *out);
void cmd_help_options(struct cmd_rows *out);
void cmd_ls_options(struct cmd_rows *out);
void cmd_model_options(struct cmd_rows *out);
void cmd_monitor_options(struct cmd_rows *out);
void cmd_nodes_options(struct cmd_rows *out);
void cmd_replay_options(struct cmd_rows *out);
void cmd_report_options(struct cmd_rows *out);
void cmd_rm_options(struct cmd_rows *out);
void cmd_run_options(struct cmd_rows *out);
void cmd_serve_options(struct cmd_rows *out);
void cmd_show_options(struct cmd_rows *out);
void cmd_submit_options(struct cmd_rows *out);
void cmd_tag_options(struct cmd_rows *out);
void cmd_tell_options(struct cmd_rows *out);
void cmd_trace_options(struct cmd_rows *out);
void cmd_version_options(struct cmd_rows *out);

/* "pipetune: …" on stderr, on one line that is fit for a terminal. */
void cmd_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void cmd_say_lines(const struct buf *lines); /* each of them */

/* Says the error by cmd_say() and returns the exit code that the error stands for: usage for -EINVAL, -EEXIST and
 * -ERANGE, else the environment. */
int cmd_fail(const struct err *e);

/* Reads argv by the rows; --help is understood beside them. 0: go on; 1: done, *out_exit is to be returned (help was printed,
 * or the usage is wrong and has been explained). More than `max_words` words are wrong usage. */
int cmd_options(const char *command, int argc, char **argv, const struct opt_set *sets, size_t n_sets,
                struct strv *words, size_t max_words, int *out_exit);

/* Is --help among them? Then it is printed, and *out_exit to be returned. */
bool cmd_asks_help(const char *command, int argc, char **argv, int *out_exit);

/* The option parser knows long names alone, and -o is everybody's habit: makes it --out. */
void cmd_lengthen_out(int argc, char **argv);

/* All that is printed goes through here: the buffer on stdout, without what would command a terminal or hide in it (utf8.h). 0, -EPIPE
 * unexplained (the reader has seen enough), or an error. */
enum cmd_form { CMD_TEXT, CMD_JSON };
int cmd_write(const struct buf *b, enum cmd_form form, struct err *e);

/* Prints the buffer on stdout; a write that fails is an error of the environment. Returns the exit code. */
int cmd_print(const struct buf *b);
int cmd_print_as_json(const struct buf *b); /* its text is JSON */

/* The same, of a JSON value, indented; takes the reference. NULL: out of memory. */
int cmd_print_json(json_t *j);

#endif
