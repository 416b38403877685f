#include "live/ssh.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
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
static const struct word_rule address_rule = { "address", LETTERS DIGITS "._:%-", "-.%", 255 };
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
    if (rc == 0 && cfg->address)
        rc = check_word(&address_rule, cfg->address, e);
    if (rc == 0 && cfg->user)
        rc = check_word(&user_rule, cfg->user, e);
    if (rc == 0 && cfg->key)
        rc = check_word(&key_rule, cfg->key, e);
    if (rc == 0 && (cfg->port < 0 || cfg->port > PORT_MAX))
        rc = err_set(e, -EINVAL, "port %d is not between 1 and %d", cfg->port, PORT_MAX);
    return rc;
}

static bool is_hash(const char *text)
{
    return strlen(text) == 64 && !text[strspn(text, DIGITS "abcdef")];
}

int ssh_put_path(char out[SSH_PUT_PATH_MAX], const char *hash, struct err *e)
{
    if (!is_hash(hash))
        return err_set(e, -EINVAL, "'%.80s' is no SHA-256", hash);
    (void)snprintf(out, SSH_PUT_PATH_MAX, SSH_PUT_DIR "/%s/pipetune-node", hash);
    return 0;
}

static bool is_put_path(const char *path)
{
    char hash[65] = "", whole[SSH_PUT_PATH_MAX];
    if (strncmp(path, SSH_PUT_DIR "/", sizeof SSH_PUT_DIR) != 0)
        return false;
    (void)snprintf(hash, sizeof hash, "%s", path + sizeof SSH_PUT_DIR);
    return ssh_put_path(whole, hash, NULL) == 0 && strcmp(whole, path) == 0;
}

/* Absolute, and of [A-Za-z0-9._/+-] alone; or one that was put. */
static int ssh_check_helper(const char *path, struct err *e)
{
    if (is_put_path(path))
        return 0;
    if (path[0] != '/')
        return err_set(e, -EINVAL, "path of pipetune-node '%s' must be absolute to be found on other nodes", path);
    return check_word(&helper_rule, path, e);
}

static int put_options(struct strv *out, const char *ssh, const struct node_cfg *cfg, struct err *e)
{
    static const char *const fixed[] = { "-T",
                                         "-oBatchMode=yes",
                                         "-oStrictHostKeyChecking=yes",
                                         "-oConnectTimeout=10",
                                         "-oServerAliveInterval=5",
                                         "-oServerAliveCountMax=3",
                                         "-oClearAllForwardings=yes" };
    int rc = ssh_check(cfg, e);
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
    return 0;
}

int ssh_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, const char *helper, struct err *e)
{
    int rc = ssh_check(cfg, e);
    if (rc == 0)
        rc = ssh_check_helper(helper, e);
    if (rc == 0)
        rc = put_options(out, ssh, cfg, e);
    if (rc < 0)
        return rc;
    strv_add(out, helper);
    strv_add(out, "serve");
    return out->failed ? err_sys(e, -ENOMEM, "the command line of ssh") : 0;
}

/* --- scripts --- */

/* Whatever shell logs in there takes what stands between single quotes as it is: so there is no quote, no newline and no '!' within.
 * -h comes before -d, which would follow a link; behind `cd -P` it is asked whose folder that is. */
#define REFUSE "{ echo \"pipetune: refused "
#define THEN "\"; exit 0; }; "

static const char put_script[] =
    "sh -c 'umask 077; LC_ALL=C; export LC_ALL; d=" SSH_PUT_DIR "; h=%s; f=pipetune-node; cd || exit 90; "
    "[ \"`uname -sm`\" = \"Linux %s\" ] || { echo \"pipetune: machine `uname -sm`" THEN
    "command -v sha256sum >/dev/null || " REFUSE "there is no sha256sum to check what comes" THEN "[ -h $d ] && " REFUSE
    "~/$d is a link" THEN "[ -d $d ] || mkdir -m 700 $d || exit 91; cd -P ./$d || exit 92; "
    "[ -O . ] || " REFUSE "~/$d is of another user" THEN "chmod 700 . || exit 93; "
    "[ -h $h ] && " REFUSE "~/$d/$h is a link" THEN "[ -d $h ] || mkdir -m 700 $h || exit 94; cd -P ./$h || exit 95; "
    "[ -O . ] || " REFUSE "~/$d/$h is of another user" THEN "chmod 700 . || exit 96; "
    "[ -h $f ] && " REFUSE "~/$d/$h/$f is a link" THEN
    "if [ -f $f ] && [ -O $f ] && [ \"`sha256sum <$f | cut -c1-64`\" = $h ]; then echo \"pipetune: there\"; else "
    "n=new.$$; trap \"rm -f $n\" EXIT; trap \"exit 99\" HUP INT PIPE TERM; set -C; echo \"pipetune: send\"; cat >$n || "
    "exit 97; "
    "[ \"`sha256sum <$n | cut -c1-64`\" = $h ] || { echo \"pipetune: broken" THEN
    "chmod 700 $n; v=`./$n version 2>&1` || { echo \"pipetune: unfit $v" THEN
    "mv -f $n $f || exit 98; echo \"pipetune: put\"; fi; "
    "v=`./$f version 2>&1` || { echo \"pipetune: unfit $v" THEN "echo \"pipetune: says $v\"'";

#define KEPT "echo \"pipetune: kept ~/$d"

static const char clean_script[] =
    "sh -c 'LC_ALL=C; export LC_ALL; d=" SSH_PUT_DIR "; cd || exit 90; "
    "[ -h $d ] && { " KEPT ": it is a link" THEN "[ -e $d ] || exit 0; [ -d $d ] || { " KEPT ": it is no folder" THEN
    "cd -P ./$d || exit 92; [ -O . ] || { " KEPT ": it is of another user" THEN
    "for h in * .[A-Za-z0-9]*; do [ -e \"$h\" ] || [ -h \"$h\" ] || continue; "
    "[ -h \"$h\" ] && { " KEPT "/$h: it is a link\"; continue; }; n=`expr \"x$h\" : \"x[0-9a-f]*$\"`; "
    "[ $n = 65 ] && [ ${#h} = 64 ] && [ -d \"$h\" ] && [ -O \"$h\" ] || { " KEPT
    "/$h: it is none of ours\"; continue; }; "
    "for f in $h/pipetune-node $h/new.[0-9]*; do [ -h $f ] && continue; [ -f $f ] && [ -O $f ] || continue; "
    "rm -f $f && echo \"pipetune: removed ~/$d/$f\"; done; "
    "if rmdir $h 2>/dev/null; then echo \"pipetune: removed ~/$d/$h\"; else " KEPT
    "/$h: it holds what is none of ours\"; fi; "
    "done; cd -P .. && rmdir $d 2>/dev/null && echo \"pipetune: removed ~/$d\"; exit 0'";

int ssh_script_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, enum ssh_script which,
                    const char *hash, const char *machine, struct err *e)
{
    int rc = put_options(out, ssh, cfg, e);
    if (rc < 0)
        return rc;
    if (which == SSH_CLEAN) {
        strv_add(out, clean_script);
    } else if (!is_hash(hash)) {
        return err_set(e, -EINVAL, "'%.80s' is no SHA-256", hash);
    } else if (!*machine || machine[strspn(machine, LETTERS DIGITS "_")]) {
        return err_set(e, -EINVAL, "'%.80s' is no kind of machine", machine);
    } else {
        strv_addf(out, put_script, hash, machine);
    }
    return out->failed ? err_sys(e, -ENOMEM, "the command line of ssh") : 0;
}
