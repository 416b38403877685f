/* The application port. The engine (trials, their life, the tuner, profiles, energy, the store) knows no application: what it launches is
 * described by an application file, whose `kind` names a row of one table, and all that it hears of it are reports (app/report.h). A row
 * says how its file is read, what is launched, how output becomes reports, and by which rules. Pure: a row starts nothing and opens nothing.
 *
 * A new kind is a file with its row, the row's name in app_kinds[] (bigdl/kinds.c, the lowest place from which all rows can be seen), and its
 * case in tests/unit/test_app_contract.c. */
#ifndef APP_APP_H
#define APP_APP_H

#include <stdint.h>

#include "app/app_file.h"
#include "app/lines.h"
#include "core/setting.h"

struct app_kind;
struct cluster_row;

struct application {
    const struct app_kind *kind;
    struct app_file file;
    void *own; /* the kind's: own_size bytes, zeroed before the file is read into them */
    /* Set by app_parse() from "arguments", and by the kind's check() where it knows better. */
    bool checkpoints, resumes;
    bool gang;                 /* its launches are of several processes; set by check() */
    struct line_reader reader; /* of its output; set by check() */
};

struct app_value {
    const char *name, *text;
};

/* Programs and files that set-up has put on this machine; NULL: not there. Paths are absolute. */
struct app_tools {
    const char *spark_submit; /* or the bare name */
    const char *log4j;        /* our log4j2 properties */
    const char *python;       /* where neither the setting nor the file says which; NULL: the runtime's choice */
    const char *converter;    /* of checkpoints */
    const char *library;      /* the folder of pipetune.py */
    const char *classes;      /* a class archive for Python applications */
    const char *
        closures; /* for warm sessions: a jar of unpacked classes, the jar of which they are, and an archive made with them */
    const char *closures_of, *session_classes;
};

/* A launch of several processes, which start and end as one: a gang. */
enum { APP_GANG_MAX = 64 };

struct app_rank {
    const char *role; /* the application's */
    size_t which;     /* of its roles */
    int index;        /* among those of its role, from 0 */
    int cores;        /* CPUs that it takes; 0: none of its own; -1: as many as the setting says, else 1 */
};

struct app_gang { /* zeroed: it is one process */
    struct app_rank v[APP_GANG_MAX];
    size_t n, tells; /* tells: the one that is heard */
};

/* One launch, as the engine wants it. Borrowed. */
struct app_launch {
    const struct app_tools *tools;
    const struct app_value *hypers; /* of the point, as they stand in argv; a session has none */
    size_t n_hypers;
    const struct app_value *knobs; /* of the setting: all of them */
    size_t n_knobs;
    const struct app_value *properties; /* of them those that begin with the kind's property_prefix */
    size_t n_properties;
    int epochs;
    int slots;
    int parts;              /* into which the slots are divided evenly; 0: they are not */
    double memory_gb;       /* of a part, or of the whole where there are none; NAN: as the file says */
    const char *launch;     /* the tag; NULL: none (--dry-run) */
    const char *checkpoint; /* folder to write them to; NULL: none */
    const char *resume_model,
        *resume_state;     /* what to go on from; the state NULL where a checkpoint is one file or folder */
    const char *converted; /* where the kind may put a checkpoint in another form, before it is read */
    const char *seed;      /* text; NULL: none */
    /* The socket of a warm session: hyperparameters, epochs, checkpoint, resume and seed of each trial come through it, and
     * none of them is in argv, whatever stands above. NULL: one trial, told in argv. */
    const char *session;
    const char *properties_file; /* instead of the application file's; NULL: that one */
    bool one_cpu;                /* it will be held to one CPU, though it sees more when it starts */
    /* Of a gang: the whole of it, which of it this is, and by which name or address each one's machine is reached; all NULL or 0: the one that is
     * heard, to be shown. */
    const struct app_gang *gang;
    size_t rank;
    const char *const *hosts;
};

enum { APP_STEPS_MAX = 2 };

/* What is run, one step after the other while each succeeds; the last one is the training (or the session). Free it. */
struct app_steps {
    struct strv argv[APP_STEPS_MAX];
    size_t n;
    struct strv env; /* NAME=VALUE, beside what is in the driver's environment */
    char *folder;    /* in which it works, absolute; NULL: the driver's */
};
void app_steps_done(struct app_steps *s);
#define AUTO_STEPS __attribute__((cleanup(app_steps_done)))

/* What becomes of memory that a setting gives. */
enum app_memory {
    APP_MEMORY_HEAP,  /* the application is told, and keeps to it */
    APP_MEMORY_LIMIT, /* its cgroup is limited */
};

/* Which of a launch's processes work, for the node helper: those whose command line has a word that begins and ends so, and the word
 * behind `cores_option` is how many slots each has. `begins` NULL: the whole tree works. */
struct app_workers {
    const char *begins, *ends, *cores_option;
};

/* What a launch waits for before its first step, in words for people. */
struct app_words {
    const char *program;  /* what is started: "spark-submit" */
    const char *starting; /* "starting Spark" */
    const char *
        granting; /* room was asked for, and not all of it was granted: "waiting for executors"; NULL: there is no asking */
    const char *not_granted; /* "no executor was granted" */
    const char *lost; /* the loss of its room left it untrained: "it lost its executor before the first checkpoint" */
};

/* What must be on this machine. */
enum app_need { APP_NEEDS_SPARK = 1, APP_NEEDS_JAVA = 2 };

/* A checkpoint's files by their names; pairs of equal numbers belong together. */
enum app_part { APP_PART_NEITHER, APP_PART_MODEL, APP_PART_STATE };

