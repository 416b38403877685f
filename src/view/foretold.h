/* A forecast of a trial (store/outlook.h) as people and programs read it: the same for every command that tells of trials. */
#ifndef VIEW_FORETOLD_H
#define VIEW_FORETOLD_H

#include "base/buf.h"
#include "base/json.h"
#include "store/outlook.h"

/* {"epoch","seen","median","low","high","target":{"value","epochs":{"soonest","middle","latest"},"seconds":{…}}}: of `target` what is there alone, of
 * `epochs` those within the study's; `seconds` from the newest epoch on, of epochs ahead, where an epoch's are measured. A new reference; NULL
 * where nothing is foretold. */
json_t *foretold_json(const struct outlook_told *t);

/* "foretold after 50 epochs 0.93, 80 % within 0.91 to 0.95; 0.94 after 31, at least 24, in 3 min 10 s …"; nothing where nothing is foretold. */
void foretold_put(struct buf *b, const struct outlook_told *t);

/* The same in few characters: "will be 0.91 to 0.95, target in 3 m 10 s". */
void foretold_put_short(struct buf *b, const struct outlook_told *t);

#endif
