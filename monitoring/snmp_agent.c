#include "monitoring/snmp_agent.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The library's own headers want this order. */
#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include <net-snmp/library/large_fd_set.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "monitoring/snmp_secret.h"

struct snmp_agent {
    char *host;
    struct snmp_secret secret;
    void *session; /* NULL until it is asked, and after a failure */

    /* The request under way. */
    int waiting; /* its id; 0: none */
    bool over;   /* it was answered, or the library has given it up */
    bool heard;  /* something came that was no answer */
    netsnmp_pdu *answer;
};

/* Sessions are each of one thread, but what the library keeps of users, engines and ids is one for all and has no lock: this one is held
 * while the library runs, never while an answer is waited for. */
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* What init_snmp() does, without what it reads, makes and prints. USM has its user without a name, by which engines are discovered, once
 * there is an engine id of our own and the first of the two callbacks was called. */
static void start_library(void)
{
    static const int no[] = { NETSNMP_DS_LIB_DONT_READ_CONFIGS,       NETSNMP_DS_LIB_DONT_PERSIST_STATE,
                              NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE,
                              NETSNMP_DS_LIB_DONT_LOAD_HOST_FILES,    NETSNMP_DS_LIB_ALARM_DONT_USE_SIG };
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        (void)netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, no[i], 1); /* fails for unknown ids only */
    (void)netsnmp_ds_set_string(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_APPTYPE, "pipetune");
    snmp_disable_log();
    (void)netsnmp_register_loghandler(NETSNMP_LOGHANDLER_NONE, LOG_DEBUG); /* without any, it prints on stderr */
    netsnmp_session s;
    snmp_sess_init(&s);
    (void)sc_init(); /* it fails where there is no randomness: then v3 does, and says so */
    init_snmpv3("pipetune");
    init_usm();
    (void)snmp_call_callbacks(SNMP_CALLBACK_LIBRARY, SNMP_CALLBACK_POST_PREMIB_READ_CONFIG, NULL);
    (void)snmp_call_callbacks(SNMP_CALLBACK_LIBRARY, SNMP_CALLBACK_POST_READ_CONFIG, NULL);
}

static void enter_library(void)
{
    (void)pthread_once(&once, start_library);
    (void)pthread_mutex_lock(&library); /* never locked twice by one thread */
}

static void leave_library(void)
{
    (void)pthread_mutex_unlock(&library);
}

/* --- the session --- */

static void close_session(struct snmp_agent *a)
{
    enter_library();
    a->waiting = 0;
    if (a->answer)
        snmp_free_pdu(a->answer);
    a->answer = NULL;
    if (a->session)
        (void)snmp_sess_close(a->session); /* it only says that there was one */
    a->session = NULL;
    leave_library();
}

/* The first address of the host as the library takes it, so that it never asks DNS with the lock held. */
static int resolve(const char *text, char *out, size_t room, struct err *e)
{
    char host[256], port[8], number[128];
    int rc = snmp_oid_host(text, host, port, e);
    if (rc < 0)
        return rc;
    struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV }, *list = NULL;
    int gai = getaddrinfo(host, port, &hints, &list);
    if (gai == 0) {
        gai = getnameinfo(list->ai_addr, list->ai_addrlen, number, sizeof number, NULL, 0, NI_NUMERICHOST);
        bool six = list->ai_family == AF_INET6;
        (void)snprintf(out, room, six ? "udp6:[%s]:%s" : "udp:%s:%s", number, port);
        freeaddrinfo(list);
    }
    return gai == 0 ? 0 : err_set(e, -EHOSTUNREACH, "'%s': %s", text, gai_strerror(gai));
}

/* Both keys are made by the hash of authentication. */
static bool make_key(const char *password, u_char *key, size_t *len)
{
    return generate_Ku(usmHMACSHA1AuthProtocol, USM_AUTH_PROTO_SHA_LEN, (const u_char *)password, strlen(password), key,
                       len) == SNMPERR_SUCCESS;
}

static bool describe_user(netsnmp_session *s, const struct snmp_secret *secret)
{
    s->version = SNMP_VERSION_3;
    s->securityModel = SNMP_SEC_MODEL_USM;
    s->securityName = secret->user;
    s->securityNameLen = strlen(secret->user);
    s->securityLevel = secret->privacy ? SNMP_SEC_LEVEL_AUTHPRIV : SNMP_SEC_LEVEL_AUTHNOPRIV;
    s->securityAuthProto = usmHMACSHA1AuthProtocol;
    s->securityAuthProtoLen = USM_AUTH_PROTO_SHA_LEN;
    s->securityAuthKeyLen = USM_AUTH_KU_LEN;
    if (!make_key(secret->auth, s->securityAuthKey, &s->securityAuthKeyLen))
        return false;
    if (!secret->privacy)
        return true;
    s->securityPrivProto = usmAESPrivProtocol;
    s->securityPrivProtoLen = USM_PRIV_PROTO_AES_LEN;
    s->securityPrivKeyLen = USM_PRIV_KU_LEN;
    return make_key(secret->privacy, s->securityPrivKey, &s->securityPrivKeyLen);
}

