/* The words between the driver and a warm session (bigdl/apps/pipetune_session.py): JSON lines of at most 64 KB over a Unix
 * socket. Pure.
 *
 *   session: {"hello":{"protocol":2,"app_id":"local-1700000000000","pid":4711,"busy":null|"ID"}}
 *   driver:  {"run":{"id":"ID","hyper":{"batch_size":128,"learning_rate":0.1},"epochs":2,"seed":1,"checkpoint":"DIR"|null,
 *             "model":"FILE"|null,"state":"FILE"|null}}
 *   session: {"epoch":{"id":"ID","epoch":1,"metrics":{"name":0.5}}}     metrics are what the application gave to metric()
 *   session: {"done":{"id":"ID","ok":true|false,"error":null|"text"}}
 *   driver:  {"end":{"id":"ID","epoch":2}}
 *   driver:  {"stop":{}}
 *
 * `end` is for the run that trains: it ends as soon as that epoch is complete, as if it had been asked for no more, with its `done`; one
 * whose word comes too late trains until it takes it. Another id is passed over. Sessions of protocol 1 do not know it.
 *
 * A `run` with an id that is done is answered by the same epochs and the same `done` again; one that runs already by those of
 * its epochs that were told, then by the rest and its `done`. In the log stands, on a line of its own and before and after all
 * lines of a trial,
 *   PIPETUNE trial ID begin        PIPETUNE trial ID end
 * The end's line is written before `done` is sent; it may be read after it, since the log comes another way.
 */
#ifndef APP_SESSION_H
#define APP_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define SESSION_MARK "PIPETUNE trial"

enum { SESSION_LINE_MAX = 65536, SESSION_PROTOCOL = 2, SESSION_ID_MAX = 64, SESSION_TEXT_MAX = 256 };

enum { SESSION_PROTOCOL_OLDEST = 1, SESSION_PROTOCOL_END = 2 /* from which on there is `end` */ };

static inline bool session_speaks(int protocol)
{
    return protocol >= SESSION_PROTOCOL_OLDEST && protocol <= SESSION_PROTOCOL;
}

/* [A-Za-z0-9_-]{1,64}: what names a trial here and in the log's marks. */
bool session_is_id(const char *text, size_t len);

struct session_run {
    const char *id; /* as session_is_id() wants it */
    const json_t *hyper;
    int epochs; /* until so many are done, those before a resume included */
    long long seed;
    const char *checkpoint, *model, *state; /* NULL: none */
};

void session_put_run(struct buf *out, const struct session_run *r); /* with the newline */
void session_put_end(struct buf *out, const char *id, int epoch);
void session_put_stop(struct buf *out);

enum session_word { SESSION_HELLO, SESSION_EPOCH, SESSION_DONE };

struct session_message {
    enum session_word word;
    int protocol; /* of hello; when it is not ours nothing else of the hello is read */
    long pid;     /* of the Python process */
    char app_id[SESSION_ID_MAX + 1];
    char id[SESSION_ID_MAX + 1]; /* of the trial; of hello: the one it is busy with, "" when it is idle */
    int epoch;
    json_t *metrics; /* an object of numbers, new reference; NULL: none */
    bool ok;
    char error[SESSION_TEXT_MAX]; /* valid UTF-8 on one line, cut where it is longer; "" when ok */
};

/* One line without its newline. -EINVAL with what is wrong in it; unknown members are ignored, an unknown word is -ENOMSG;
 * -ENOMEM. */
int session_parse(struct session_message *out, const char *line, size_t len, struct err *e);
void session_message_done(struct session_message *m);

#endif
