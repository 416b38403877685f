/* The command line of ssh to a node's helper. Host, user and path reach a command line here and a shell there, so each comes
 * from a narrow set of characters. Pure. */
#ifndef LIVE_SSH_H
#define LIVE_SSH_H

#include "base/err.h"
#include "base/strv.h"
#include "live/nodes.h"

/* May ssh be given this node? -EINVAL: the host is none ([A-Za-z0-9._:%-], begins with none of "-.%"), nor the user
 * ([A-Za-z0-9._-], begins with none of "-."), the port or the key's path; the message begins with which: "host 'x' …". */
int ssh_check(const struct node_cfg *cfg, struct err *e);

/* Where `pipetune nodes put` puts a helper, from the home folder on: by the SHA-256 of its bytes, in hex. */
#define SSH_PUT_DIR ".pipetune-node"
enum { SSH_PUT_PATH_MAX = 96 };
int ssh_put_path(char out[SSH_PUT_PATH_MAX], const char *hash, struct err *e); /* -EINVAL: that is no such hash */

/* `ssh` is the program; both checks are made again. `helper` is absolute, or what ssh_put_path() makes. -EINVAL, -ENOMEM;
 * strv_done(out) is due in any case. */
int ssh_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, const char *helper, struct err *e);

/* Scripts of ours that a shell runs there, in the place of the helper. Nothing of a config or a user stands in them. What they print
 * are lines "pipetune: WORD TEXT".
 *
 *   put    "there", or "send" and, when the helper's bytes came on stdin and its end, "put"; both with "says VERSION". Or
 *          "machine KIND", "refused WHY" (what is there is none of ours), "broken" (other bytes came), "unfit WHY" (it does not
 *          run there). `hash` is of the bytes, `machine` as `uname -m` has it.
 *   clean  "removed PATH" of each file and folder that put had made, "kept PATH: WHY" of what it had not, and stays.
 *
 * Neither follows a link. */
enum ssh_script { SSH_PUT, SSH_CLEAN };
int ssh_script_argv(struct strv *out, const char *ssh, const struct node_cfg *cfg, enum ssh_script which,
                    const char *hash, const char *machine, struct err *e);

#endif
