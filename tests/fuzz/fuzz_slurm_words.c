/* Answers of any bytes are jobs, numbers, ends and rooms within bounds, or none; an option is taken or refused with a reason. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/slurm_verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_job(void *ctx, const struct slurm_job *j)
{
    const struct slurm_ended x = { j, { j->state, 1, 0 }, false, "/d", "/p" };
    struct slurm_verdict v;
    (void)ctx;
    check(j->id > 0 && j->id <= UINT32_MAX && j->run_s >= 0);
    check(strlen(j->reason) < sizeof j->reason && strlen(j->comment) < sizeof j->comment);
    (void)slurm_reason_of(j->reason);
    slurm_verdict(&x, &v);
    check(v.why[0] && strlen(v.why) < sizeof v.why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + !size), *text = strndup((const char *)data, size);
    check(bytes && text);
    memcpy(bytes, data, size);
    slurm_words_jobs(bytes, size, on_job, NULL);
    uint64_t id;
    int64_t s;
    struct slurm_end end;
    struct slurm_room room;
    struct err e = { 0 };
    check(!slurm_words_id(text, &id) || (id > 0 && id <= UINT32_MAX));
    check(!slurm_words_seconds(text, &s) || s >= 0);
    check(!slurm_words_shown(text, &end) || (end.code >= 0 && end.code <= 255 && end.signal >= 0));
    check(!slurm_words_accounted(text, &end) || (end.code >= 0 && end.code <= 255 && end.state != SLURM_UNKNOWN));
    if (slurm_words_room(text, "", &room))
        check(room.cpus > 0 && isfinite(room.memory_gb) && room.memory_gb >= 0);
    int fits;
    if (slurm_words_fits(text, "", 2, 0.5, &fits))
        check(fits >= 0);
    (void)slurm_fault_of(text);
    check(slurm_words_option(text, &e) == 0 || e.text[0]);
    free(bytes);
    free(text);
    return 0;
}
