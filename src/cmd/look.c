#include "cmd/look.h"

#include <math.h>
#include <string.h>
#include <time.h>

const char *look_state(const char *stored, pid_t driver)
{
    return driver == 0 && strcmp(stored, "running") == 0 ? "interrupted" : stored;
}

json_t *look_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *look_best(int trial, double accuracy)
{
    return trial ? json_pack("{s:i, s:o}", "trial", trial, "accuracy", look_number(accuracy)) : json_null();
}

bool look_time(char out[32], int64_t ms, const char *format)
{
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (!localtime_r(&at, &tm))
        return false;
    (void)strftime(out, 32, format, &tm);
    return true;
}