struct app_kind {
    const char *name;      /* "bigdl": what "kind" says */
    const char *file_word; /* what people call its file: "BigDL file" */
    const char *
        key; /* a file that has this member, and no "kind", is of this kind; NULL: only one that says so, or the table's first */

    const char *other_key; /* … or this one; NULL: no other */

    /* --- the file --- */
    struct app_file_rules rules;
    size_t own_size;
    /* After the members were read: what shows only in the whole, and the application's reader. -EINVAL with file, line and key; -ENOMEM. */
    int (*check)(struct application *a, const struct json_doc *doc, struct err *e);
    void (*done)(void *own); /* also of one that was read in part */
    /* Calls app_resolve_path() for each member that is a file or folder. Stops at the first non-zero return. */
    int (*paths)(struct application *a, app_resolve *resolve, void *ctx, struct err *e);
    /* Appends the files whose content makes the study what it is: their sums are stored with it. */
    void (*files)(const struct application *a, struct strv *out);
    /* The folder in which its own files lie, absolute: trials that run below their launcher alone may be placed on other hosts, which get
     * those files by their names below it. Free it; NULL: memory. The function NULL: they may not. */
    char *(*folder)(const struct application *a);
    /* Appends words that name the application for its class key (TUNER.md section 3), beside the extras. */
    void (*identity)(const struct application *a, struct strv *out);
    bool
        tells; /* its programs may tell of themselves (app/tell.h): the launcher has a socket for them, and stamps what is heard */
    bool passes_any; /* a hyperparameter that stands nowhere is passed as --name=value */

    /* --- a launch --- */
    int (*steps)(const struct application *a, const struct app_launch *l, struct app_steps *out, struct err *e);
    /* The processes of a launch; NULL, or none: it is one. -EINVAL: the file says nothing that can be; -ERANGE: this point and setting do not. */
    int (*gang)(const struct application *a, const struct app_launch *l, struct app_gang *out, struct err *e);
    /* Appends the names, of hyperparameters or system parameters, that its processes are counted by; NULL as `gang`. */
    void (*counts)(const struct application *a, struct strv *out);
    const char *property_prefix; /* knobs that begin so are passed to it as they are: "spark."; NULL: there are none */
    /* Appends the text of a file of properties that are secrets; NULL: it is given none so. */
    void (*put_properties)(const json_t *knobs, struct buf *out);
    /* The file that the application would read in the place of that one, of the application file; NULL: none. */
    const char *(*properties_file)(const struct application *a);
    /* Appends what the text of such a file gives to a name; false: nothing. NULL: there are no such files. */
    bool (*find_property)(const char *text, const char *name, struct buf *out);

    /* --- what it prints --- */
    /* Texts of which every line that counts holds one (any but a cause), for who passes lines on when there are too many: the i-th, NULL
     * behind the last. *step: the line says that training goes on. */
    const char *(*needle)(const struct application *a, size_t i, bool *step);
    bool stamped; /* its lines have the time; else a report is stamped when its line is read */

    /* --- rules --- */
    unsigned needs;      /* enum app_need */
    const char *divided; /* hyperparameters whose name begins so must be multiples of the slots: "batch"; NULL: none */
    const char *why_divided; /* "BigDL needs that" */
    enum app_memory memory;
    bool held; /* its cores are the CPUs that it is held to: nothing else keeps it to them */
    struct app_workers workers;
    struct app_words words;
    bool (*is_local)(
        const struct application *a); /* all of it runs on this machine, below its launcher; NULL: always */
    bool (*is_one_machine)(const struct application *a); /* … or on this machine elsewhere; NULL: as is_local */
    double (*memory_gb)(
        const struct application *a); /* that one trial takes here where no knob says; NULL: not known (0) */
    /* What the file bounds of the offer, which is this machine's where it is local, else nothing; NULL: nothing. */
    void (*offer)(const struct application *a, const struct space *space, struct offer *out);
    /* The cluster that it asks for the room of its parts (app/cluster.h), and its address as the file has it; NULL: none that can be asked. The
     * function NULL: it asks nobody. */
    const struct cluster_row *(*cluster)(const struct application *a, const char **out_master);

    /* --- checkpoints that are found by name; NULL: only those that it tells of --- */
    enum app_part (*part)(const char *file, int64_t *out_n); /* n = steps + 1 */
    bool (*is_folder)(const char *name);                     /* one that has such files; text order is time order */
};

extern const struct app_kind *const app_kinds[]; /* the first is meant where a file does not say; ends with NULL */

/* Reads an application file. -EINVAL: an unknown kind; else as app_file_parse() and check(). *out is untouched on failure. */
int app_parse(struct application *out, const struct json_doc *doc, app_lookup *lookup, void *ctx, struct err *e);
void app_done(struct application *a);

/* The kind that a file is of; -EINVAL. */
int app_kind_of(const struct app_kind **out, const struct json_doc *doc, struct err *e);

/* By the rules of any kind: what a checkpoint's file is, and whether a folder has such files. */
enum app_part app_part_of(const char *file, int64_t *out_n);
bool app_is_checkpoint_folder(const char *name);

/* NULL: there is no kind of this name. */
const struct app_kind *app_kind_find(const char *name);

bool app_is_local(const struct application *a);
bool app_is_one_machine(const struct application *a);
double app_memory_gb(const struct application *a);

/* -EINVAL: see app_file_reaches(); never of a kind that passes any. */
int app_reaches(const struct application *a, const char *hyper, struct err *e);
/* The same of the number of epochs. */
bool app_reaches_epochs(const struct application *a);

/* What a program is answered when it greets (app/tell.h): a line without its end. `hyper`: an object. */
void app_put_answer(const struct app_launch *l, const json_t *hyper, long long seed, struct buf *out);

#endif
