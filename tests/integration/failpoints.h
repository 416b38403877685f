/* Every failpoint of the sources (base/failpoint.h), and whose it is: the tests that strike them walk over this table, and
 * test_crash compares it with the sources. */
#ifndef TESTS_INTEGRATION_FAILPOINTS_H
#define TESTS_INTEGRATION_FAILPOINTS_H

enum failpoint_owner {
    OF_DRIVER,   /* in every study */
    OF_LIFE,     /* the driver's, where trials are paused and stopped: struck by test_life */
    OF_SESSIONS, /* the driver's, where trials are served by warm sessions */
    OF_LAUNCHER, /* pipetune-node exec */
    OF_HELPER,   /* pipetune-node serve */
    OF_HANDING,  /* whoever hands a study on: struck by test_mlflow */
    OF_SERVER,   /* pipetune serve: struck by test_queue */
};

static const struct failpoint_row {
    const char *name;
    enum failpoint_owner of;
    unsigned most; /* the first so many passes are struck */
} failpoints[] = {
    { "attempt-before-commit", OF_DRIVER, 3 },
    { "attempt-committed", OF_DRIVER, 3 },
    { "end-before-commit", OF_DRIVER, 3 },
    { "end-committed", OF_DRIVER, 3 },
    { "end-due", OF_LIFE, 2 },
    { "end-said", OF_LIFE, 2 },
    { "epoch-before-commit", OF_DRIVER, 4 },
    { "epoch-committed", OF_DRIVER, 4 },
    { "go-sent", OF_DRIVER, 3 },
    { "handing-batch-sent", OF_HANDING, 1 },
    { "handing-run-made", OF_HANDING, 1 },
    { "launcher-ready", OF_DRIVER, 3 },
    { "launcher-spawned", OF_DRIVER, 3 },
    { "node-exit-written", OF_LAUNCHER, 1 },
    { "node-exited", OF_LAUNCHER, 1 },
    { "node-go", OF_LAUNCHER, 1 },
    { "node-limited", OF_HELPER, 1 },
    { "node-locked", OF_LAUNCHER, 1 },
    { "node-ready", OF_LAUNCHER, 1 },
    { "node-serve-ending", OF_HELPER, 1 },
    { "node-started", OF_LAUNCHER, 1 },
    { "node-walked", OF_HELPER, 3 },
    { "queue-gone", OF_SERVER, 2 },
    { "queue-noted", OF_SERVER, 2 },
    { "queue-spawned", OF_SERVER, 2 },
    { "queue-turned", OF_SERVER, 2 },
    { "resume-before-commit", OF_LIFE, 2 },
    { "resume-committed", OF_LIFE, 2 },
    { "run-sent", OF_SESSIONS, 3 },
    { "session-go-sent", OF_SESSIONS, 1 },
    { "session-launcher-ready", OF_SESSIONS, 1 },
    { "session-spawned", OF_SESSIONS, 1 },
    { "store-before-commit", OF_DRIVER, 20 },
    { "store-begin", OF_DRIVER, 20 },
    { "store-committed", OF_DRIVER, 20 },
    { "store-created", OF_DRIVER, 1 },
};

#endif
