/* Numbered things of a machine (its CPUs) that one process at a time has, among all processes and users on it.
 *
 * Who has thing N listens on the abstract Unix socket "SPACE-N": the name dies with its holder, also by KILL, no file stands for
 * it that others could own or leave behind, and the kernel says who the holder is. Who would like to have it too connects, as a
 * guest, and so is known to the holder; a guest that uses the thing nevertheless says so by one byte 'u'. A connection is all
 * there is to it: nothing that a guest does can hold the holder up, nor the other way round. Names reach as far as the network
 * namespace does. */
#ifndef BASE_LEASE_H
#define BASE_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { LEASE_SPACE_MAX = 64, LEASE_WHO_MAX = 96 };

/* The name space of real CPUs; PIPETUNE_LEASES names another one in tests, which are not to meet each other. */
#define LEASE_CPUS "pipetune-cpu"

struct leases;

struct leases *leases_of_cpus(void); /* as leases_new() */

/* Copies `space`, cut to LEASE_SPACE_MAX bytes. NULL: memory. */
struct leases *leases_new(const char *space);
void leases_free(struct leases *l); /* all are free for others. NULL is fine */

/* It is ours from now on, or was; false: another process has it. Where there are no such sockets, or no memory, everybody has
 * everything: a lease holds nobody up. */
bool leases_hold(struct leases *l, int n);
void leases_drop(struct leases *l, int n); /* fine for one that is not ours */

/* Nobody has it, or we do. */
bool leases_is_free(const struct leases *l, int n);

/* Asks who has it, as a guest from now on; `uses`: it is used nevertheless. Again: says so of the same guest. */
void leases_visit(struct leases *l, int n, bool uses);
void leases_leave(struct leases *l, int n); /* is a guest no more */

/* Hears who came, went and uses. Before it the answers below are those of the last time. */
void leases_poll(struct leases *l);

/* Different processes that are guests of anything of ours. */
size_t leases_guests(const struct leases *l);

/* Is any of them one that waits: that uses nothing of ours? */
bool leases_is_awaited(const struct leases *l);

/* Does a guest use this one of ours? who: "process 77 of user 1000", NULL: not wanted. */
bool leases_is_shared(const struct leases *l, int n, char who[LEASE_WHO_MAX]);

/* Who has this one that we are a guest of; "another process" where it cannot be told. */
void leases_holder(const struct leases *l, int n, char who[LEASE_WHO_MAX]);
pid_t leases_holder_pid(const struct leases *l, int n); /* 0: it cannot be told */

/* CPUs of this machine that somebody has; -1: it cannot be told. And the text behind it, /proc/net/unix, for a name space. */
int leases_taken(void);
int leases_taken_of(const char *text, const char *space);

#endif