static int make_session(struct snmp_agent *a, char *peer, struct err *e)
{
    netsnmp_session s;
    bool good = true;
    enter_library();
    snmp_sess_init(&s);
    s.peername = peer;
    if (a->secret.user) {
        good = describe_user(&s, &a->secret);
    } else {
        s.version = SNMP_VERSION_2c;
        s.community = (u_char *)a->secret.community;
        s.community_len = strlen(a->secret.community);
    }
    a->session = good ? snmp_sess_open(&s) : NULL;
    if (a->session) /* open() forgets this flag: without it, a first send() would wait for the engine by itself */
        snmp_sess_session(a->session)->flags |= SNMP_FLAGS_DONT_PROBE;
    explicit_bzero(s.securityAuthKey, sizeof s.securityAuthKey);
    explicit_bzero(s.securityPrivKey, sizeof s.securityPrivKey);
    leave_library();
    if (!good)
        return err_set(e, -ENOTSUP, "this machine's libcrypto makes no keys of SHA");
    return a->session ? 0
                      : err_set(e, -EIO, "cannot open a socket for %s: %s", peer, snmp_api_errstring(s.s_snmp_errno));
}

/* --- one request and its answer --- */

/* The library calls it within send, read, timeout and close. 1: it need not keep the request. */
static int on_answer(int op, netsnmp_session *session, int id, netsnmp_pdu *pdu, void *agent)
{
    (void)session;
    struct snmp_agent *a = agent;
    if (id != a->waiting || a->over)
        return 1;
    bool report = op == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE && pdu->command == SNMP_MSG_REPORT;
    if (report && snmpv3_get_report_type(pdu) == SNMPERR_NOT_IN_TIME_WINDOW)
        return 1; /* the library has learnt the agent's clock from it, and asks again by itself */
    if (op == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE)
        a->answer = snmp_clone_pdu(pdu);
    a->over = op == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE || op == NETSNMP_CALLBACK_OP_TIMED_OUT ||
              op == NETSNMP_CALLBACK_OP_SEND_FAILED;
    return 1;
}

/* Takes the PDU. It is sent again by snmp_sess_timeout(), `half_ms` later. */
static int send_request(struct snmp_agent *a, netsnmp_pdu *pdu, int64_t half_ms, struct err *e)
{
    enter_library();
    netsnmp_session *s = snmp_sess_session(a->session);
    s->timeout = (long)half_ms * 1000;
    s->retries = 1;
    a->waiting = 0;
    a->over = a->heard = false;
    a->waiting = snmp_sess_async_send(a->session, pdu, on_answer, a);
    int why = s->s_snmp_errno;
    if (a->waiting == 0)
        snmp_free_pdu(pdu);
    leave_library();
    if (a->waiting)
        return 0;
    bool user = why == SNMPERR_USM_UNKNOWNSECURITYNAME || why == SNMPERR_USM_ENCRYPTIONERROR;
    return err_set(e, user ? -EACCES : -EIO, "cannot ask '%s': %s", a->host, snmp_api_errstring(why));
}

static void read_answer(struct snmp_agent *a, int fd)
{
    netsnmp_large_fd_set set;
    enter_library();
    netsnmp_large_fd_set_init(&set, FD_SETSIZE);
    netsnmp_large_fd_setfd(fd, &set);
    (void)snmp_sess_read2(a->session, &set); /* what it makes of it, it tells on_answer() */
    netsnmp_large_fd_set_cleanup(&set);
    a->heard = true;
    leave_library();
}

/* Until the request is over; false: it is not by then. */
static bool await_until(struct snmp_agent *a, int64_t until_ms)
{
    int fd = snmp_sess_transport(a->session)->sock;
    for (int64_t left; !a->over && (left = until_ms - clock_ms()) > 0;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        if (poll(&p, 1, (int)left) > 0)
            read_answer(a, fd);
    }
    return a->over;
}

