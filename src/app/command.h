/* Kind `command`: any program. It is heard by patterns and by what it tells (app/progress.h). Pure.
 *
 *   { "kind": "command",
 *     "command": ["python3", "train.py"],                      never through a shell
 *     "extras": { "data": "$HOME/digits" },
 *     "arguments": { "lr": ["--lr", "{}"], "epochs": ["--epochs", "{}"], "seed": ["--seed", "{}"],
 *                    "checkpoint": ["--save", "{}"], "resume": ["--load", "{checkpoint}"] },
 *     "env": { "OMP_NUM_THREADS": "{cores}" },                 null: not set, and no default of ours either
 *     "progress": ["epoch (?<epoch>\\d+): loss (?<loss>\\S+)"],          or the name of a ready-made list
 *     "files": ["train.py"], "folder": "work", "session": false }
 *
 * In the place of "command", "roles" make it a gang (app/roles.h).
 *
 * It runs in `folder`, else beside its application file. {NAME} of a hyperparameter or a system parameter may stand in `command`, `extras` and
 * `env`, {cores} being the most that a trial may get. A hyperparameter that stands nowhere is passed as --NAME=VALUE; one whose argument is []
 * is told over the socket alone, and so are epochs, seed, checkpoint and resume. */
#ifndef APP_COMMAND_H
#define APP_COMMAND_H

#include "app/app.h"

extern const struct app_kind command_kind;

/* The member "progress" of any kind that is heard so: into a struct progress *. */
app_read command_read_progress;

#endif
