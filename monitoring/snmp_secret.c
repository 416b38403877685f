#include "monitoring/snmp_secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/credential.h"

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void snmp_secret_done(struct snmp_secret *s)
{
    if (!s)
        return;
    wipe(s->community);
    wipe(s->user);
    wipe(s->auth);
    wipe(s->privacy);
    *s = (struct snmp_secret){ 0 };
}

/* A community may have a colon in it; then it was read as a user and a password. */
static int take_community(struct snmp_secret *out, const struct credential *c)
{
    size_t room = c->token ? strlen(c->token) + 1 : strlen(c->user) + strlen(c->password) + 2;
    out->community = malloc(room);
    if (!out->community)
        return -ENOMEM;
    if (c->token)
        memcpy(out->community, c->token, room);
    else
        (void)snprintf(out->community, room, "%s:%s", c->user, c->password);
    return 0;
}

static int take_user(struct snmp_secret *out, const struct credential *c, const char *file, struct err *e)
{
    const char *colon = c->user ? strchr(c->password, ':') : NULL;
    if (!c->user || !*c->user || (colon && strchr(colon + 1, ':')))
        return err_set(e, -EINVAL, "'%s' must hold USER:PASSWORD or USER:PASSWORD:PRIVACY for SNMP version 3", file);
    out->user = strdup(c->user);
    out->auth = colon ? strndup(c->password, (size_t)(colon - c->password)) : strdup(c->password);
    out->privacy = colon ? strdup(colon + 1) : NULL;
    if (!out->user || !out->auth || (colon && !out->privacy))
        return -ENOMEM;
    if (strlen(out->auth) < SNMP_PASSWORD_MIN || (colon && strlen(out->privacy) < SNMP_PASSWORD_MIN))
        return err_set(e, -EINVAL, "a password in '%s' is shorter than %d characters, which SNMP version 3 refuses",
                       file, SNMP_PASSWORD_MIN);
    return 0;
}

static int read_file(struct snmp_secret *out, int version, const char *file, struct err *e)
{
    struct credential c = { 0 };
    int rc = credential_read(&c, file, e);
    if (rc < 0)
        return rc;
    rc = version == 2 ? take_community(out, &c) : take_user(out, &c, file, e);
    credential_done(&c);
    return rc == -ENOMEM ? err_sys(e, rc, "cannot read the credentials in '%s'", file) : rc;
}

int snmp_secret_read(struct snmp_secret *out, int version, const char *file, struct err *e)
{
    struct snmp_secret s = { 0 };
    int rc = 0;
    if (version != 2 && version != 3)
        return err_set(e, -EINVAL, "there is no SNMP version %d here: 2 or 3", version);
    if (version == 3 && !file)
        return err_set(e, -EINVAL, "SNMP version 3 needs \"credential_file\", which holds USER:PASSWORD");
    if (file)
        rc = read_file(&s, version, file, e);
    else if (!(s.community = strdup("public")))
        rc = err_sys(e, -ENOMEM, "cannot ask over SNMP");
    if (rc < 0)
        snmp_secret_done(&s);
    else
        *out = s;
    return rc;
}
