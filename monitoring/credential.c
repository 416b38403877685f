#include "monitoring/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/own.h"

/* Of the descriptor: what was looked at is what is read. */
static int check_owner(int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, -errno, "cannot look at '%s'", path);
    AUTO_BUF struct buf word = BUF_INIT;
    buf_put_shell(&word, path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, -EACCES, "'%s' is no regular file; credentials must be in one of mode 0600", path);
    if (st.st_uid != geteuid())
        return err_set(e, -EACCES, "'%s' belongs to another user; run: chown %ld %s", path, (long)geteuid(),
                       buf_text(&word));
    if (st.st_mode & 0177)
        return err_set(e, -EACCES, "'%s' has mode %04o, others may read the credentials; run: chmod 600 %s", path,
                       (unsigned)(st.st_mode & 07777), buf_text(&word));
    return 0;
}

/* The line's length without its end; -1 when it is none. */
static ssize_t line_length(const char *text, size_t len)
{
    while (len && strchr(" \t\r\n", text[len - 1]))
        len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return -1;
    return len ? (ssize_t)len : -1;
}

static int split(struct credential *out, const char *text)
{
    struct credential c = { 0 };
    const char *colon = strchr(text, ':');
    if (colon) {
        c.user = strndup(text, (size_t)(colon - text));
        c.password = strdup(colon + 1);
    } else {
        c.token = strdup(text);
    }
    if (colon ? !c.user || !c.password : !c.token) {
        credential_done(&c);
        return -ENOMEM;
    }
    *out = c;
    return 0;
}

int credential_read(struct credential *out, const char *path, struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_sys(e, -errno, "cannot read the credentials in '%s'", path);
    int rc = check_owner(fd, path, e);
    if (rc < 0)
        return rc;
    char text[CREDENTIAL_MAX + 1];
    ssize_t n = io_read_some(fd, text, sizeof text);
    ssize_t len = n < 0 || n > CREDENTIAL_MAX ? -1 : line_length(text, (size_t)n);
    if (n < 0) {
        rc = err_sys(e, (int)n, "cannot read the credentials in '%s'", path);
    } else if (len < 0) {
        rc = err_set(e, -EINVAL, "'%s' must hold one line, USER:PASSWORD or a token", path);
    } else {
        text[len] = '\0';
        rc = split(out, text);
        if (rc < 0)
            (void)err_sys(e, rc, "cannot read the credentials in '%s'", path);
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void credential_done(struct credential *c)
{
    if (!c)
        return;
    wipe(c->user);
    wipe(c->password);
    wipe(c->token);
    *c = (struct credential){ 0 };
}
