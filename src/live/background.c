#include "live/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/strv.h"

enum { LOG_MAX = 4 << 20, TAIL = 4096 };

extern char **environ;

static int own_path(char **out, struct err *e)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return err_sys(e, -errno, "the program's own path");
    path[n] = '\0';
    char *gone = strstr(path, " (deleted)"); /* another version has taken its place */
    if (gone)
        *gone = '\0';
    *out = strdup(path);
    return *out ? 0 : err_sys(e, -ENOMEM, "the program's own path");
}

static bool is_named(const char *variable, const char *name)
{
    size_t n = strlen(name);
    return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

static bool overlaid(const json_t *env, const char *variable)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)env, name, value)
    {
        if (is_named(variable, name))
            return true;
    }
    return false;
}

static void make_env(struct strv *out, const json_t *env)
{
    const char *name;
    json_t *value;
    for (char **v = environ; v && *v; v++)
        if (!overlaid(env, *v))
            strv_add(out, *v);
    json_object_foreach((json_t *)env, name, value)
    {
        if (json_is_string(value))
            strv_addf(out, "%s=%s", name, json_string_value(value));
    }
}

static int open_log(const char *path, struct err *e)
{
    int fd = ours_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, e);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > LOG_MAX)
        (void)!ftruncate(fd, 0); /* else it goes on growing, which harms nothing yet */
    return fd;
}

struct child {
    const char *program, *folder;
    char **argv, **env;
    int wait_fd, log_fd;
};

/* Between fork and exec: nothing that takes memory or a lock. */
static __attribute__((noreturn)) void become(const struct child *c)
{
    static const char no_folder[] = "pipetune: the folder it was submitted from cannot be entered\n";
    static const char no_program[] = "pipetune: the program cannot be started\n";
    char go;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    if (dup2(c->log_fd, STDOUT_FILENO) < 0 || dup2(c->log_fd, STDERR_FILENO) < 0)
        _exit(127);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        (void)dup2(null, STDIN_FILENO);
    ssize_t n;
    while ((n = read(c->wait_fd, &go, 1)) < 0 && errno == EINTR)
        ;
    if (n != 1)
        _exit(0);
    if (chdir(c->folder) < 0) {
        (void)!write(STDERR_FILENO, no_folder, sizeof no_folder - 1);
        _exit(3);
    }
    (void)execve(c->program, c->argv, c->env);
    (void)!write(STDERR_FILENO, no_program, sizeof no_program - 1);
    _exit(3);
}

static int spawn(struct background *out, const struct child *c, int *go_fd, struct err *e)
{
    pid_t pid = fork();
    if (pid < 0)
        return err_sys(e, -errno, "cannot start a driver");
    if (pid == 0) {
        (void)close(*go_fd); /* whose end it waits for */
        become(c);
    }
    uint64_t ticks = 0;
    (void)proc_start_ticks(pid, &ticks); /* it is our child: at least a zombie */
    *out = (struct background){ .pid = pid, .start_ticks = ticks, .go_fd = MOVE_FD(*go_fd) };
    return 0;
}

int background_start(struct background *out, const json_t *words, const char *folder, const json_t *env,
                     const char *log, struct err *e)
{
    AUTO_FREE char *program = NULL;
    AUTO_STRV struct strv argv = STRV_INIT, variables = STRV_INIT;
    int rc = own_path(&program, e);
    if (rc < 0)
        return rc;
    if (!io_is_dir(folder))
        return err_set(e, -ENOENT, "folder '%s' is not there any more", folder);
    strv_add(&argv, program);
    for (size_t i = 0; i < json_array_size(words); i++)
        strv_add(&argv, json_string_value(json_array_get(words, i)));
    make_env(&variables, env);
    if (argv.failed || variables.failed)
        return err_sys(e, -ENOMEM, "cannot start a driver");
    AUTO_CLOSE int log_fd = open_log(log, e);
    if (log_fd < 0)
        return log_fd;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, -errno, "cannot start a driver");
    AUTO_CLOSE int wait_fd = fds[0];
    AUTO_CLOSE int go_fd = fds[1];
    struct child c = { program, folder, argv.v, variables.v, wait_fd, log_fd };
    return spawn(out, &c, &go_fd, e);
}

int background_go(struct background *b)
{
    ssize_t n = write(b->go_fd, "g", 1);
    int rc = n == 1 ? 0 : -errno;
    (void)close(b->go_fd);
    b->go_fd = -1;
    return rc;
}

void background_drop(struct background *b)
{
    if (b->go_fd >= 0)
        (void)close(b->go_fd);
    b->go_fd = -1;
}

char *background_log(const char *study_dir)
{
    return io_join(study_dir, "driver.log");
}

bool background_is(pid_t driver, const char *study_dir)
{
    char link[64];
    struct stat out, log;
    AUTO_FREE char *path = background_log(study_dir);
    (void)snprintf(link, sizeof link, "/proc/%ld/fd/1", (long)driver);
    return path && stat(link, &out) == 0 && stat(path, &log) == 0 && out.st_dev == log.st_dev &&
           out.st_ino == log.st_ino;
}

char *background_last(const char *log)
{
    char text[TAIL + 1];
    AUTO_CLOSE int fd = ours_open(log, O_RDONLY | O_CLOEXEC, NULL);
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    ssize_t n = size > 0 ? pread(fd, text, TAIL, size > TAIL ? size - TAIL : 0) : 0;
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    const char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    return strdup(strncmp(line, "pipetune: ", 10) == 0 ? line + 10 : line);
}
