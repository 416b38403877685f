/* A process of a launch, as `pipetune-node serve` meets them: many threads, children that lead another session and carry no tag.
 *
 *   fake-tagged THREADS [CPU] [ANY ARGUMENT]…     the last are what makes it look like a JVM: -Dpipetune.launch=TAG, --cores N
 *
 * Runs on CPU alone when that is a number, else where it is put. Says "ready" on stdout; on USR1 it starts a thread, on USR2 a child, and says
 * "thread TID", "child PID". It ends with its parent. */
#include <ctype.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static void *wait_for_ever(void *arg)
{
    if (arg)
        dprintf(STDOUT_FILENO, "thread %ld\n", (long)gettid());
    for (;;)
        (void)pause();
    return NULL;
}

static void start_thread(void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_ever, arg) != 0)
        exit(1);
}

static void start_child(const char *self)
{
    pid_t pid = fork();
    if (pid < 0)
        exit(1);
    if (pid > 0) {
        dprintf(STDOUT_FILENO, "child %ld\n", (long)pid);
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid();
    (void)execl(self, self, "2", "-", "quiet", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv)
{
    sigset_t signals;
    char token;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc > 2 && isdigit((unsigned char)argv[2][0])) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)strtol(argv[2], NULL, 10), &one);
        if (sched_setaffinity(0, sizeof one, &one) < 0)
            return 1;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGUSR1);
    (void)sigaddset(&signals, SIGUSR2);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    for (long left = argc > 1 ? strtol(argv[1], NULL, 10) : 0; left > 0; left--)
        start_thread(NULL);
    if (argc < 4 || strcmp(argv[3], "quiet") != 0)
        dprintf(STDOUT_FILENO, "ready\n");
    for (;;) {
        int sig = 0;
        (void)sigwait(&signals, &sig);
        if (sig == SIGUSR1)
            start_thread(&token);
        else
            start_child(argv[0]);
    }
}
