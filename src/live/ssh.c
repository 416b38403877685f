#include "live/ssh.h"

#include <errno.h>
#include <string.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

enum { PORT_MAX = 65535 };

/* What of a node is a text: which characters it may have, which must not be the first, how long it may be. */
struct word_rule {
    const char *what, *allowed, *not_first;
    size_t max;
};

static const struct word_rule host_rule = { "host", LETTERS DIGITS "._:%-", "-.%", 255 }; /* with IPv6: fe80::1%eth0 */
static const struct word_rule user_rule = { "user", LETTERS DIGITS "._-", "-.", 64 };
static const struct word_rule key_rule = { "key", LETTERS DIGITS "._/+@,=~ -", "-", 4095 }; /* no '%': ssh expands it */
static const struct word_rule helper_rule = { "path of pipetune-node", LETTERS DIGITS "._/+-", "-", 4095 };

static int check_word(const struct word_rule *r, const char *text, struct err *e)
{
    size_t len = strlen(text);
    if (len == 0)
        return err_set(e, -EINVAL, "%s '' is empty", r->what);
    if (len > r->max)
        return err_set(e, -EINVAL, "%s '%.40s…' is longer than %zu characters", r->what, text, r->max);
    if (strchr(r->not_first, text[0]))
        return err_set(e, -EINVAL, "%s '%s' must not begin with '%c'", r->what, text, text[0]);
    const char *stray = text + strspn(text, r->allowed);
    if (*stray == '@' && r == &host_rule)
        return err_set(e, -EINVAL, "host '%s' must be the host alone: give the user as 'user'", text);
    if (*stray > ' ' && *stray <= '~')
        return err_set(e, -EINVAL, "%s '%s' must not contain '%c'", r->what, text, *stray);
    if (*stray)
        return err_set(e, -EINVAL, "%s '%s' must not contain spaces, control or accented characters", r->what, text);
    return 0;
}

int ssh_check(const struct node_cfg *cfg, struct err *e)
{
    int rc = check_word(&host_rule, cfg->host, e);
    if (rc == 0 && cfg->user)
        rc = check_word(&user_rule, cfg->user, e);
    if (rc == 0 && cfg->key)
        rc = check_word(&key_rule, cfg->key, e);
    if (rc == 0 && (cfg->port < 0 || cfg->port > PORT_MAX))
        rc = err_set(e, -EINVAL, "port %d is not between 1 and %d", cfg->port, PORT_MAX);
    return rc;
}

/* Absolute, and of [A-Za-z0-9._/+-] alone. */
static int ssh_check_helper(const char *path, struct err *e)
{
    if (path[0] != '/')
        return err_set(e, -EINVAL, "path of pipetune-node '%s' must be absolute to be found on other nodes", path);
    return check_word(&helper_rule, path, e);
}

int ssh_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, const char *helper, struct err *e)
{
    static const char *const fixed[] = { "-T",
                                         "-oBatchMode=yes",
                                         "-oStrictHostKeyChecking=yes",
                                         "-oConnectTimeout=10",
                                         "-oServerAliveInterval=5",
                                         "-oServerAliveCountMax=3",
                                         "-oClearAllForwardings=yes" };
    int rc = ssh_check(cfg, e);
    if (rc == 0)
        rc = ssh_check_helper(helper, e);
    if (rc < 0)
        return rc;
    strv_add(out, ssh);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        strv_add(out, fixed[i]);
    if (cfg->key) {
        strv_add(out, "-i");
        strv_add(out, cfg->key);
    }
    if (cfg->port) {
        strv_add(out, "-p");
        strv_addf(out, "%d", cfg->port);
    }
    if (cfg->user) {
        strv_add(out, "-l");
        strv_add(out, cfg->user);
    }
    strv_add(out, "--");
    strv_add(out, cfg->host);
    strv_add(out, helper);
    strv_add(out, "serve");
    return out->failed ? err_sys(e, -ENOMEM, "the command line of ssh") : 0;
}
