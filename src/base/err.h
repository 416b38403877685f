/* One explanation of one failure: set where the facts are known, passed up unchanged, printed by cmd/ or the loop. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

struct err {
    int code;        /* negative errno, 0 when nothing went wrong */
    char text[1024]; /* lower case: subject quoted, cause, fix; never ends with a newline */
};

/* Fill *e (NULL is allowed) and return `code`, so that `return err_set(e, -EINVAL, …)` reads as one sentence. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with ": strerror(-code)" at the end. */
int err_sys(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " before what *e already says. Returns e->code. */
int err_prefix(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