/* Takes the PDU; the answer is a->answer, until the next request. */
static int exchange(struct snmp_agent *a, netsnmp_pdu *pdu, int64_t deadline_ms, struct err *e)
{
    int64_t begin = clock_ms(), half = (deadline_ms - begin) / 2;
    int rc = send_request(a, pdu, half > 0 ? half : 1, e);
    if (rc < 0)
        return rc;
    if (!await_until(a, begin + half + 1)) {
        enter_library();
        snmp_sess_timeout(a->session);
        leave_library();
        (void)await_until(a, deadline_ms);
    }
    a->waiting = 0;
    if (a->answer)
        return 0;
    if (a->over)
        return err_set(e, -EIO, "cannot ask '%s'", a->host);
    const char *hint = a->heard         ? "what came was not to be understood: is the password right?"
                       : a->secret.user ? "are the address, the user and the passwords right?"
                                        : "is the address right, and the community?";
    return err_set(e, -ETIMEDOUT, "'%s' does not answer; %s", a->host, hint);
}

static void drop_answer(struct snmp_agent *a)
{
    enter_library();
    snmp_free_pdu(a->answer);
    a->answer = NULL;
    leave_library();
}

/* The library knows users by engine and name: one that it has met with other passwords would stay as it was. */
static bool replace_user(netsnmp_session *s)
{
    struct usmUser *met = usm_get_user(s->securityEngineID, s->securityEngineIDLen, s->securityName);
    if (met) {
        (void)usm_remove_user(met); /* the list that is left */
        (void)usm_free_user(met);   /* NULL, always */
    }
    return usm_create_user_from_session(s) == SNMPERR_SUCCESS;
}

/* Version 3 needs the agent's engine id before it can say who asks: any message without one is answered by a report that has it. */
static int discover(struct snmp_agent *a, int64_t deadline_ms, struct err *e)
{
    enter_library();
    netsnmp_pdu *pdu = snmp_pdu_create(SNMP_MSG_GET);
    char *nobody = strdup("");
    if (pdu) {
        pdu->version = SNMP_VERSION_3;
        pdu->securityModel = SNMP_SEC_MODEL_USM;
        pdu->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
        pdu->securityName = nobody;
    }
    leave_library();
    if (!pdu || !nobody) {
        free(nobody);
        if (pdu)
            pdu->securityName = NULL;
        snmp_free_pdu(pdu);
        return err_sys(e, -ENOMEM, "cannot ask '%s'", a->host);
    }
    int rc = exchange(a, pdu, deadline_ms, e);
    if (rc < 0)
        return rc;
    drop_answer(a);
    enter_library();
    netsnmp_session *s = snmp_sess_session(a->session);
    bool known = s->securityEngineIDLen > 0 && replace_user(s);
    leave_library();
    return known ? 0 : err_set(e, -EPROTO, "'%s' does not tell its engine id: does it speak SNMP version 3?", a->host);
}

static int begin_session(struct snmp_agent *a, int64_t deadline_ms, struct err *e)
{
    char peer[192];
    int rc = resolve(a->host, peer, sizeof peer, e);
    if (rc == 0)
        rc = make_session(a, peer, e);
    if (rc == 0 && a->secret.user)
        rc = discover(a, deadline_ms, e);
    return rc;
}

/* --- answers as values --- */

static struct snmp_value value_of(const netsnmp_variable_list *v)
{
    struct snmp_value number = { .kind = SNMP_NUMBER, .step = 1 };
    switch (v->type) {
    case ASN_INTEGER: number.number = (double)*v->val.integer; return number;
    case ASN_GAUGE: number.number = (double)(uint32_t)*v->val.integer; return number;
    case ASN_OCTET_STR: return snmp_oid_text((const char *)v->val.string, v->val_len);
    case SNMP_NOSUCHOBJECT: return (struct snmp_value){ .kind = SNMP_NO_OBJECT };
    case SNMP_NOSUCHINSTANCE:
    case SNMP_ENDOFMIBVIEW: return (struct snmp_value){ .kind = SNMP_NO_INSTANCE };
    default: return (struct snmp_value){ .kind = SNMP_NO_NUMBER };
    }
}

static bool is_named(const netsnmp_variable_list *v, const struct snmp_oid *o)
{
    bool same = v->name_length == o->n;
    for (size_t i = 0; same && i < o->n; i++)
        same = v->name[i] == o->arc[i];
    return same;
}

static int explain_report(const struct snmp_agent *a, netsnmp_pdu *pdu, struct err *e)
{
    int type = snmpv3_get_report_type(pdu);
    bool user = type == SNMPERR_UNKNOWN_USER_NAME || type == SNMPERR_AUTHENTICATION_FAILURE ||
                type == SNMPERR_UNSUPPORTED_SEC_LEVEL || type == SNMPERR_DECRYPTION_ERR;
    return err_set(e, user ? -EACCES : -EPROTO, "'%s' refuses: %s", a->host, snmp_api_errstring(type));
}

