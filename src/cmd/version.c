#include <curl/curl.h>
#include <errno.h>
#include <sqlite3.h>
#include <uv.h>

#include "base/own.h"
#include "cmd/cmd.h"

#ifndef PIPETUNE_COMMIT
#define PIPETUNE_COMMIT ""
#endif

struct version_options {
    bool json;
};

static const struct opt_row version_rows[] = {
    { NULL, "json", OPT_FLAG, offsetof(struct version_options, json), NULL, 0, 0, NULL, NULL, "print JSON" },
};

void cmd_version_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(version_rows, NULL));
}

static json_t *as_json(void)
{
    return json_pack("{s:s, s:o, s:{s:s, s:s, s:s, s:s}}", "version", PIPETUNE_VERSION, "commit",
                     *PIPETUNE_COMMIT ? json_string(PIPETUNE_COMMIT) : json_null(), "libraries", "libuv",
                     uv_version_string(), "jansson", jansson_version_str(), "sqlite", sqlite3_libversion(), "curl",
                     curl_version_info(CURLVERSION_NOW)->version);
}

int cmd_version(int argc, char **argv)
{
    struct version_options o = { 0 };
    struct opt_set set = OPT_SET(version_rows, &o);
    int code;
    if (cmd_options("version", argc, argv, &set, 1, NULL, 0, &code))
        return code;
    if (o.json)
        return cmd_print_json(as_json());
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "pipetune %s%s%s\n", PIPETUNE_VERSION, *PIPETUNE_COMMIT ? ", commit " : "", PIPETUNE_COMMIT);
    buf_printf(&b, "libuv %s, jansson %s, SQLite %s, curl %s\n", uv_version_string(), jansson_version_str(),
               sqlite3_libversion(), curl_version_info(CURLVERSION_NOW)->version);
    return cmd_print(&b);
}
