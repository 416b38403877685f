/* A PDU's status page, which is JSON: the watts of each outlet. Pure.
 *
 *     GET /statusjsn.js?components=16384        the Lindy iPower Control 2x6
 *     {"sensor_values": [
 *         {…},
 *         {"values": [ [ {…}, {…}, {…}, {…}, {"v": "41.5", …}, … ],      outlet 0; 4: its active power in W
 *                      [ {…}, {…}, {…}, {…}, {"v": "0", …}, … ], … ]}    outlet 1
 *     ]}
 *
 * The path "sensor_values/1/values/{outlet}/4/v" leads there: each word is a key of an object, or the place in a list, counted from 0, and
 * {outlet} stands for the outlet as the PDU's own lists count it. */
#ifndef MONITORING_PDU_JSON_H
#define MONITORING_PDU_JSON_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

enum { PDU_BODY_MAX = 65536, PDU_PATH_MAX = 256 };

struct pdu_where {
    const char *path;
    double scale; /* watts of one unit */
    double max_w; /* more is absurd */
};

struct pdu_power {
    double watts;
    double error_w; /* half of the last digit that is shown */
};

/* Is it a path that leads anywhere? -EINVAL: empty, longer than PDU_PATH_MAX, or a word of it is. */
int pdu_path_check(const char *path, struct err *e);

/* *out is for json_decref(). -EFBIG: longer than PDU_BODY_MAX; -EPROTO: no JSON; -ENOMEM. Messages are one printable line. */
int pdu_json_parse(json_t **out, const char *text, size_t len, struct err *e);

/* The number, or the text that is one ("41.5", with a point), at the end of the path. 0 W is what a PDU says of an outlet that is switched
 * off, and counts as measured. -EINVAL: the path; -ENOENT: there is no such place; -EPROTO: something else is there, or on the way;
 * -ERANGE: less than 0, or more than max_w. */
int pdu_json_power(const json_t *root, const struct pdu_where *where, int outlet, struct pdu_power *out, struct err *e);

#endif