static int take_values(const struct snmp_agent *a, struct snmp_get *g, struct err *e)
{
    netsnmp_pdu *pdu = a->answer;
    if (pdu->command == SNMP_MSG_REPORT)
        return explain_report(a, pdu, e);
    if (pdu->errstat == SNMP_ERR_TOOBIG)
        return err_set(e, -E2BIG, "'%s' has no room for %zu values in an answer", a->host, g->n);
    if (pdu->errstat != SNMP_ERR_NOERROR && pdu->errindex >= 1 && (size_t)pdu->errindex <= g->n) {
        g->refused = (size_t)pdu->errindex - 1;
        return err_set(e, -EINVAL, "the PDU refuses: %s", snmp_errstring((int)pdu->errstat));
    }
    if (pdu->errstat != SNMP_ERR_NOERROR)
        return err_set(e, -EPROTO, "'%s' refuses: %s", a->host, snmp_errstring((int)pdu->errstat));
    const netsnmp_variable_list *v = pdu->variables;
    size_t i = 0;
    for (; v && i < g->n && is_named(v, &g->oids[i]); v = v->next_variable)
        g->value[i++] = value_of(v);
    if (i < g->n || v)
        return err_set(e, -EPROTO, "'%s' answers something else than was asked", a->host);
    return 0;
}

/* --- what others see --- */

static netsnmp_pdu *make_get(const struct snmp_oid *oids, size_t n)
{
    enter_library();
    netsnmp_pdu *pdu = snmp_pdu_create(SNMP_MSG_GET);
    for (size_t i = 0; pdu && i < n; i++) {
        oid name[SNMP_OID_ARCS];
        for (size_t k = 0; k < oids[i].n; k++)
            name[k] = oids[i].arc[k];
        if (!snmp_add_null_var(pdu, name, oids[i].n)) {
            snmp_free_pdu(pdu);
            pdu = NULL;
        }
    }
    leave_library();
    return pdu;
}

static bool is_lost(int rc)
{
    return rc < 0 && rc != -E2BIG && rc != -EINVAL;
}

static int get_once(struct snmp_agent *a, struct snmp_get *g, int64_t deadline_ms, struct err *e)
{
    int rc = a->session ? 0 : begin_session(a, deadline_ms, e);
    netsnmp_pdu *pdu = rc == 0 ? make_get(g->oids, g->n) : NULL;
    if (rc == 0 && !pdu)
        rc = err_sys(e, -ENOMEM, "cannot ask '%s'", a->host);
    int64_t begin = clock_ms();
    if (rc == 0)
        rc = exchange(a, pdu, deadline_ms, e);
    g->took_ms = clock_ms() - begin;
    if (rc == 0) {
        rc = take_values(a, g, e);
        drop_answer(a);
    }
    if (is_lost(rc))
        close_session(a);
    return rc;
}

int snmp_agent_get(struct snmp_agent *a, struct snmp_get *g, struct err *e)
{
    int64_t now = clock_ms();
    bool old = a->session && a->secret.user;
    g->took_ms = 0;
    if (now >= g->deadline_ms)
        return err_set(e, -ETIMEDOUT, "'%s' does not answer in time", a->host);
    int rc = get_once(a, g, old ? now + (g->deadline_ms - now) / 2 : g->deadline_ms, e);
    if (old && is_lost(rc))
        rc = get_once(a, g, g->deadline_ms, e);
    return rc;
}

int snmp_agent_open(struct snmp_agent **out, const struct snmp_agent_cfg *cfg, struct err *e)
{
    char host[256], port[8];
    int rc = snmp_oid_host(cfg->host, host, port, e);
    if (rc < 0)
        return rc;
    struct snmp_agent *a = calloc(1, sizeof *a);
    if (a)
        a->host = strdup(cfg->host);
    if (!a || !a->host)
        rc = err_sys(e, -ENOMEM, "cannot ask '%s'", cfg->host);
    else
        rc = snmp_secret_read(&a->secret, cfg->version, cfg->credential_file, e);
    if (rc < 0)
        snmp_agent_close(a);
    else
        *out = a;
    return rc;
}

void snmp_agent_close(struct snmp_agent *a)
{
    if (!a)
        return;
    if (a->session)
        close_session(a);
    snmp_secret_done(&a->secret);
    free(a->host);
    free(a);
}
