/* What writing to an InfluxDB, reading from it, and asking an MLflow server share, of libcurl. Inside of monitoring. */
#ifndef MONITORING_INFLUX_PARTS_H
#define MONITORING_INFLUX_PARTS_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "monitoring/credential.h"

int influx_global(struct err *e); /* libcurl itself, once; -EIO */

/* As influx_url_check(), of another section of the config, whose option is so named. */
int influx_url_check_of(const char *whose, const char *option, const char *url, bool secret, bool allow_plain,
                        struct err *e);

/* "&name=value", the value percent-encoded; nothing when it is NULL. */
void influx_put_query(struct buf *to, const char *name, const char *value);

int influx_credential(struct credential *to, const struct credential *from); /* a copy; -ENOMEM */

/* Each adds a header: 0 or -ENOMEM. The token's is left out where there is no token. */
int influx_add_header(struct curl_slist **list, const char *line);
int influx_add_token(struct curl_slist **list, const struct credential *c);
void influx_free_headers(struct curl_slist *list); /* wipes */

/* Everything but body, headers and URL: no redirects, no proxy, certificates verified, time-outs (0: 5 s to connect, 30 s). -ENOMEM. */
int influx_options(CURL *c, const struct credential *credential, const char *ca_file, long connect_ms, long timeout_ms);

#endif
